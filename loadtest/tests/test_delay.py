"""The relay before Redis is late by what was asked, whatever passes, and loses nothing."""

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

from lib.measuring import machine
from lib.subjects import relay, redis
from proc import runs

DELAY_MS = 10
SLACK_MS = 3
TRIES = 10  # others may be at work on this machine: the quickest of so many counts


class Echo:
    """What stands in Redis' place: sends everything back until its client ends, or until it
    has been asked `most` times."""

    def __init__(self, path=None, most=None):
        self.most = most
        self.listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.listener.bind(path or ("127.0.0.1", 0))
        self.listener.listen(512)
        name = self.listener.getsockname()
        self.where = "unix:" + name if path else "%s:%d" % name
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, contextlib.suppress(OSError):
            for _ in itertools.count() if self.most is None else range(self.most):
                said = client.recv(65536)
                if not said:
                    return
                client.sendall(said)


@unittest.skipUnless(os.access(relay.path(), os.X_OK), "slow_redis is not built")
class Relay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def relay(self, ms=DELAY_MS, before=None):
        """A relay before an Echo, until the test is over."""
        if not before:
            before = Echo("%s/%d.sock" % (self.folder, ms))
            self.addCleanup(before.listener.close)
        slow = relay.SlowRedis(before, ms, None, self.folder)
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

    def assertLate(self, ms, action, slack_ms=SLACK_MS):
        """The action never takes less than `ms`, and at best hardly more."""
        times = []
        while len(times) < TRIES and (not times or min(times) >= ms + slack_ms):
            start = time.monotonic()
            action()
            times.append((time.monotonic() - start) * 1000)
        self.assertGreaterEqual(min(times), ms)
        self.assertLess(min(times), ms + slack_ms)

    def ask(self, client, said=b"x"):
        client.sendall(said)
        self.assertEqual(receive(client, len(said)), said)

    def test_an_answer_is_late_by_the_delay_and_no_more(self):
        for ms in (0, 1, DELAY_MS, 50):
            with self.subTest(ms=ms):
                client = self.connect(self.relay(ms))
                self.assertLate(ms, lambda client=client: self.ask(client))

    def test_what_is_sent_at_once_is_late_once(self):
        client = self.connect(self.relay())

        def pipelined():
            for _ in range(100):
                client.sendall(b"0123456789")
            self.assertEqual(receive(client, 1000), b"0123456789" * 100)

        self.assertLate(DELAY_MS, pipelined)

    def test_two_hundred_connections_are_late_together(self):
        slow = self.relay(50)
        clients = [self.connect(slow) for _ in range(200)]

        def all_ask():
            for client in clients:
                client.sendall(b"y")
            for client in clients:
                self.assertEqual(receive(client, 1), b"y")

        self.assertLate(50, all_ask, slack_ms=150)  # 200 times 50 ms would be 10 s

    def test_redis_may_end_first(self):
        """Again and again: what one connection leaves serves the next."""
        echo = Echo("%s/quits.sock" % self.folder, most=1)
        self.addCleanup(echo.listener.close)
        slow = self.relay(1, echo)
        for _ in range(20):
            clients = [self.connect(slow) for _ in range(3)]
            for client in clients:
                client.sendall(b"bye")
            for client in clients:
                self.assertEqual(receive(client, 4), b"bye")  # and then the end
                client.close()
        slow.must_live()

    def test_over_tcp_it_is_late_by_the_same(self):
        slow = self.relay(before=Echo())
        self.assertTrue(slow.where.startswith("127.0.0.1:"))
        client = self.connect(slow)
        self.assertLate(DELAY_MS, lambda: self.ask(client))


@unittest.skipUnless(os.access(relay.path(), os.X_OK), "slow_redis is not built")
class Killed(unittest.TestCase):
    SCRIPT = """
import sys, time
sys.path.insert(0, %r)
from lib.subjects import relay, redis
with relay.SlowRedis(redis.Redis("127.0.0.1:1"), 5, None, sys.argv[1]) as slow:
    print(slow._process.pid, flush=True)
    time.sleep(60)
"""

    def test_it_ends_even_if_we_are_killed(self):
        script = self.SCRIPT % os.path.join(machine.TOP, "loadtest")
        with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
                [sys.executable, "-B", "-c", script, folder],
                stdout=subprocess.PIPE, encoding="utf-8") as program:
            relay = int(program.stdout.readline())
            program.send_signal(signal.SIGKILL)
            program.wait()
            deadline = time.monotonic() + 2
            while runs(relay) and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertFalse(runs(relay))


class NotBuilt(unittest.TestCase):
    """In a fresh copy of the project `make` has built the servers, and no relay."""

    def test_a_run_that_needs_it_says_so_before_it_begins(self):
        for options in (["--delay", "0,10"], ["--dials"]):
            with self.subTest(options=options), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    [os.path.join(machine.TOP, "loadtest", "compare"), *options, "--into",
                     os.path.join(folder, "results")], env={**os.environ, "PLAIN": folder},
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    encoding="utf-8", check=False)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, r"\Acompare: .*slow_redis is not built\. "
                                              r"`make instruments` builds it\n\Z")
                self.assertEqual(os.listdir(folder), [])


def receive(client, length):
    """So many bytes, or fewer if the end comes first."""
    got = b""
    while len(got) < length:
        more = client.recv(min(length - len(got), 1 << 20))
        if not more:
            break
        got += more
    return got
