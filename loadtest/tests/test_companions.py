"""Each companion shows the page of the seven, and asks Redis as often. What is not installed is
skipped by name."""

import html
import http.client
import itertools
import os
import re
import subprocess
import unittest
from urllib.parse import urlsplit

import programs
import processes
import redis
import servers
import top
from lib import cells
from lib.measuring import machine
from lib.subjects import companions, peers

PAGES = 3  # that each is asked for, in each state of the guestbook
ENTRY = "2026-01-05T09:05:00Z\n<b>Bj\u00f6rn</b>\n\"O'Reilly\" & {{visitors}}\nof <i>two</i> lines = `1` / 2"


def plain(page):
    """Without the server's name. Each language has its own way to write what HTML gives a meaning, and some
    write more characters so; here all are written alike."""
    def alike(found):
        character = html.unescape(found[0])
        return html.escape(character) if character in '&<>"' else character

    return re.sub(r"&#?\w+;", alike, re.sub(r"The [\w-]+ server", "The X server", page))


class Companions(unittest.TestCase):
    def setUp(self):
        self.folder = programs.folder(self)
        made = subprocess.run(["make", "-s", "-C", machine.TOP, "DEPS=no", "companions"], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8")
        print(made.stdout, end="", flush=True)  # what could not be built, which is skipped below
        self.store = redis.start_private(self.folder, (), redis.free_port()).on_a_port()
        self.addCleanup(processes.end_all)

    def more_than_a_page(self):
        self.store.seed(24)
        self.store.ask("RPUSH", redis.ENTRIES, ENTRY)
        self.store.ask("SET", redis.VISITORS, "1234500")

    def pages(self, server):
        """All that it answers, on one connection, as long as it keeps it. It must have counted each visitor."""
        for fill in (self.store.forget, self.store.seed, self.more_than_a_page):
            fill()
            before = cells.counts(self.store)
            connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
            for _ in range(PAGES):
                connection.request("GET", "/guestbook")
                answer = connection.getresponse()
                yield answer.status, answer.getheader("Content-Type"), plain(answer.read().decode("utf-8")).splitlines()
            connection.close()
            more = [late - early for late, early in zip(cells.counts(self.store), before)]
            self.assertEqual(list(cells.unequal(PAGES, more)), [])
        server.must_live()

    def test_each_shows_the_page_of_the_seven(self):
        with servers.Server(top.path_of("epoll"), self.store.where, os.path.join(self.folder, "epoll.log")) as server:
            ours = list(self.pages(server))
        for name in companions.NAMES:
            with self.subTest(name):
                if companions.missing(name):
                    self.skipTest("%s: %s" % (name, companions.missing(name)))
                log = os.path.join(self.folder, name + ".log")
                with peers.Command(name, companions.line(name), None, log, self.store.where) as server:
                    for page, its in itertools.zip_longest(ours, self.pages(server)):
                        self.assertEqual(its, page)


if __name__ == "__main__":
    unittest.main()
