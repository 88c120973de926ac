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

    def clients(self, ms, count, store):
        """Connections to a relay before Redis."""
        slow = redis.SlowRedis(store, ms, self.folder)
        slow.__enter__()
        self.addCleanup(slow.end)
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", slow.port), 10)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as the servers do
            self.addCleanup(client.close)
            yield client

    def test_what_all_ask_at_once_is_late_by_the_delay_and_no_more(self):
        """Never less, and at best hardly more. 200 times 50 ms would be 10 s."""
        for ms, count, times, slack_ms, store in (
                (0, 1, 1, 3, self.store), (1, 1, 1, 3, self.store), (10, 1, 1, 3, self.store.on_a_port()),
                (10, 1, 100, 3, self.store), (50, 200, 1, 150, self.store)):
            with self.subTest(ms=ms, count=count, times=times):
                clients, took, answers = list(self.clients(ms, count, store)), [], times * b"+PONG\r\n"
                while len(took) < TRIES and (not took or min(took) >= ms + slack_ms):
                    start = time.monotonic()
                    for client in clients * times:
                        client.sendall(b"PING\r\n")
                    for client in clients:
                        self.assertEqual(receive(client, len(answers)), answers)
                    took.append((time.monotonic() - start) * 1000)
                self.assertGreaterEqual(min(took), ms)
                self.assertLess(min(took), ms + slack_ms)

    def test_redis_may_end_first(self):
        for client in self.clients(1, 20, self.store):
            client.sendall(b"QUIT\r\n")
            self.assertEqual(receive(client, 9), b"+OK\r\n")  # and then the end


if __name__ == "__main__":
    unittest.main()
