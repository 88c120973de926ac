"""The seven ask.c: bare.c, in which Redis counts each visit. What the lab tries on a reader's is in test_lab. Here it is
tried for races, and what holds for bare.c holds for them, also when a call fails.
"""

import os
import subprocess
import tempfile
import unittest

import test_bare  # first: it says where the rest lies
import asks
import edits
import redis
import redises
import traps
from test_bare import built, read, versions
from tried import Server

FILES = [os.path.join(os.path.dirname(path), "ask.c") for path in test_bare.FILES]
PROGRAMS, OPTIONS = dict(enumerate(FILES, 1)), ["-lhiredis"]
MOST_MORE = 5 * [17] + 2 * [76]  # lines than bare.c
THREADS, LOOPS = [4, 5], [6, 7]
PRINTED = {1: test_bare.FILES[0], 6: test_bare.FILES[5], 7: FILES[5]}  # whole, as a diff of that. The others quote lines


def private_redis(folder):
    return redises.HeldRedis(redis.start_private(os.path.join(folder, "redis")).where)


class Pages(unittest.TestCase):
    def test_there_are_seven_and_each_is_a_little_longer_than_its_bare_and_needs_only_hiredis(self):
        for path, bare, more in zip(FILES, test_bare.FILES, MOST_MORE):
            with self.subTest(path):
                self.assertLessEqual(len(read(path).splitlines()) - len(read(bare).splitlines()), more)
                self.assertNotIn('\n#include "', read(path))
                subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", path], check=True)

    def test_what_chapters_1_6_and_7_print_makes_it_whole(self):
        for number, before in PRINTED.items():
            with self.subTest(number):
                path = FILES[number - 1]
                self.assertEqual("", edits.differences(list(versions(before, path))[-1], edits.without_essay(read(path))))


class Races(unittest.TestCase):
    """Those of the threads. (hiredis itself is not watched.)"""

    def test_threads_race_for_nothing_in_the_traps_of_the_lab(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="zerohttpd."))
        programs = built({number: FILES[number - 1] for number in THREADS}, folder, *OPTIONS, *test_bare.RACES)
        store = private_redis(folder)
        for number in THREADS:
            for trap in asks.OF[number]:
                with self.subTest((number, trap.__name__)), Server(programs[number] + " {port} {redis_port}", folder, store) as server:
                    server.chapter = number
                    server.await_banner()
                    trap(server)
                    self.assertEqual(("", ""), (server.ending(), server.errors()))


class Weather(test_bare.Weather):
    PROGRAMS, OPTIONS = PROGRAMS, OPTIONS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.redis = private_redis(cls.folder)

    def server(self, number):
        return Server(self.programs[number] + " {port} {redis_port}", self.folder, self.redis)

    def test_an_error_is_no_number(self):
        for number in range(1, 8):
            self.redis.ask("SET", "visits", "many")
            with self.subTest(number), self.started(number) as server:
                self.assertTrue(asks.is_away(asks.visit(server)))
                self.redis.ask("DEL", "visits")
                self.assertEqual(1, asks.number_in(asks.visit(server)))

    def test_without_a_descriptor_for_redis_503_and_later_a_number(self):
        for number in LOOPS:
            with self.subTest(number), self.traced(number, ["socket:error=EMFILE:when=2"]) as (server, log):
                self.assertTrue(asks.is_away(asks.visit(server)))
                self.assertTrue(test_bare.visit(server))
                self.assertIn("EMFILE", log())

    def test_the_traps_of_its_chapter_s_bare_server(self):
        for number in range(1, 8):
            for trap in traps.OF[number]:
                with self.subTest((number, trap.__name__)), self.server(number) as server:
                    server.await_banner()
                    trap(server)


if __name__ == "__main__":
    unittest.main()
