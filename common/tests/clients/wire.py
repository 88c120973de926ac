"""The examples of common/book/HTTP.md, each on a connection of its own: the server has to answer as the
page says."""

import contextlib
import itertools
import os
import re
import sys

from case import SOON_SECONDS, TOP, Case, contents, patience

sys.path.insert(1, os.path.join(TOP, "common", "tools", "lib"))
from client import Client

RULE = re.compile(r"^### Rule (\d+): (?:(?!^###? ).*\n)*?```text\n((?:[><*] .*\n)+)```$", re.MULTILINE)
STILL_OPEN = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def read_page():
    return contents(os.path.join(TOP, "common", "book", "HTTP.md")).decode()


def examples():
    return [(rule, lines.splitlines()) for rule, lines in RULE.findall(read_page())]


def bytes_of(text):
    """What a line of the page stands for."""
    return text.encode("ascii").decode("unicode_escape").encode("latin-1")


def fits(field, line):
    """Is that what the page says? A line that ends in ... is the beginning of one."""
    return field.startswith(line[:-3]) if line.endswith("...") else field == line


class Wire(Case):
    def test_the_examples_of_http_md_are_answered_as_it_says(self):
        self.assertEqual(len(examples()), read_page().count("```text"))
        for rule, lines in examples():
            with self.subTest(rule=rule), contextlib.closing(
                    Client(self.server.host, self.server.port, patience(SOON_SECONDS))) as client:
                for mark, run in itertools.groupby(lines, key=lambda line: line[0]):
                    texts = [line[2:] for line in run]
                    if mark == ">":
                        said = b"".join(map(bytes_of, texts))
                        client.say(said)
                    elif mark == "<":
                        self.hear(client, texts, said.startswith(b"HEAD "))
                    else:
                        for text in texts:
                            self.heed(client, text)

    def hear(self, client, lines, asked_for_head):
        """As many responses as there are status lines, each with the fields behind its own."""
        for line in lines:
            if line.startswith("HTTP/"):
                status, *fields = client.hear(asked_for_head).head
                self.assertEqual(status, line)
            else:
                self.assertTrue(any(fits(field, line) for field in fields), "%s: not in %s" % (line, fields))

    def heed(self, client, line):
        """What becomes of the connection."""
        if line == "The client sends no more.":
            client.half_close()
        elif line == "The server closes the connection.":
            self.assertEqual(client.end_of(), b"")
        else:
            self.assertEqual(line, "The connection stays open.")
            client.say(STILL_OPEN)
            self.assertEqual(client.hear().status, 200)
