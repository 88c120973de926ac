"""The examples of common/HTTP.md, each on a connection of its own: the server has to answer as the
page says."""

import contextlib
import itertools
import os
import re
import sys

from case import SOON_SECONDS, TOP, Case, contents, patience

sys.path.insert(1, os.path.join(TOP, "common", "classroom", "exercises"))
from client import Client

RULE = re.compile(r"^### Rule (\d+): (?:(?!^###? ).*\n)*?```text\n((?:[><*] .*\n)+)```$", re.MULTILINE)
REPEATED = re.compile(r"\{(.*?)\*(\d+)\}")
STILL_OPEN = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def read_page():
    return contents(os.path.join(TOP, "common", "HTTP.md")).decode()


def examples():
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
        self._client = Client(test.server.host, test.server.port, patience(SOON_SECONDS))
        self._asked_for_head = False

    def close(self):
        self._client.close()

    def say(self, lines):
        said = b"".join(map(bytes_of, lines))
        self._asked_for_head = said.startswith(b"HEAD ")
        self._client.say(said)

    def hear(self, lines):
        """As many responses as there are status lines, each with the fields behind its own."""
        for line in lines:
            if line.startswith("HTTP/"):
                status, *fields = self._client.hear(self._asked_for_head).head
                self._test.assertEqual(status, line)
            else:
                self._test.assertTrue(any(fits(field, line) for field in fields),
                                      "%s: not in %s" % (line, fields))

    def heed(self, lines):
        """What becomes of the connection."""
        for line in lines:
            if line == "The client sends no more.":
                self._client.half_close()
            elif line == "The server closes the connection.":
                self._test.assertEqual(self._client.end_of(), b"")
            elif line == "The connection stays open.":
                self._client.say(STILL_OPEN)
                self._test.assertEqual(self._client.hear().status, 200)
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
