"""What remains of the runs that are stored, and how one is made. And the ladder, which is one."""

import os
import re
import signal
import subprocess
import unittest
from unittest import mock

import programs
from lib.measuring import machine

publish = programs.load("publish")
COMMAND = "loadtest/compare --quick --rounds 2 --servers epoll,floor --levels 20"
RUN = ("some", 1, COMMAND, "a test")


class Publish(unittest.TestCase):
    def setUp(self):
        top = programs.folder(self)
        for name in ("STORE", "WORK"):
            patch = mock.patch.object(publish, name, os.path.join(top, name))
            patch.start()
            self.addCleanup(patch.stop)
        self.work, self.there = (os.path.join(folder, "some")
                                 for folder in (publish.WORK, publish.STORE))

    def stored(self, table="| a |", **facts):
        facts = {"ZeroHTTPd": "v1", "sources": machine.sources(), "command": COMMAND, **facts}
        os.makedirs(self.there, exist_ok=True)
        for name, text in (("environment.txt", "".join("%s: %s\n" % pair for pair in facts.items())),
                           ("table.md", table)):
            with open(os.path.join(self.there, name), "w", encoding="utf-8") as file:
                file.write(text)


class Remaining(Publish):
    def test_one_of_another_command_or_of_other_servers(self):
        self.stored(command="loadtest/compare")
        self.assertEqual(publish.why(RUN), "made by another command")
        self.stored(sources="0")
        self.assertIn("v1", publish.why(RUN))

    def test_a_noisy_one_unless_clients_are_turned_away_in_it(self):
        self.stored(table="between its rounds it drifted by 15 %, in one cell by 40 %.")
        self.assertFalse(publish.why(RUN))
        self.stored(table="between its rounds it drifted by 20 %, in one cell by 40 %.")
        self.assertIn("noisy", publish.why(RUN))
        with mock.patch.object(publish, "TURNED_AWAY", ["some"]):
            self.assertIn("noisy", publish.why(RUN))
            self.stored(table="- (1) by Little's law few were waiting")
            self.assertFalse(publish.why(RUN))
        self.assertIn("noisy", publish.why(RUN))

    def test_one_in_which_a_server_or_a_level_is_missing(self):
        self.stored(table="What a clock ended, as a worker's tick, is left out.")
        self.assertFalse(publish.why(RUN))
        for words in ("floor is left out: floor is not built.", "1,000 clients are left out: no ports.",
                      "Interrupted: 228 of 280 cells were measured."):
            self.stored(table="Three rounds. " + words)
            self.assertEqual(publish.why(RUN), "incomplete: " + words)

    def test_every_run_has_a_name_of_its_own_and_a_program(self):
        self.assertEqual(len({run[0] for run in publish.RUNS}), len(publish.RUNS))
        for run in publish.RUNS:
            self.assertTrue(os.access(os.path.join(machine.TOP, run[2].split()[0]), os.X_OK))


class Fingerprint(unittest.TestCase):
    """Of the code that is measured."""

    def is_changed_by(self, pattern, new):
        read, before = machine.read, machine.sources()
        with mock.patch.object(machine, "read", lambda path: re.sub(pattern, new, read(path))):
            return machine.sources() != before

    def test_a_new_version_or_comment_is_no_new_code(self):
        self.assertFalse(self.is_changed_by(r'(ZEROHTTPD_VERSION )".*"', r'\1"12.34.56"'))
        self.assertFalse(self.is_changed_by(r"/\* ", "/* Note: "))
        self.assertTrue(self.is_changed_by(r"ZEROHTTPD_VERSION", "RELEASE"))


class Making(Publish):
    def test_what_it_leaves(self):
        with mock.patch.object(publish, "DRIFT_PERCENT", 1000):
            self.assertFalse(publish.make(RUN))
        publish.store(RUN)
        self.assertEqual(sorted(os.listdir(self.there)), [
            "cells.tsv", "environment.txt", "table.md"])
        for path, shown in (("delay/chart.svg", True), ("latency/chart-2.svg", False)):
            name, picture = path.split("/")
            self.assertEqual(publish.is_shown((name,), picture), shown)
        with mock.patch.object(publish, "DRIFT_PERCENT", 1000):
            self.assertFalse(publish.why(RUN))

    def test_ctrl_c_ends_it_and_leaves_what_is_done(self):
        kept = os.path.join(self.work, "raw", "kept.pickle")
        with programs.python(
                "import sys; sys.path.insert(0, %r); import test_publish; p = test_publish.publish; "
                "p.WORK = %r; p.make(%r)" % (programs.HERE, publish.WORK, RUN), stderr=subprocess.DEVNULL) as program:
            while program.poll() is None and not os.path.exists(kept):
                pass
            program.send_signal(signal.SIGINT)
        self.assertEqual(program.returncode, 130)
        self.assertTrue(os.path.exists(kept))


class Ladder(unittest.TestCase):
    def test_what_it_leaves(self):
        folder = programs.folder(self)
        done = programs.run("../05_prethreading/ladder/climb", "--clients", "4", "--rounds", "1", "--into",
                            folder, "copy")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(sorted(os.listdir(folder)), ["cells.tsv", "environment.txt", "table.md"])
        self.assertIn("| prethreading copy |", machine.read(folder + "/table.md"))
