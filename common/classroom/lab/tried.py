"""tried: the reader's server, on a port of its own, as the kernel sees it; and clients of it.

    with Server(program, folder) as server, Client(server) as client:
        client.say(HALF)
        server.children()
"""

import contextlib
import ctypes
import os
import re
import signal
import socket
import sys

import client
import proc
import served
from top import Trouble
from waiting import Missed, Skipped, until

HALF, REST = b"GET / HT", b"TP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
ANSWER_SECONDS, SOON_SECONDS = 3, 2
PIDFD_GETFD = 438  # the number of this call, on every architecture


class Server(served.Server):
    """Its program takes the port as its argument, and need not print anything."""

    def __init__(self, program, folder):
        super().__init__(program, "", os.path.join(folder, "server"), ())
        port = free_port()
        self.url = "http://127.0.0.1:%d" % port
        self.scratch = folder
        self._command = [program, str(port)]

    def await_banner(self):
        try:
            self.await_ready(self.listeners)
        except Trouble as trouble:
            raise Missed("listens", "a server", "it was started with the port %d as its argument, and did not listen "
                         "there: %s" % (self.port, trouble)) from trouble

    def begin_again(self, *environment):
        self.__exit__()
        self.start(["env", *environment, *self._command])
        self.await_banner()

    def sockets(self, state, of=None):
        """What /proc/PID/fd calls the sockets on its port in that state, of one client or of all."""
        return {"socket:[%d]" % each.inode for each in proc.connections(self.port)
                if each.state == state and of in (None, each.client)}

    @contextlib.contextmanager
    def frozen(self):
        """All of its processes."""
        os.killpg(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.pid, signal.SIGCONT)

    def fill(self, deaf):
        """Fills the socket of a client that does not read, so that the server's next send() finds no room."""
        def held():
            return [(pid, number) for pid in [self.pid, *self.family()]
                    for number, name in proc.descriptors(pid).items()
                    if name in self.sockets(proc.ESTABLISHED, deaf.port())]

        if not until(held, SOON_SECONDS):
            raise Missed("accepts", "a client", "a client has connected, and was not accepted")
        pid, number = held()[0]
        libc = ctypes.CDLL(None, use_errno=True)
        pidfd = os.pidfd_open(pid)
        copy = libc.syscall(PIDFD_GETFD, pidfd, number, 0)
        os.close(pidfd)
        if copy < 0:
            raise Skipped("no copy of the server's socket: %s" % os.strerror(ctypes.get_errno()))
        with socket.socket(fileno=copy) as ours:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            if not until(lambda: not fill_up(ours) and found_shut(ours), ANSWER_SECONDS):
                raise Skipped("the client's window did not shut")


class Client(client.Client, contextlib.closing):
    def __init__(self, server):
        super().__init__(server.host, server.port, ANSWER_SECONDS)
        self.thing = self  # that is closed

    def all(self):
        """All until the connection ends; b"" also if it never does."""
        with contextlib.suppress(Missed):
            return self.end_of()
        return b""

    def leave(self):
        """Ends its own direction, and resets the connection a moment later: who writes then, gets EPIPE."""
        with contextlib.suppress(OSError):
            self.half_close()
        self.reset()


def fill_up(ours):
    """Sends into a socket of which we have a copy until there is no room. Returns how many bytes that took."""
    took = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            took += ours.send(b"x" * 65536, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    return took


def found_shut(ours):
    """Has the kernel probed the client's window, and found it shut? Before that the socket may get room again,
    as soon as a part of what it holds is sent. tcp(7) TCP_INFO, RFC 9293 section 3.8.6.1"""
    info = ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 28)
    backoff, unacknowledged = info[4], int.from_bytes(info[24:28], sys.byteorder)
    return backoff and not unacknowledged


def free_port():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        return holder.getsockname()[1]


def is_whole(answer):
    """Is it an answer with status 200, as long as it says?"""
    head, _, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"\nContent-Length: *(\d+)", head, re.IGNORECASE)
    return bool(re.match(rb"HTTP/1.\d 200 ", head)) and (not length or int(length[1]) == len(body))


def visit(server):
    """Is a page asked for and got, and does the connection end?"""
    with contextlib.suppress(Missed), Client(server) as visitor:
        visitor.say(HALF + REST)
        return is_whole(visitor.all())
    return False


@contextlib.contextmanager
def crowd(server, number, text=b""):
    """So many clients that have said this."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server)) for _ in range(number)]
        for each in clients:
            each.say(text)
        yield clients
