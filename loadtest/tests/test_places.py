"""Where things run: here, in a lab, or somewhere else; and that no program leaves a lab behind."""

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

from lib import experiment
from lib.measuring import machine, meter
from lib.subjects import lab, redis, servers
from proc import runs
from test_lab import gone_within, machine_s_own, network_namespace

WHY_NOT = lab.why_not()
PROGRAM = os.path.join(machine.TOP, "loadtest", "ramp")
NEEDED = ["h2load", "nginx", "wrk", "ab", "curl", redis.SERVER]
MISSING = [tool for tool in NEEDED if not shutil.which(tool)]
BUILT = os.access(servers.path_of("epoll"), os.X_OK)


class Options(unittest.TestCase):
    def parse(self, *words):
        with mock.patch.object(sys, "argv", ["compare", *words]), \
                mock.patch.dict(os.environ, clean_environment(), clear=True), \
                contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                return experiment.Experiment("")._parse()
            except SystemExit:
                return said.getvalue().splitlines()[-1]

    def test_what_does_not_go_together_is_refused_in_one_line(self):
        for words, said in ((["--lab", "--inventory", "machines"], "different places"),
                            (["--url", "index.html"], "not a path"), (["--flush"], "--redis"),
                            (["--lab", "--redis", "h:1"], "--lab has a Redis of its own"),
                            (["--inventory", "f", "--redis", "h:1"], "--inventory has a Redis of its own"),
                            (["--servers", "epoll,nobody"], "none of"), (["--levels", "0"], "number from 1")):
            self.assertIn(said, self.parse(*words))
        self.assertEqual(self.parse("--servers", "epoll,poll --workers 5").servers,
                         ["epoll", "poll --workers 5"])
        self.assertEqual(experiment.milliseconds("0,0.1,10,10"), [0, 0.1, 10])


class Apart(unittest.TestCase):
    """In a process of its own, because what it does to that cannot be undone."""

    def test_a_crowd_finds_room_there_and_the_machine_stays_as_it_was(self):
        if WHY_NOT:
            self.skipTest(WHY_NOT)
        before = machine_s_own()
        done = subprocess.run(
            [sys.executable, "-c", "from lib.subjects import places\n"
             "with places.Apart():\n"
             "    print(open('/proc/sys/net/core/somaxconn').read())\n"
             "    import socket; door = socket.create_server(('127.0.0.1', 0))\n"
             "    socket.create_connection(door.getsockname())"],
            cwd=os.path.join(machine.TOP, "loadtest"), stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout.split(), [b"65535"])
        self.assertEqual(machine_s_own(), before)


@unittest.skipIf(WHY_NOT, WHY_NOT)
@unittest.skipIf(MISSING, "missing: %s" % ", ".join(MISSING))
@unittest.skipUnless(BUILT, "epoll is not built")
class ProgramsInTheLab(unittest.TestCase):
    def test_ramp_climbs_directly_and_through_the_balancer(self):
        before = machine_s_own()
        done = ramp("--lab", "--servers", "epoll", "--instances", "2", "--from", "100",
                    "--to", "200", "--steps", "2", "--step-seconds", "0.3")
        self.addCleanup(remove_results, done)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| epoll, nginx before 2 | ", done.stdout)
        self.assertEqual(machine_s_own(), before)

    def test_killed_in_the_middle_it_leaves_what_was_measured_and_nothing_else(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number):
                self.kill_one(number)

    def kill_one(self, number):
        before, own = machine_s_own(), network_namespace(os.getpid())
        with tempfile.TemporaryDirectory() as temporary, subprocess.Popen(
                [sys.executable, "-B", PROGRAM, "--lab", "--servers", "forking", "--instances", "2",
                 "--from", "200", "--to", "400", "--steps", "2", "--step-seconds", "1"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={**os.environ, "TMPDIR": temporary, "REDIS": ""}) as program:
            people = self.await_people(program.pid, {"h2load", "nginx", "forking", redis.SERVER})
            spaces = set(map(network_namespace, people)) - {own, None}
            self.assertEqual(len(spaces), 5)
            folder = folder_of(people)
            self.addCleanup(shutil.rmtree, folder)
            program.send_signal(number)
            program.wait(20)
            self.assertTrue(gone_within(3, spaces))
            self.assertEqual(left_after(3, people), [])
            self.assertEqual((machine_s_own(), os.listdir(temporary)), (before, []))
        with open(os.path.join(folder, "cells.tsv"), encoding="utf-8") as tsv:
            self.assertGreater(len(tsv.readlines()), 2)  # its header, and the steps before nginx

    def await_people(self, root, wanted):
        """{pid: name} of all that has come from `root`, as soon as all those are there."""
        tree = meter.Tree(root)
        for _ in range(600):
            people = {pid: name_of(pid) for pid in tree.pids()}
            if wanted <= set(people.values()):
                return people
            time.sleep(0.05)
        return self.fail("of %s there is only %s" % (wanted, people))


def clean_environment():
    return {name: value for name, value in os.environ.items() if name not in ("REDIS", "QUICK")}


def ramp(*words):
    return subprocess.run([sys.executable, "-B", PROGRAM, *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          env=clean_environment(), timeout=60, check=False)


def remove_results(done):
    """The folder that a program names at last."""
    found = re.search(r"^(\S+)/report\.html$", done.stderr, re.MULTILINE)
    if found:
        shutil.rmtree(found.group(1))


def folder_of(people):
    """Where the results go: Redis stands in it."""
    store = next(pid for pid, name in people.items() if name == redis.SERVER)
    return os.readlink("/proc/%d/cwd" % store)


def left_after(seconds, people):
    """The names of those who still run then."""
    deadline = time.monotonic() + seconds
    while any(map(runs, people)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return [name for pid, name in people.items() if runs(pid)]


def name_of(pid):
    return meter.read("/proc/%d/comm" % pid).strip()
