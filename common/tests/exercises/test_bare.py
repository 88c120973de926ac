"""The seven bare.c, and chapter 5's queue.c: each stands alone and fits a page, and the chapters print the steps from
one to the next whole. What each of the seven serves is in test_lab, and here is what it does when a call fails.
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
import buffers
import served
from tried import HALF, REST, Server, crowd, visit

FILES = sorted(glob.glob(os.path.join(glob.escape(place.TOP), "0*_*", "bare.c")))
MOST_LINES = 5 * [60] + 2 * [80] + [90]
QUEUE = os.path.join(os.path.dirname(FILES[4]), "queue.c")
RACES = ["-g", "-fsanitize=thread"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def versions(before, after):
    """What a reader has of a file after each block that the chapter of `after` prints for it."""
    page, info = os.path.join(os.path.dirname(after), "README.md"), "diff " + os.path.relpath(after, place.TOP)
    mine = edits.without_essay(read(before))
    for block in markdown.Document(page, read(page)).blocks:
        if block.info == info:
            mine = edits.typed(mine, block.lines)
            yield mine


def compiled(text, program, *options):
    subprocess.run(["cc", "-w", "-pthread", "-o", program, "-x", "c", "-", *options], input=text.encode(), check=True)
    return program


def built(files, folder, *options):
    """The program of each, by the same key."""
    return {key: compiled(read(path), os.path.join(folder, "program%s" % key), *options) for key, path in files.items()}


class Pages(unittest.TestCase):
    def test_there_are_seven_and_each_fits_its_page_and_needs_no_option_to_compile(self):
        self.assertEqual(len(FILES), 7)
        for path, most in zip([*FILES, QUEUE], MOST_LINES):
            with self.subTest(path):
                self.assertLessEqual(len(read(path).splitlines()), most)
                self.assertNotIn('\n#include "', read(path))
                subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", path], check=True)

    def test_what_a_chapter_prints_makes_this_file_of_the_one_before(self):
        for before, after in zip(FILES, FILES[1:]):
            with self.subTest(after):
                self.assertEqual("", edits.differences(list(versions(before, after))[-1], edits.without_essay(read(after))))

    def test_chapter_5_makes_the_queue_of_its_own_and_goes_on_from_there(self):
        self.assertIn(edits.without_essay(read(QUEUE)), [*versions(FILES[4], QUEUE)][:-1])

    def test_chapter_1_prints_all_of_its_own(self):
        page = os.path.join(os.path.dirname(FILES[0]), "README.md")
        printed = [line for block in markdown.Document(page, read(page)).blocks
                   if block.info == "c 01_iterative/bare.c" for line in block.lines]
        self.assertEqual([line for line in read(FILES[0]).split("\n") if line], [line for line in printed if line])


class Weather(unittest.TestCase):
    """Each is started by a program that makes something scarce, or lets a call fail."""
    FEW, MANY = 16, 20  # descriptors, and clients that come
    PROGRAMS, OPTIONS = {**dict(enumerate(FILES, 1)), "queue": QUEUE}, []

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="zerohttpd."))
        cls.programs = built(cls.PROGRAMS, cls.folder, *cls.OPTIONS)

    def server(self, key):
        return Server(self.programs[key] + " {port}", self.folder)

    @contextlib.contextmanager
    def started(self, key, *by):
        with self.server(key) as server:
            server.begin_again(*by)
            yield server

    @contextlib.contextmanager
    def traced(self, number, inject):
        """And what it called. Without SHELL, bash(1) would open sockets first, to ask who the user is."""
        log = os.path.join(self.folder, "trace")
        with self.started(number, "strace", "-qq", "-E", "SHELL=/bin/bash", "-f", "-o", log, *("-einject=" + each for each in inject)) as server:
            yield server, lambda: read(log)

    def test_without_descriptors_poll_serves_the_clients_that_it_has(self):
        with self.started(6, "prlimit", "--nofile=%d" % self.FEW) as server, crowd(server, 2) as known, crowd(server, self.MANY):
            for client in known:
                client.say(HALF + REST)
            self.assertTrue(all(client.all() for client in known))

    def test_a_call_that_a_signal_interrupts_is_not_the_end(self):
        for number in (6, 7):
            for call in ("recvfrom", "sendto"):
                with self.subTest((number, call)), self.traced(number, ["%s:error=EINTR:when=1" % call]) as (server, log):
                    self.assertTrue(visit(server))
                    self.assertIn("(INJECTED)", log())

    def test_a_client_that_could_not_be_accepted_is_not_taken_for_one(self):
        for number in self.programs:
            with self.subTest(number), self.traced(number, ["accept,accept4:error=ECONNABORTED:when=1"]) as (server, log):
                self.assertTrue(visit(server))
                self.assertIn("(INJECTED)", log())
                self.assertNotRegex(log(), r"close\(-1|CTL_ADD, -1|EBADF")


class Queue(unittest.TestCase):
    """queue.c, and what the chapter makes of it at last: the one lets clients wait, and the other refuses them. The
    lab tries the first one, too, and threads that lose their core."""

    def test_the_traps_that_the_lab_has_for_a_reader_s(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="zerohttpd."))
        for text, room in (read(QUEUE), 4 + 10 + 1), ([*versions(FILES[4], QUEUE)][-1], 4 + 10):
            for options, trap in ([], buffers.wakes), (RACES, buffers.full), (RACES, buffers.stops):
                program = compiled(text, os.path.join(folder, "queue"), *options)
                with self.subTest((room, options, trap.__name__)), Server(program + " {port}", folder) as server:
                    server.await_banner()
                    self.assertIn(" %d clients" % room if trap != buffers.wakes else "", trap(server))
                    if trap == buffers.stops:
                        self.assertEqual(0, served.status_of(server.pid))
                    self.assertEqual("", server.printed() + server.errors())


if __name__ == "__main__":
    unittest.main()
