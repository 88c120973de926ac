"""The seven ask.c: bare.c, in which Redis counts each visit. All that holds for bare.c holds for them, and here is
what the second party to wait for adds: who waits for whom, who gets which number, and what happens when Redis, or
a client, has left in the meantime.
"""

import concurrent.futures
import contextlib
import os
import re
import subprocess
import tempfile
import time
import unittest

import test_bare  # first: it says where the rest lies
import edits
import proc
import redis
import redises
import traps
import waiting
from test_bare import built, read, versions
from tried import HALF, REST, Client, Server, free_port

FILES = [os.path.join(os.path.dirname(path), "ask.c") for path in test_bare.FILES]
PROGRAMS, OPTIONS = dict(enumerate(FILES, 1)), ["-lhiredis"]
MOST_MORE = 5 * [17] + 2 * [76]  # lines than bare.c
ONE_AT_A_TIME, AS_MANY, LOOPS = [1], [2, 4], [6, 7]  # AS_MANY: a process or a thread for each client
PRINTED = [1, 6]  # whole, as a diff. The others quote what differs from these
AWAY_MS = 20
SOON_SECONDS = 3


class Asking(Server):
    """It is told where Redis listens."""

    def __init__(self, program, folder, redis_port):
        super().__init__("%s {port} %d" % (program, redis_port), folder)


class Relay(redis.SlowRedis):
    """On a port that stays the same, so that it may go and come back."""

    def __init__(self, store, ms, folder, port):
        super().__init__(store, ms, folder)
        self._command[2] = "127.0.0.1:%d" % port


def said(server):
    """(status, number) for one visitor, who waits for it."""
    with Client(server) as client:
        client.say(HALF + REST)
        return heard(client)


def heard(client):
    found = re.fullmatch(rb"HTTP/1.1 (\d+) [^\r]*\r\n(?:[^\r]+\r\n)*\r\n(?:You are visitor (\d+)\n)?", client.all())
    return found and (int(found[1]), found[2] and int(found[2]))


class Pages(unittest.TestCase):
    def test_there_are_seven_and_each_is_a_little_longer_than_its_bare_and_needs_only_hiredis(self):
        for path, bare, more in zip(FILES, test_bare.FILES, MOST_MORE):
            with self.subTest(path):
                self.assertLessEqual(len(read(path).splitlines()) - len(read(bare).splitlines()), more)
                self.assertNotIn('\n#include "', read(path))
                subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", path], check=True)

    def test_what_chapters_1_and_6_print_makes_it_of_their_bare(self):
        for bare, path in [(test_bare.FILES[n - 1], FILES[n - 1]) for n in PRINTED]:
            with self.subTest(path):
                self.assertEqual("", edits.differences(list(versions(bare, path))[-1], edits.without_essay(read(path))))


class WithRedis(unittest.TestCase):
    """A Redis that can be held, and a relay before it, on a port that stays the same."""
    FLAGS, CHAPTERS = [], range(1, 8)

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="zerohttpd."))
        cls.programs = built(PROGRAMS, cls.folder, *OPTIONS, *cls.FLAGS)
        cls.redis = redises.HeldRedis(redis.start_private(os.path.join(cls.folder, "redis")).where)
        cls.redis_port = free_port()

    def setUp(self):
        self.redis.release()
        self.redis.ask("DEL", "visits")

    def relay(self, ms=0):
        return Relay(self.redis, ms, self.folder, self.redis_port)

    @contextlib.contextmanager
    def started(self, number, ms=0):
        with self.relay(ms), self.ready(number) as server:
            yield server

    @contextlib.contextmanager
    def ready(self, number):
        with Asking(self.programs[number], self.folder, self.redis_port) as server:
            server.await_banner()
            yield server

    def must_be_clean(self, server):
        self.assertTrue(server.alive())
        self.assertNotRegex(server.errors(), "Sanitizer|runtime error")


def read_all(server, clients):
    """Has the server read what these have said?"""
    unread = {each.client for each in proc.connections(server.port) if each.unread or each.inode == 0}
    return not unread & {client.port() for client in clients}


class Numbers(WithRedis):
    def test_two_hundred_visits_get_two_hundred_numbers(self):
        for number in self.CHAPTERS:
            self.redis.ask("DEL", "visits")
            with self.subTest(number), self.started(number) as server, concurrent.futures.ThreadPoolExecutor(8) as pool:
                got = list(pool.map(lambda _: said(server), range(200)))
                self.assertEqual(sorted(got, key=str), sorted(((200, n) for n in range(1, 201)), key=str))
                self.must_be_clean(server)

    def test_four_at_once_wait_for_redis_together_but_in_chapter_1(self):
        for number in self.CHAPTERS:
            with self.subTest(number), self.started(number, AWAY_MS) as server:
                said(server)
                waits = [together(server) for _ in range(3)]
                if number in ONE_AT_A_TIME:
                    self.assertGreaterEqual(min(waits), 4 * AWAY_MS)
                else:
                    self.assertTrue(waiting.until(lambda: together(server) < 3 * AWAY_MS, SOON_SECONDS), waits)

    def test_a_client_that_leaves_while_asked_takes_nobody_s_number(self):
        for number in self.CHAPTERS:
            for leave in (Client.reset, Client.leave, Client.close):
                self.redis.ask("DEL", "visits")
                with self.subTest((number, leave.__name__)), self.started(number) as server, contextlib.ExitStack() as stack:
                    said(server)
                    self.redis.hold()
                    clients = [stack.enter_context(Client(server)) for _ in range(3)]
                    for client in clients:
                        client.say(HALF + REST)
                    asked = clients[:1] if number in ONE_AT_A_TIME else clients
                    self.assertTrue(waiting.until(self.redis.held, SOON_SECONDS))
                    self.assertTrue(waiting.until(lambda: read_all(server, asked), SOON_SECONDS))
                    leave(clients[0])
                    with Client(server) as late:  # whose client may get the memory of the one that has left
                        late.say(HALF + REST)
                        if number in LOOPS:
                            self.assertTrue(waiting.until(lambda: read_all(server, [late]), SOON_SECONDS))
                        self.redis.release()
                        got = [heard(client) for client in (*clients[1:], late)]
                    self.assertEqual([200] * 3, [each and each[0] for each in got])
                    self.assertLess({n for _, n in got}, {2, 3, 4, 5})
                    self.assertEqual(len({n for _, n in got}), 3)
                    if number in LOOPS:  # it asked last
                        self.assertEqual(got[-1], (200, 5))
                    self.assertEqual(said(server), (200, 6))
                    self.must_be_clean(server)

    def test_without_redis_503_and_when_it_is_back_so_are_the_numbers(self):
        for number in self.CHAPTERS:
            self.redis.ask("DEL", "visits")
            with self.subTest(number), self.ready(number) as server:
                self.assertEqual([(503, None)] * 5, [said(server) for _ in range(5)])
                for _ in range(3):
                    with self.relay():
                        self.assertTrue(waiting.until(lambda: said(server) != (503, None), SOON_SECONDS))
                        self.assertEqual([200] * 5, [said(server)[0] for _ in range(5)])
                    self.assertTrue(waiting.until(lambda: said(server) == (503, None), SOON_SECONDS))
                self.must_be_clean(server)

    def test_redis_leaves_while_asked_and_all_who_have_asked_are_told(self):
        for number in self.CHAPTERS:
            with self.subTest(number), self.ready(number) as server, contextlib.ExitStack() as stack:
                relay = self.relay()
                with relay:
                    waiting.until(lambda: said(server) != (503, None), SOON_SECONDS)
                    self.redis.hold()
                    clients = [stack.enter_context(Client(server)) for _ in range(3)]
                    for client in clients:
                        client.say(HALF + REST)
                    self.assertTrue(waiting.until(self.redis.held, SOON_SECONDS))
                    self.assertTrue(waiting.until(lambda: read_all(server, clients[:1]), SOON_SECONDS))
                self.assertEqual([(503, None)] * 3, [heard(client) for client in clients])
                self.redis.release()
                with self.relay():
                    self.assertTrue(waiting.until(lambda: said(server) != (503, None), SOON_SECONDS))
                self.must_be_clean(server)

    def test_redis_hangs_up_on_a_connection_that_is_idle(self):
        for number in self.CHAPTERS:
            with self.subTest(number), self.started(number) as server:
                for _ in range(3):
                    self.assertTrue(waiting.until(lambda: said(server) != (503, None), SOON_SECONDS))
                    self.redis.hang_up()
                self.assertTrue(waiting.until(lambda: said(server) != (503, None), SOON_SECONDS))
                self.must_be_clean(server)

    def test_an_error_is_no_number(self):
        for number in self.CHAPTERS:
            self.redis.ask("SET", "visits", "many")
            with self.subTest(number), self.started(number) as server:
                self.assertEqual((503, None), said(server))
                self.redis.ask("DEL", "visits")
                self.assertEqual((200, 1), said(server))


class Sanitized(Numbers):
    FLAGS = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


class Races(Numbers):
    """Those of the threads. (hiredis itself is not watched.)"""
    FLAGS, CHAPTERS = ["-g", "-fsanitize=thread"], (4, 5)


class Weather(test_bare.Weather):
    PROGRAMS, OPTIONS = PROGRAMS, OPTIONS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.redis_port = free_port()
        cls.redis = redis.start_private(os.path.join(cls.folder, "redis"), port=cls.redis_port)

    def server(self, number):
        return Asking(self.programs[number], self.folder, self.redis_port)

    def test_a_redis_that_is_gone_already_does_not_end_it_with_a_signal(self):
        for number in range(1, 8):
            broken = ["write,sendto:error=EPIPE:signal=PIPE:when=1"]  # of each process or thread
            with self.subTest(number), self.traced(number, broken) as (server, log):
                said(server)
                if number not in AS_MANY:
                    self.assertTrue(waiting.until(lambda: test_bare.visit(server), SOON_SECONDS))
                self.assertIn("SIGPIPE", log())
                self.assertNotIn("killed by SIGPIPE", log())

    def test_without_a_descriptor_for_redis_503_and_later_a_number(self):
        for number in LOOPS:
            with self.subTest(number), self.traced(number, ["socket:error=EMFILE:when=2"]) as (server, log):
                self.assertEqual((503, None), said(server))
                self.assertEqual(200, said(server)[0])
                self.assertIn("EMFILE", log())

    def test_the_traps_of_its_chapter_s_lab(self):
        for number in range(1, 8):
            for trap in traps.OF[number]:
                with self.subTest((number, trap.__name__)), self.server(number) as server:
                    server.await_banner()
                    trap(server)


def together(server, number=4):
    """Milliseconds until so many visitors, who ask at the same moment, have their pages."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server)) for _ in range(number)]
        began = time.monotonic()
        for client in clients:
            client.say(HALF + REST)
        for client in clients:
            client.all()
        return 1000 * (time.monotonic() - began)


if __name__ == "__main__":
    unittest.main()
