"""client: a client that says exactly the bytes it is told to, and reads HTTP answers.

The tests of the servers, and of what they are graded on, use it as well. None of it waits for ever:
whatever does not come within LIMIT_SECONDS, or the client's own `seconds`, is Missed.
"""

import re
import select
import socket
import struct
import time
from collections import namedtuple

from waiting import Missed, patient

LIMIT_SECONDS = 5

HALF, REST = b"GET / HTTP/1.1\r\n", b"Host: here\r\nConnection: close\r\n\r\n"
WHOLE = HALF + REST
NO_BODY = (204, 304)
SHOWN = 60  # bytes of a body


def asking(path):
    """The only request of a connection."""
    return WHOLE.replace(b"/", path.encode(), 1)


def count(clients, status=200):
    """How many of the clients were answered with that status."""
    return sum(client.status() == status for client in clients)


class Answer(namedtuple("Answer", "status fields body head")):
    """What was heard. `fields` is a dict, its names in lower case; `head` the lines, as they came."""

    def __str__(self):
        text = self.body[:SHOWN].decode("latin-1").strip()
        more = " and so on, %d bytes" % len(self.body) if len(self.body) > SHOWN else ""
        return '%d, and "%s"%s' % (self.status, text, more) if self.body else "%d, and no page" % self.status


class Client:
    """One connection. It is made by ex.client(), and closed at the check's end."""

    def __init__(self, host, port, seconds=None):
        self.seconds = seconds or patient(LIMIT_SECONDS)
        self._came = b""  # received, and not yet part of an answer
        self._over = False  # the other side has ended the connection
        self._first = None
        self.was_reset = False  # and not as one should
        try:
            self.socket = socket.create_connection((host, port), self.seconds)
        except OSError as error:
            raise Missed("connects", "a connection to port %d" % port, str(error)) from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a say() is a packet

    def say(self, bytes):
        """Sends them. That nobody is there any more is no error here: hear() shows it."""
        try:
            self.socket.sendall(bytes)
        except socket.timeout as error:
            raise Missed("reads", "a server that reads what it is sent",
                         "no room for %d bytes" % len(bytes)) from error
        except OSError:
            pass

    def get(self, path="/"):
        """Asks for a path on a connection that stays, and returns the Answer."""
        self.say(("GET %s HTTP/1.1\r\nHost: here\r\n\r\n" % path).encode())
        return self.hear()

    def visit(self, path="/"):
        """One request, and the end of the connection; the status, None if there was no answer."""
        self.say(asking(path))
        answer = self.hear()
        self.close()
        return answer and answer.status

    def hear(self, head=False):
        """The next Answer; None if the connection ends before one has begun. `head`: it answers a
        HEAD, so that no body follows."""
        begin = self._take_until(b"\r\n\r\n")
        if begin is None:
            return None
        lines = begin.decode("latin-1").split("\r\n")
        status = re.match(r"HTTP/1\.[01] (\d{3})\b", lines[0])
        if not status:
            raise Missed("answers", "an answer in HTTP", repr(lines[0]))
        head_lines = lines[:-2]  # behind them: the empty line, and the end of its own
        pairs = (line.partition(":") for line in head_lines[1:])
        fields = {name.lower(): value.strip() for name, _, value in pairs}
        answer = Answer(int(status.group(1)), fields, b"", head_lines)
        if head or answer.status < 200 or answer.status in NO_BODY:
            return answer
        return answer._replace(body=self._body(fields.get("content-length")))

    def end_of(self):
        """All that still comes, until the connection ends."""
        deadline = time.monotonic() + self.seconds
        while not self._over:
            self._receive(deadline, "the connection's end")
        rest, self._came = self._came, b""
        return rest

    def is_closed(self, within=0):
        """Has the other side ended the connection, or will it within so many seconds? What it still
        said can be heard afterwards."""
        deadline = time.monotonic() + patient(within)
        while not self._over and self._has_come(max(0, deadline - time.monotonic())):
            self._receive(deadline + self.seconds, "what poll(2) announced")
        return self._over

    def is_answered(self):
        return bool(self._came) or self._has_come(0)

    def first(self):
        """The first Answer, as often as it is asked for; None while there is none."""
        if not self._first and self.is_answered():
            self._first = self.hear()
        return self._first

    def status(self):
        """That of the first Answer."""
        first = self.first()
        return first and first.status

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        """Ends the connection with a reset, as a program does that is killed with bytes unread."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        self.socket.close()

    def port(self):
        """Its own, by which the kernel knows the connection."""
        return self.socket.getsockname()[1]

    # ---- receiving -----------------------------------------------------------------------

    def _take_until(self, mark):
        """What comes up to the mark, and with it; None if the connection ended before."""
        deadline = time.monotonic() + self.seconds
        while mark not in self._came:
            if self._over:
                if self._came:
                    raise Missed("answers", "a whole answer", "an end after %r" % self._came[-60:])
                return None
            self._receive(deadline, "an answer")
        taken, _, self._came = self._came.partition(mark)
        return taken + mark

    def _body(self, length):
        """Of the length that the answer names, or up to the connection's end."""
        if length is None:
            return self.end_of()
        if not re.fullmatch("[0-9]{1,15}", length):
            raise Missed("answers", "a Content-Length that is a number", repr(length))
        deadline = time.monotonic() + self.seconds
        while len(self._came) < int(length):
            if self._over:
                raise Missed("answers", "a body of %s bytes" % length,
                             "an end after %d" % len(self._came))
            self._receive(deadline, "a body of %s bytes" % length)
        body, self._came = self._came[:int(length)], self._came[int(length):]
        return body

    def _receive(self, deadline, what):
        """What is there, or an end. Missed if neither comes in time."""
        if not self._has_come(max(0, deadline - time.monotonic())):
            raise Missed("answers", what, "nothing more within %g s%s" % (
                self.seconds, ", after %r" % self._came[-60:] if self._came else ""))
        try:
            piece = self.socket.recv(1 << 16)
        except ConnectionResetError:
            piece = b""  # an end as well
            self.was_reset = True
        self._came += piece
        self._over = not piece

    def _has_come(self, seconds):
        waiting = select.poll()
        waiting.register(self.socket, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))
