"""What a load cost and who was busy: from texts as the kernel writes them, and alive."""

import os
import subprocess
import sys
import time
import unittest
from unittest import mock

import programs
import proc
import processes
from lib.measuring import machine, meter

CHILDREN = """
import os, sys, time
print("ready", flush=True)
sys.stdin.readline()
for _ in range(50):
    if not os.fork():
        while time.thread_time() < 0.004:
            pass
        os._exit(0)
    os.wait()
print("done", flush=True)
sys.stdin.read()
"""


class CoreShares(unittest.TestCase):
    def test_work_idleness_and_theft_are_told_apart(self):
        before = [100] * 8  # user nice system idle iowait irq softirq steal
        after = [120, 110, 115, 130, 110, 102, 103, 110]
        core = meter.core_between(before, after)
        self.assertEqual(core, meter.Core(busy=50.0, steal=10.0, programs=55.0))


class Alive(unittest.TestCase):
    def test_many_short_children_are_counted_exactly(self):
        """Each less than a tick of /proc: rounding each would make nothing of them."""
        process = processes.start([sys.executable, "-B", "-c", CHILDREN],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.addCleanup(processes.end, process)
        with process.stdout:
            process.stdout.readline()
            with meter.Meter((process.pid,), machine.Cores((), (), ())) as measured:
                print(file=process.stdin, flush=True)
                process.stdout.readline()
        self.assertGreater(measured.figures["server_cpu_us"], 195e3)
        self.assertLess(measured.figures["server_cpu_us"], 400e3)  # forking is work, too, and nothing counts twice

    @programs.needs("taskset")
    def test_a_stranger_on_our_core_is_seen(self):
        """And what he takes is nobody's of us."""
        core = min(os.sched_getaffinity(0))
        stranger = subprocess.Popen(["taskset", "-c", str(core), "sh", "-c", "while :; do :; done"])
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        while proc.cpu_seconds(proc.everybody([stranger.pid])) < 0.1:
            time.sleep(0.05)  # until it is at work
        with meter.Meter((), machine.Cores((core,), (core,), ())) as measured:
            time.sleep(0.5)
        self.assertGreater(measured.figures["others_percent"], 15)


class Quota(unittest.TestCase):
    def test_a_limit_of_a_container(self):
        for files, cores, periods in (({"/cpu.max": "30000 100000\n", "/cpu.stat": "nr_periods 9\nnr_throttled 7\n"}, 0.3, 7),
                                      ({"/cpu.max": "max 100000\n"}, None, 0)):
            known = {"/sys/fs/cgroup/a" + name: text for name, text in files.items()}
            known["/proc/self/cgroup"] = "0::/a/b\n"
            with mock.patch.object(machine, "read", lambda path, known=known: known.get(path, "")):
                self.assertEqual((machine.quota(), machine.throttled()), (cores, periods))


class Topology(unittest.TestCase):
    """What lscpu says: CPU, core, socket, MHz."""

    def test_the_cores_that_are_used(self):
        for listed, cores in (("0,0,0,\n1,1,0,", [0, 1]),
                              ("0,0,0,\n1,0,0,\n2,1,0,\n3,1,0,", [0, 2]),  # hyperthreads
                              ("0,0,0,\n1,0,0,", [0, 1]),  # but both if that is all there is
                              ("0,0,0,\n1,1,0,\n2,2,1,\n3,3,1,\n4,4,1,", [2, 3, 4]),  # one socket
                              ("0,0,0,3000\n1,1,0,5000\n2,2,0,5000\n3,3,0,5000", [1, 2, 3]),  # the fast ones
                              ("0,0,0,3000\n1,1,0,3000\n2,2,0,5000", [0, 1, 2])):  # too few of these
            with self.subTest(listed):
                self.assertEqual(machine.usable_cores(listed), cores)


if __name__ == "__main__":
    unittest.main()
