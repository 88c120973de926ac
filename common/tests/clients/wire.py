"""The examples of common/HTTP.md, each on a connection of its own: the server has to answer as the
page says."""

import contextlib
import itertools
import os
import re
import socket

from case import SOON_SECONDS, TOP, Case, contents, patience

RULE = re.compile(r"^### Rule (\d+): (?:(?!^###? ).*\n)*?```text\n((?:[><*] .*\n)+)```$", re.MULTILINE)
REPEATED = re.compile(r"\{(.*?)\*(\d+)\}")
STILL_OPEN = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def read_page():
    return contents(os.path.join(TOP, "common", "HTTP.md")).decode()


def examples():
    """The number of each rule, and the lines of its example."""
    return [(rule, lines.splitlines()) for rule, lines in RULE.findall(read_page())]


def bytes_of(text):
    """What a line of the page stands for."""
    text = REPEATED.sub(lambda found: found.group(1) * int(found.group(2)), text)
    return text.encode("ascii").decode("unicode_escape").encode("latin-1")


def fits(field, line):
    """Is that what the page says? A line that ends in ... is the beginning of one."""
    return field.startswith(line[:-3]) if line.endswith("...") else field == line


class Conversation:
    """A connection, and what has been said on it."""

    def __init__(self, test):
        self._test = test
        self._socket = socket.create_connection((test.server.host, test.server.port),
                                                timeout=patience(SOON_SECONDS))
        self._answers = self._socket.makefile("rb")
        self._asked_for_head = False

    def close(self):
        self._answers.close()
        self._socket.close()

    def say(self, lines):
        said = b"".join(map(bytes_of, lines))
        self._asked_for_head = said.startswith(b"HEAD ")
        self._socket.sendall(said)

    def hear(self, lines):
        """As many responses as there are status lines, each with the fields behind its own."""
        for line in lines:
            if line.startswith("HTTP/"):
                status, *fields = self._response()
                self._test.assertEqual(status, line)
            else:
                self._test.assertTrue(any(fits(field, line) for field in fields),
                                      "%s: not in %s" % (line, fields))

    def _response(self):
        """The lines of its head; the body is read and dropped."""
        head = []
        while not head or head[-1]:
            line = self._answers.readline()
            self._test.assertTrue(line.endswith(b"\r\n"), "cut off behind %s" % head)
            head.append(line.decode().rstrip("\r\n"))
        length = re.search(r"^Content-Length: (\d+)$", "\n".join(head), re.MULTILINE)
        if length and not self._asked_for_head:
            self._test.assertEqual(len(self._answers.read(int(length.group(1)))),
                                   int(length.group(1)))
        return head[:-1]

    def heed(self, lines):
        """What becomes of the connection."""
        for line in lines:
            if line == "The client sends no more.":
                self._socket.shutdown(socket.SHUT_WR)
            elif line == "The server closes the connection.":
                self._test.assertEqual(self._answers.read(), b"")
            elif line == "The connection stays open.":
                self._asked_for_head = False
                self._socket.sendall(STILL_OPEN)
                self._test.assertEqual(self._response()[0], "HTTP/1.1 200 OK")
            else:
                self._test.fail("nobody knows how to do this: " + line)


class Wire(Case):
    def test_the_examples_of_http_md_are_answered_as_it_says(self):
        self.assertEqual(len(examples()), read_page().count("\n### Rule "))
        for rule, lines in examples():
            with self.subTest(rule=rule), contextlib.closing(Conversation(self)) as conversation:
                does = {">": conversation.say, "<": conversation.hear, "*": conversation.heed}
                for mark, run in itertools.groupby(lines, key=lambda line: line[0]):
                    does[mark]([line[2:] for line in run])
