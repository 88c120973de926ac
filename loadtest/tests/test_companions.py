"""Each companion shows the page of the seven, and asks Redis as often. What is not installed is
skipped by name."""

import html
import http.client
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


def fetch(url):
    """The pages that are asked for on one connection, as long as the server keeps it."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    for _ in range(PAGES):
        connection.request("GET", "/guestbook")
        answer = connection.getresponse()
        yield answer.status, answer.getheader("Content-Type"), answer.read().decode("utf-8")
    connection.close()


def plain(page):
    """Without the counter and the server's name. Each language has its own way to write what HTML
    gives a meaning, and some write more characters so; here all are written alike."""
    def alike(found):
        character = html.unescape(found[0])
        return html.escape(character) if character in '&<>"' else character

    page = re.sub(r"number [\d,]+\. The [\w-]+ server", "number N. The X server", page)
    return re.sub(r"&#?\w+;", alike, page)


class Companions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = programs.folder(cls)
        made = subprocess.run(["make", "-s", "-C", machine.TOP, "DEPS=no", "companions"], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8")
        print(made.stdout, end="", flush=True)  # what could not be built, which is skipped below
        cls.store = redis.start_private(cls.folder, (), redis.free_port()).on_a_port()
        cls.addClassCleanup(processes.end_all)
        cls.ours = {}
        for name, fill in cls.states().items():
            fill()
            with servers.Server(top.path_of("epoll"), cls.store.where, os.path.join(cls.folder, "epoll.log")) as server:
                [*_, (_, _, page)] = fetch(server.url)
            cls.ours[name] = plain(page)

    @classmethod
    def states(cls):
        def more_than_a_page():
            cls.store.seed(24)
            cls.store.ask("RPUSH", redis.ENTRIES, ENTRY)
            cls.store.ask("SET", redis.VISITORS, "1234500")

        return {"empty": cls.store.forget, "five": cls.store.seed, "more": more_than_a_page}

    def check(self, name):
        reason = companions.missing(name)
        if reason:
            self.skipTest("%s: %s" % (name, reason))
        log = os.path.join(self.folder, name + ".log")
        with peers.Command(name, companions.line(name), None, log, self.store.where) as server:
            for state, fill in self.states().items():
                fill()
                before = cells.counts(self.store)
                for status, kind, page in fetch(server.url):
                    self.assertEqual((status, kind), (200, "text/html; charset=utf-8"))
                    self.assertEqual(plain(page).splitlines(), self.ours[state].splitlines())
                counted = re.search(r"number ([\d,]+)\.", page).group(1)
                self.assertEqual(counted, "1,234,503" if state == "more" else str(PAGES))
                more = [late - early for late, early in zip(cells.counts(self.store), before)]
                self.assertEqual(list(cells.unequal(PAGES, more)), [])
            server.must_live()

    def test_each_shows_the_page_of_the_seven(self):
        for name in companions.NAMES:
            with self.subTest(name):
                self.check(name)


if __name__ == "__main__":
    unittest.main()
