"""The relay before Redis is late by what was asked, whatever passes, and loses nothing."""

import os
import socket
import time
import unittest

import programs
import processes
import redis
from lib.measuring import machine

RELAY = os.path.join(machine.PLAIN, "loadtest", "slow_redis")
DELAY_MS, SLACK_MS = 10, 3
TRIES = 10  # others may be at work on this machine: the quickest of so many counts


def receive(client, length):
    """So many bytes, or fewer if the end comes first."""
    with client.makefile("rb") as replies:
        return replies.read(length)


@programs.needs(RELAY, redis.SERVER)
class Relay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = programs.folder(cls)
        cls.addClassCleanup(processes.end_all)
        cls.store = redis.start_private(cls.folder, (), redis.free_port())

    def clients(self, ms, count=1, store=None):
        """Connections to a relay before Redis."""
        slow = redis.SlowRedis(store or self.store, ms, self.folder)
        slow.__enter__()
        self.addCleanup(slow.end)
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", slow.port), 10)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as the servers do
            self.addCleanup(client.close)
            yield client

    def assert_late(self, ms, clients, times=1, slack_ms=SLACK_MS):
        """What all ask at once, so many times, is never answered in less than `ms`, and at best in hardly
        more."""
        clients, took, answers = list(clients), [], times * b"+PONG\r\n"
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
        for ms in (0, 1, 50):
            with self.subTest(ms=ms):
                self.assert_late(ms, self.clients(ms))
        self.assert_late(DELAY_MS, self.clients(DELAY_MS, store=self.store.on_a_port()))

    def test_all_at_once_are_late_together(self):
        self.assert_late(DELAY_MS, self.clients(DELAY_MS), times=100)
        self.assert_late(50, self.clients(50, 200), slack_ms=150)  # 200 times 50 ms would be 10 s

    def test_redis_may_end_first(self):
        for client in self.clients(1, 20):
            client.sendall(b"QUIT\r\n")
            self.assertEqual(receive(client, 9), b"+OK\r\n")  # and then the end


if __name__ == "__main__":
    unittest.main()
