"""The seven bare.c: each stands alone and fits a page, and the chapters print the steps from one to the next
whole. What each serves is in test_lab, and here is what it does when a call fails.
"""

import contextlib
import glob
import os
import subprocess
import sys
import tempfile
import unittest

import place
import edits
import markdown

sys.path[:0] = [os.path.join(place.TOP, "common", "classroom", "lab"), os.path.join(place.TOP, "loadtest")]
from tried import HALF, REST, Server, crowd, visit

FILES = sorted(glob.glob(os.path.join(place.TOP, "0*_*", "bare.c")))
MOST_LINES = 5 * [60] + 2 * [80]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def built(files, folder, *options):
    programs = [os.path.join(folder, "%d" % number) for number in range(1, 8)]
    for path, program in zip(files, programs):
        subprocess.run(["cc", "-w", "-o", program, path, *options], check=True)
    return programs


class Pages(unittest.TestCase):
    def test_there_are_seven_and_each_fits_its_page_and_needs_no_option_to_compile(self):
        self.assertEqual(len(FILES), 7)
        for path, most in zip(FILES, MOST_LINES):
            with self.subTest(path):
                self.assertLessEqual(len(read(path).splitlines()), most)
                self.assertNotIn('\n#include "', read(path))
                subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", path], check=True)

    def test_what_a_chapter_prints_makes_this_file_of_the_one_before(self):
        for before, after in zip(FILES, FILES[1:]):
            page = os.path.join(os.path.dirname(after), "README.md")
            mine, wanted = (edits.without_essay(read(path)) for path in (before, after))
            info = "diff " + os.path.relpath(after, place.TOP)
            with self.subTest(page):
                for block in markdown.Document(page, read(page)).blocks:
                    mine = edits.typed(mine, block.lines) if block.info == info else mine
                self.assertEqual("", edits.differences(mine, wanted))

    def test_chapter_1_prints_all_of_its_own(self):
        page = os.path.join(os.path.dirname(FILES[0]), "README.md")
        printed = [line for block in markdown.Document(page, read(page)).blocks
                   if block.info == "c 01_iterative/bare.c" for line in block.lines]
        self.assertEqual([line for line in read(FILES[0]).split("\n") if line], [line for line in printed if line])


class Weather(unittest.TestCase):
    """Each is started by a program that makes something scarce, or lets a call fail."""
    FEW, MANY = 16, 20  # descriptors, and clients that come
    FILES, OPTIONS = FILES, []

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="zerohttpd."))
        cls.programs = built(cls.FILES, cls.folder, *cls.OPTIONS)

    def server(self, number):
        return Server(self.programs[number - 1] + " {port}", self.folder)

    @contextlib.contextmanager
    def started(self, number, *by):
        with self.server(number) as server:
            server.begin_again(*by)
            yield server

    @contextlib.contextmanager
    def traced(self, number, inject):
        """And what it called."""
        log = os.path.join(self.folder, "trace")
        with self.started(number, "strace", "-qq", "-f", "-o", log, *("-einject=" + each for each in inject)) as server:
            yield server, lambda: read(log)

    def test_without_descriptors_poll_serves_the_clients_that_it_has(self):
        with self.started(6, "prlimit", "--nofile=%d" % self.FEW) as server, crowd(server, 2) as known, crowd(server, self.MANY):
            for client in known:
                client.say(HALF + REST)
            self.assertTrue(all(client.all() for client in known))

    def test_a_call_that_would_have_to_wait_is_not_the_end(self):
        for number in (6, 7):
            for call in ("recvfrom", "sendto"):
                for error in ("EAGAIN", "EINTR"):
                    with self.subTest((number, call, error)), self.traced(number, ["%s:error=%s:when=1" % (call, error)]) as (server, _):
                        self.assertTrue(visit(server))

    def test_a_client_that_could_not_be_accepted_is_not_taken_for_one(self):
        for number in range(1, 8):
            with self.subTest(number), self.traced(number, ["accept,accept4:error=ECONNABORTED:when=1"]) as (server, log):
                self.assertTrue(visit(server))
                self.assertIn("(INJECTED)", log())
                self.assertNotRegex(log(), r"close\(-1|CTL_ADD, -1|EBADF")


if __name__ == "__main__":
    unittest.main()
