"""What is measured starts, is found, and ends: a server of somebody else's, the peers, and the floor. What is not
installed is skipped by name."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
import unittest.mock
import urllib.request

import programs
import proc
import processes
from lib.measuring import idle, machine, meter, web
from lib.subjects import peers

REDIS = "127.0.0.1:6379"  # nobody asks it
PUBLIC = os.path.join(machine.TOP, "public")
OTHER = '%s "%s/another.py"' % (sys.executable, programs.HERE)
tearDownModule = processes.end_all


def gone_within(seconds, pids):
    """Those of them that are still there, and more than a zombie that init has yet to reap."""
    deadline = time.monotonic() + seconds
    pids = list(pids)
    while (left := [stat for stat in proc.everybody(pids) if stat.state != "Z"]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not left


class Cores(unittest.TestCase):
    def test_two_threads_of_one_core_are_named(self):
        for listed, second, are in (("0", 1, False), ("0,1", 1, True), ("0-1", 1, True), ("0,16", 16, True), ("0,16", 1, False)):
            with unittest.mock.patch.object(machine, "read", lambda _, listed=listed: listed):
                self.assertEqual(machine.are_threads_of_one(0, second), are, (listed, second))


class Subjects(unittest.TestCase):
    def setUp(self):
        self.folder = programs.folder(self)
        os.chmod(self.folder, 0o755)  # Apache, run by root, serves as nobody
        self.log = os.path.join(self.folder, "log")

    def test_the_server_is_measured_and_not_its_shell_and_all_of_the_line_ends(self):
        for line in ("cd /; sleep 60 & SERVER {port}", "cd / && sleep 60 & cd / && SERVER",
                     "cd / && sh -c 'SERVER {port}; true' | cat"):
            with self.subTest(line=line):
                with peers.Command("it", peers.command_line(line.replace("SERVER", OTHER)), None, self.log, REDIS) as server:
                    everybody = meter.Tree(server._process.pid).pids()
                    self.assertIn("another.py", machine.read("/proc/%d/cmdline" % server.pid).split("\0")[1])
                self.assertTrue(gone_within(2, everybody))

    def test_a_port_is_reserved_for_one_of_us_until_its_server_listens(self):
        with contextlib.ExitStack() as stack:
            ports = [stack.enter_context(peers.reserved_port()).getsockname()[1] for _ in range(500)]
            self.assertEqual(500, len(set(ports)))
            self.assertLess(max(ports), 32768)
            for port in ports:
                with socket.socket() as server:
                    server.bind(("127.0.0.1", port))

    def test_the_peers_serve_files_and_so_what_only_its_owner_may_read(self):
        root = os.path.join(self.folder, "root")
        os.mkdir(root, 0o700)
        shutil.copy(os.path.join(PUBLIC, "index.html"), root)
        core = min(os.sched_getaffinity(0))
        for name in peers.NAMES:
            with self.subTest(name):
                if peers.missing(name):
                    self.skipTest(peers.missing(name))
                with peers.Peer(name, root, {core}, self.log + name) as peer:
                    self.assertEqual(os.sched_getaffinity(peer.pid), {core})
                    with urllib.request.urlopen(peer.url + "/index.html", timeout=5) as answer:
                        self.assertEqual(answer.read().decode(), processes.printed(root + "/index.html"))
                    everybody = meter.Tree(peer.pid).pids()
                self.assertTrue(gone_within(2, everybody))

    @programs.needs(peers.FLOOR)
    def test_the_floor_keeps_a_connection(self):
        with peers.Floor(None, self.log) as floor, web.connected(floor.url, "/") as client:
            for _ in range(2):
                idle.ask(client, "/")  # or it is trouble

    SCRIPT = """
import os, signal, sys
from lib.subjects import peers
import redis
public, log = sys.argv[1:]
started = [peers.Peer(name, public, None, log + name) for name in peers.NAMES if not peers.missing(name)]
started += [peers.Floor(None, log + "floor"), redis.SlowRedis(redis.Redis("127.0.0.1:1"), 5, os.path.dirname(log))]
started += [peers.Command("it", "cd / && %s -m http.server {port}; true" % sys.executable, None, log + "it", "")]
print(*[each.__enter__().pid for each in started], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

    def test_nothing_outlives_who_started_it(self):
        done = subprocess.run([sys.executable, "-B", "-c", self.SCRIPT, PUBLIC, self.log],
                              stdout=subprocess.PIPE, check=False, env={**os.environ, "PYTHONPATH": programs.LOADTEST})
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.assertTrue(gone_within(3, map(int, done.stdout.split())))


if __name__ == "__main__":
    unittest.main()
