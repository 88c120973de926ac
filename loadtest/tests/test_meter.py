"""What a load cost and who was busy: from texts as the kernel writes them, and alive."""

import os
import subprocess
import sys
import time
import unittest
from unittest import mock

import programs
from lib.measuring import machine, meter, processes

ALONE = machine.Cores((), (), ())

BURN = """
import sys, time
def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
"""


class Families(unittest.TestCase):
    def test_a_name_may_hold_anything(self):
        stat = meter.parse_stat("7 (a) R 1 (b) c) S 5 3 3 0 -1 4194304 1 2 3 4 10 20 300 4000 20 0 9 0 12345 1 1\n")
        self.assertEqual(stat, meter.Stat(7, 5, 3, 10, 20, 4300, 9, "S"))

    def test_descendants_and_the_session_s_orphans_belong_to_it(self):
        stats = [meter.Stat(*numbers, 0, 0, 0, 1, "S") for numbers in (
            (10, 1, 10), (11, 10, 10),
            (12, 11, 12),  # a session of its own, but a grandchild
            (13, 1, 10),  # its parent is gone
            (20, 1, 20), (21, 20, 20))]
        self.assertEqual(meter.family(10, stats), {10, 11, 12, 13})


class ContextSwitches(unittest.TestCase):
    def thread(self, seconds, voluntary, involuntary):
        return meter.Thread(seconds, meter.Switches(voluntary, involuntary))

    def test_the_difference_of_all_threads_new_ones_included(self):
        before = {1: self.thread(1.0, 10, 1)}
        after = {1: self.thread(2.0, 110, 3), 2: self.thread(0.5, 7, 5)}
        self.assertEqual(meter.switches_of(
            meter.threads_between(before, after), 1.5), meter.Switches(107, 7))

    def test_unknown_if_others_did_the_work(self):
        threads = {1: self.thread(1.0, 10, 1)}
        for after, seconds in ((threads, 0.5), ({}, 0.0)):
            self.assertIsNone(meter.switches_of(meter.threads_between(threads, after), seconds))


class CoreShares(unittest.TestCase):

    def test_work_idleness_and_theft_are_told_apart(self):
        before = [100] * 8  # user nice system idle iowait irq softirq steal
        after = [120, 110, 115, 130, 110, 102, 103, 110]
        core = meter.core_between(before, after)
        self.assertEqual(core, meter.Core(busy=50.0, steal=10.0, user=60.0))

    def test_of_several_cores_it_is_the_mean(self):
        one, two = [0, 0, 0, 100, 0, 0, 0, 0], [100, 0, 0, 0, 0, 0, 0, 0]
        core = meter.core_between([0] * 8, meter.together([one, None, two]))
        self.assertEqual(core.busy, 50.0)
        self.assertEqual(meter.core_between([], meter.together([])), meter.UNKNOWN)

    def test_work_between_two_ticks_counts(self):
        idle, full = meter.Core(7.0, 0.0, 50.0), meter.Core(99.0, 0.0, 50.0)
        self.assertEqual(meter.at_least(37.0, idle).busy, 37.0)
        self.assertEqual(meter.at_least(101.0, full).busy, 100.0)
        self.assertEqual(meter.at_least(37.0, full), full)
        self.assertEqual(meter.at_least(37.0, meter.UNKNOWN), meter.UNKNOWN)


class KernelsRecord(unittest.TestCase):
    def test_four_figures_of_tcp_and_each_host_counts_once(self):
        text = ("TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeouts TCPSynRetrans\n"
                "TcpExt: 1 22 23 4 5\n"
                "IpExt: InNoRoutes ListenOverflows\nIpExt: 0 9999\n")
        with mock.patch.object(meter, "read", lambda _: text):
            self.assertEqual(meter.network_record(["self", os.getpid(), "is-gone"]), {
                "ListenOverflows": 22, "ListenDrops": 23, "TCPTimeouts": 4, "TCPSynRetrans": 5})


class Alive(unittest.TestCase):
    def start(self, script):
        process = processes.start([sys.executable, "-B", "-c", BURN + script],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(processes.end, process)
        return process

    def measure(self, script):
        """The script begins after the line "go", and says when it is done."""
        process = self.start("print(flush=True); input()\n%s\nprint(flush=True); sys.stdin.read()" % script)
        process.stdout.readline()
        with meter.Meter(process.pid, ALONE) as measured:
            process.stdin.write("go\n")
            process.stdin.flush()
            process.stdout.readline()
        return measured.reading

    def test_its_own_work(self):
        reading = self.measure("burn(0.3)")
        self.assertAlmostEqual(reading.cpu_us, 300e3, delta=10e3)
        self.assertLess(reading.switches.voluntary, 100)

    def test_many_short_children_are_counted_exactly(self):
        """Each less than a tick of /proc: rounding each would make nothing of them."""
        reading = self.measure("import os\nfor _ in range(50):\n    pid = os.fork()\n"
                               "    if not pid: burn(0.004); os._exit(0)\n    os.waitpid(pid, 0)")
        self.assertGreater(reading.cpu_us, 195e3)
        self.assertLess(reading.cpu_us, 350e3)  # forking is work, too

    def test_memory_and_numbers_at_their_peak(self):
        reading = self.measure("import threading\nhuge = b'x' * (50 << 20)\n"
                               "t = threading.Thread(target=time.sleep, args=(0.4,))\n"
                               "t.start(); t.join(); del huge; time.sleep(0.3)")
        self.assertGreater(reading.peak_pss, 50 << 20)
        self.assertLess(reading.peak_pss, 90 << 20)
        self.assertEqual((reading.processes, reading.threads), (1, 2))

    def test_looking_at_a_crowd_costs_little(self):
        process = self.start("import os\nfor _ in range(500):\n"
                             "    if not os.fork(): time.sleep(60)\n"
                             "print(flush=True); burn(60)")
        process.stdout.readline()
        with meter.Meter(process.pid, ALONE) as measured:
            time.sleep(1.5)
        self.assertEqual(measured.reading.processes, 501)
        self.assertGreater(measured._memory.looks, 1)
        self.assertLess(measured._memory.seconds, 0.1)
        with meter.Meter(process.pid, ALONE) as short:
            time.sleep(0.2)
        self.assertLess(short.reading.cpu_us, short.reading.seconds * 1.05e6)  # it has one thread that works


class Verdicts(unittest.TestCase):
    """Server, client and Redis: their cores, how busy these were, and what each has used."""

    TWO = machine.Cores((0,), (1,), (1,))
    THREE = machine.Cores((0,), (1,), (2,))

    def test_who_was_full(self):
        for pinned, busy, used, others, whose in (
                (self.TWO, (100, 40, 40), (98, 20, 15), 0, meter.SERVER),
                (self.TWO, (60, 97, 97), (58, 80, 15), 0, meter.CLIENT),
                (self.TWO, (95, 97, 97), (93, 80, 15), 0, meter.BOTH),
                (self.TWO, (60, 97, 97), (58, 40, 55), 0, meter.REDIS),
                (self.TWO, (89, 89, 89), (85, 60, 25), 0, meter.NOBODY),
                (self.TWO, (60, 97, 97), (58, 60, 15), 22, meter.OTHERS),
                (self.TWO, (60, 70, 70), (58, 30, 15), 22, meter.NOBODY),  # they were in nobody's way
                (self.THREE, (40, 30, 95), (35, 25, 93), 0, meter.REDIS),
                (machine.Cores((0, 1), (1,), (1,)), (95, 95, 95), (150, 30, 9), 0, meter.SERVER),
                (machine.Cores((), (1,), (1,)), (None, 95, 95), (0, 93, 0), 0, meter.CLIENT),
                (machine.Cores((), (), ()), (None, None, None), (50, 50, 0), 0, meter.NOT_PINNED)):
            with self.subTest(busy=busy, used=used):
                self.assertEqual(meter.verdict(pinned, machine.Cores(*busy), dict(zip(
                    ("server", "client", "redis", "thread"), (*used, used[0] / 2))), others), whose)

    def test_one_thread_that_is_full_is_the_server_s_limit_on_any_number_of_cores(self):
        used = {"server": 99.0, "client": 20.0, "redis": 5.0, "thread": 97.0}
        pinned = machine.Cores((0, 1), (2,), (3,))
        self.assertEqual(meter.verdict(pinned, machine.Cores(50, 20, 5), used), meter.SERVER)

    def test_each_party_s_own_cpu_time(self):
        """The client burns for 0.3 s on one core while the server sleeps on another."""
        cores = sorted(os.sched_getaffinity(0))
        server, burner = ["sleep", "60"], [sys.executable, "-B", "-c", BURN + "burn(0.3)"]
        if len(cores) < 2:
            self.skipTest("there is one core")
        process = processes.start(server, cores[:1])
        self.addCleanup(processes.end, process)
        pinned = machine.Cores((cores[0],), (cores[1],), (cores[1],))
        with meter.Meter(process.pid, pinned, redis=[process.pid]) as measured:
            client = processes.start(burner, cores[1:2])
            processes.wait(client)
            processes.end(client)
        reading = measured.reading
        self.assertAlmostEqual(reading.used["client"] * reading.seconds / 100, 0.33, delta=0.08)
        self.assertLess(reading.used["server"], 5)

    def test_little_s_law(self):
        self.assertAlmostEqual(meter.off(100, 10000, 9), 0.1)


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

    def test_the_load_generator_has_all_that_are_left(self):
        for usable, count, most, cores in (
                ([4], 1, None, ((), (), ())), ([3, 5], 1, None, ((3,), (5,), (5,))),
                ([3, 5], 2, None, ((3, 5), (5,), (5,))), (range(3), 1, None, ((0,), (1,), (2,))),
                (range(8), 2, None, ((0, 1), (2, 3, 4, 5, 6), (7,))), (range(8), 1, 2, ((0,), (1, 2), (7,)))):
            with mock.patch.object(machine, "usable_cores", lambda usable=usable: [*usable]):
                self.assertEqual(machine.choose_cores(count, most), cores)


class Fingerprint(unittest.TestCase):
    def test_a_program_says_how_it_was_compiled(self):
        for text, compiler, flags in (
                ("\0GNU C11 12.2.0 -O2 -g\0__read_chk\0", "gcc 12.2.0", "-O2 -g -D_FORTIFY_SOURCE"),
                ("\0GNU C11 13.1.0 -O0\0__stack_chk_fail\0", "gcc 13.1.0", "-O0"),
                ("\0Debian clang version 14.0.6\0", "clang version 14.0.6", "unknown"),
                ("", "unknown", "unknown")):
            with self.subTest(text):
                self.assertEqual(machine._built(text), [("compiler", compiler), ("flags", flags)])

    def test_a_setting_of_the_kernel_that_is_missing_is_unknown(self):
        folder = programs.folder(self)
        with mock.patch.object(machine, "CPU", folder + "/"):
            for value, text in ((None, "unknown"), ("0", "on"), ("1", "off")):
                if value:
                    os.makedirs(folder + "/intel_pstate", exist_ok=True)
                    with open(folder + "/intel_pstate/no_turbo", "w", encoding="utf-8") as file:
                        file.write(value + "\n")
                speed = dict(machine._speed())
                self.assertEqual(speed["turbo"], text)
                self.assertEqual((speed["governor"], speed["mitigations"]), ("unknown", "unknown"))
