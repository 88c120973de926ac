"""What we start, we end: with its children, and if it does not want to."""

import os
import signal
import subprocess
import sys
import unittest
from unittest import mock

import programs
from lib.measuring import processes
from proc import gone_within

POPEN = subprocess.Popen


class Ending(unittest.TestCase):
    def start(self, *command, cores=()):
        """A command, as soon as it has printed its first line; returns that too."""
        process = processes.start(command, cores, stdout=subprocess.PIPE, encoding="utf-8")
        self.addCleanup(process.stdout.close)
        return process, process.stdout.readline().strip()

    def test_what_it_forked_ends_with_it(self):
        process, child = self.start("sh", "-c", "sleep 60 & echo $!; wait")
        processes.end(process)
        self.assertTrue(gone_within(2, int(child)))

    def test_who_ignores_sigterm_is_killed(self):
        process, _ = self.start("sh", "-c", "trap '' TERM; echo; while :; do sleep 1; done")
        with mock.patch.object(processes, "PATIENCE_SECONDS", 0.1):
            self.assertEqual(processes.end(process), -signal.SIGKILL)

    def test_pinning_is_inherited(self):
        ours = os.sched_getaffinity(0)
        process, cores = self.start(sys.executable, "-c", "import os; print(os.sched_getaffinity(0))",
                                    cores=(min(ours),))
        processes.end(process)
        self.assertEqual(cores, "{%d}" % min(ours))
        self.assertEqual(os.sched_getaffinity(0), ours)  # we ourselves stay where we were

    def test_a_signal_while_one_starts_finds_it_listed(self):
        """The signal comes when the process is there, and start() has not returned."""
        listed = []
        before = signal.signal(signal.SIGHUP, lambda *_: listed.extend(processes._running))
        self.addCleanup(signal.signal, signal.SIGHUP, before)

        def popen(*arguments, **options):
            process = POPEN(*arguments, **options)
            signal.raise_signal(signal.SIGHUP)
            return process

        with mock.patch("lib.measuring.processes.subprocess.Popen", popen):
            process = processes.start(["true"])
        processes.end(process)
        self.assertIn(process, listed)

    def test_a_signal_ends_what_was_started(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(signal=number), programs.python(
                    "import time\nfrom lib.measuring import processes\nwith processes.tidied():\n"
                    "    print(processes.start(['sleep', '60']).pid, flush=True); time.sleep(60)") as program:
                child = int(program.stdout.readline())
                program.send_signal(number)
                self.assertEqual(program.wait(5), status)
                self.assertTrue(gone_within(1, child))
