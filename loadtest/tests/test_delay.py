"""The relay before Redis is late by what was asked, whatever passes, and loses nothing."""

import os
import socket
import subprocess
import time
import unittest

import programs
from lib.measuring import processes
from lib.subjects import redis, relay

DELAY_MS = 10
SLACK_MS = 3
TRIES = 10  # others may be at work on this machine: the quickest of so many counts


def receive(client, length):
    """So many bytes, or fewer if the end comes first."""
    with client.makefile("rb") as replies:
        return replies.read(length)


@programs.needs(relay.path(), redis.SERVER)
class Relay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = programs.folder(cls)
        cls.addClassCleanup(processes.end_all)
        cls.store = redis.start_private(cls.folder, None, redis.free_port())

    def relay(self, ms=DELAY_MS, store=None):
        """A relay before Redis, until the test is over."""
        slow = relay.SlowRedis(store or self.store, ms, None, self.folder)
        slow.__enter__()
        self.addCleanup(slow.end)
        return slow

    def connect(self, slow):
        if slow.where.startswith("unix:"):
            client = socket.socket(socket.AF_UNIX)
            client.connect(slow.where[len("unix:"):])
        else:
            host, _, port = slow.where.rpartition(":")
            client = socket.create_connection((host, int(port)))
        client.settimeout(10)
        self.addCleanup(client.close)
        return client

    def assertLate(self, ms, clients, times=1, slack_ms=SLACK_MS):
        """What all ask at once, so many times, is never answered in less than `ms`, and at best in hardly
        more."""
        took, answers = [], times * b"+PONG\r\n"
        while len(took) < TRIES and (not took or min(took) >= ms + slack_ms):
            start = time.monotonic()
            for client in clients * times:
                client.sendall(b"PING\r\n")
            for client in clients:
                self.assertEqual(receive(client, len(answers)), answers)
            took.append((time.monotonic() - start) * 1000)
        self.assertGreaterEqual(min(took), ms)
        self.assertLess(min(took), ms + slack_ms)

    def test_an_answer_is_late_by_the_delay_and_no_more(self):
        for ms in (0, 1, DELAY_MS, 50):
            with self.subTest(ms=ms):
                self.assertLate(ms, [self.connect(self.relay(ms))])

    def test_what_is_sent_at_once_is_late_once(self):
        self.assertLate(DELAY_MS, [self.connect(self.relay())], times=100)

    def test_two_hundred_connections_are_late_together(self):
        slow = self.relay(50)  # 200 times 50 ms would be 10 s
        self.assertLate(50, [self.connect(slow) for _ in range(200)], slack_ms=150)

    def test_redis_may_end_first(self):
        """Again and again: what one connection leaves serves the next."""
        slow = self.relay(1)
        for _ in range(20):
            clients = [self.connect(slow) for _ in range(3)]
            for client in clients:
                client.sendall(b"QUIT\r\n")
            for client in clients:
                self.assertEqual(receive(client, 6), b"+OK\r\n")  # and then the end
                client.close()
        slow.must_live()

    def test_over_tcp_it_is_late_by_the_same(self):
        slow = self.relay(store=self.store.on_a_port())
        self.assertTrue(slow.where.startswith("127.0.0.1:"))
        self.assertLate(DELAY_MS, [self.connect(slow)])


class NotBuilt(unittest.TestCase):
    """In a fresh copy of the project `make` has built the servers, and no relay."""

    def test_a_run_that_needs_it_says_so_before_it_begins(self):
        for options in (["--delay", "0,10"], ["--dials"]):
            with self.subTest(options=options):
                folder = programs.folder(self)
                done = programs.run("compare", *options, "--into", folder + "/results",
                                    stderr=subprocess.PIPE, env={**os.environ, "PLAIN": folder})
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, r"\Acompare: .*slow_redis is not built\. "
                                              r"`make instruments` builds it\n\Z")
                self.assertEqual(os.listdir(folder), [])
