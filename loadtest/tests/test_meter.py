"""What a load cost and who was busy: from texts as the kernel writes them, and alive."""

import os
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib.measuring import machine, meter, processes

ALONE = machine.Cores((), (), ())

BURN = """
import sys, time
def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
"""


def stat_line(pid, parent, session, user=0, system=0, cuser=0, csystem=0, threads=1, name="x"):
    return "%d (%s) S %d %d %d 0 -1 4194304 1 2 3 4 %d %d %d %d 20 0 %d 0 12345 1 1\n" % (
        pid, name, parent, session, session, user, system, cuser, csystem, threads)


class FakeProc(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.proc = folder.name

    def write(self, path, text):
        path = os.path.join(self.proc, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def process(self, pid, parent, session, pss_kb=100, threads=1):
        self.write("%d/stat" % pid, stat_line(pid, parent, session, threads=threads))
        self.write("%d/smaps_rollup" % pid, "55-7f ---p 0 00:00 0 [rollup]\n"
                                            "Rss: 999 kB\nPss:%17d kB\nPss_Anon: 5 kB\n" % pss_kb)


class Families(FakeProc):
    def test_a_name_may_hold_anything(self):
        stat = meter.parse_stat(stat_line(7, 5, 3, 10, 20, 300, 4000, 9, name="a) R 1 (b) c"))
        self.assertEqual(stat, meter.Stat(7, 5, 3, 10, 20, 4300, 9, "S"))

    def test_descendants_and_the_session_s_orphans_belong_to_it(self):
        self.process(10, 1, 10)
        self.process(11, 10, 10)
        self.process(12, 11, 12)  # a session of its own, but a grandchild
        self.process(13, 1, 10)  # its parent is gone
        self.process(20, 1, 20)
        self.process(21, 20, 20)
        self.assertEqual(set(meter.Tree(10, self.proc).pids()), {10, 11, 12, 13})

    def test_later_children_are_found_and_the_gone_forgotten(self):
        self.process(10, 1, 10)
        self.process(11, 10, 10)
        self.process(20, 1, 20)
        tree = meter.Tree(10, self.proc)
        self.assertEqual(set(tree.pids()), {10, 11})
        os.remove(os.path.join(self.proc, "11/stat"))
        os.remove(os.path.join(self.proc, "11/smaps_rollup"))
        os.rmdir(os.path.join(self.proc, "11"))
        self.process(30, 10, 30)
        self.process(31, 30, 30)
        self.assertEqual(set(tree.pids()), {10, 30, 31})

    def test_a_stranger_is_read_once(self):
        self.process(10, 1, 10)
        self.process(20, 1, 20)
        tree = meter.Tree(10, self.proc)
        tree.pids()
        self.write("20/stat", "not to be parsed")
        self.assertEqual(tree.pids(), [10])


class MemoryOfATree(FakeProc):
    def look(self):
        memory = meter.Memory(meter.Tree(10, self.proc), None, self.proc)
        memory.look()
        return memory

    def test_the_sum_over_its_processes(self):
        self.process(10, 1, 10, pss_kb=1000, threads=3)
        self.process(11, 10, 10, pss_kb=50)
        self.process(20, 1, 20, pss_kb=777)
        memory = self.look()
        self.assertEqual((memory.peak_pss, memory.processes, memory.threads), (1050 * 1024, 2, 4))

    def test_of_a_crowd_some_are_asked(self):
        self.process(10, 1, 10)
        for pid in range(100, 1099):
            self.process(pid, 10, 10)
        memory = self.look()
        self.assertEqual((memory.peak_pss, memory.threads), (100 * 1000 * 1024, 1000))

    def test_the_peak_stays(self):
        self.process(10, 1, 10, pss_kb=1000)
        memory = self.look()
        self.process(10, 1, 10, pss_kb=10)
        memory.look()
        self.assertEqual(memory.peak_pss, 1000 * 1024)

    def test_none_to_be_had(self):
        self.write("10/stat", stat_line(10, 1, 10))
        self.assertIsNone(self.look().peak_pss)


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
    TEXT = "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 10 1 20 300 4 5 6 7 0 0\ncpu11 9 9 9 9 9 9 9 9 0 0\n"

    def test_the_line_of_that_core(self):
        self.assertEqual(meter.core_ticks(0, self.TEXT), [10, 1, 20, 300, 4, 5, 6, 7])
        self.assertIsNone(meter.core_ticks(1, self.TEXT))

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

    def test_unknown(self):
        for before, after in ((None, None), ([0] * 8, None), ([5] * 8, [5] * 8)):
            self.assertEqual(meter.core_between(before, after), meter.UNKNOWN)

    def test_an_idle_core_has_no_user_share(self):
        core = meter.core_between([0] * 8, [0, 0, 0, 100, 0, 0, 0, 0])
        self.assertEqual(core, meter.Core(0.0, 0.0, None))

    def test_work_between_two_ticks_counts(self):
        idle, full = meter.Core(7.0, 0.0, 50.0), meter.Core(99.0, 0.0, 50.0)
        self.assertEqual(meter.at_least(37.0, idle).busy, 37.0)
        self.assertEqual(meter.at_least(101.0, full).busy, 100.0)
        self.assertEqual(meter.at_least(37.0, full), full)
        self.assertEqual(meter.at_least(37.0, meter.UNKNOWN), meter.UNKNOWN)


class KernelsRecord(FakeProc):
    TEXT = ("TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeouts TCPSynRetrans\n"
            "TcpExt: 1 22 23 4 5\n"
            "IpExt: InNoRoutes ListenOverflows\nIpExt: 0 9999\n")

    def test_four_figures_of_tcp(self):
        self.assertEqual(meter.parse_record(self.TEXT), {
            "ListenOverflows": 22, "ListenDrops": 23, "TCPTimeouts": 4, "TCPSynRetrans": 5})

    def test_an_older_kernel_has_fewer(self):
        self.assertEqual(meter.parse_record("TcpExt: ListenDrops\nTcpExt: 3\n"),
                         {"ListenDrops": 3})
        self.assertEqual(meter.parse_record(""), {})

    def test_each_host_counts_once(self):
        for pid in (1, 2, 3):
            self.write("%d/net/netstat" % pid, self.TEXT)
        self.write("1/ns/net", "")
        os.makedirs(os.path.join(self.proc, "2/ns"))
        os.link(os.path.join(self.proc, "1/ns/net"), os.path.join(self.proc, "2/ns/net"))
        self.write("3/ns/net", "")
        record = meter.network_record([1, 2, 3, 4], self.proc)
        self.assertEqual(record["ListenOverflows"], 44)

    def test_this_machine_has_them_all(self):
        self.assertEqual(set(meter.network_record(["self"])), set(meter.RECORD))


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
        process = self.start("print(flush=True); input()\n%s\nprint(flush=True); input()" % script)
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

    def test_what_an_ended_child_did(self):
        reading = self.measure("import os\npid = os.fork()\nif not pid: burn(0.3); os._exit(0)\n"
                               "os.waitpid(pid, 0)")
        self.assertAlmostEqual(reading.cpu_us, 300e3, delta=25e3)
        self.assertIsNone(reading.switches)  # they went with the child

    def test_what_a_living_child_did(self):
        reading = self.measure("import os\na, b = os.pipe()\n"
                               "if not os.fork(): burn(0.3); os.write(b, b'x'); time.sleep(60)\n"
                               "os.read(a, 1)")
        self.assertAlmostEqual(reading.cpu_us, 300e3, delta=25e3)
        self.assertIsNotNone(reading.switches)

    def test_what_ended_threads_did(self):
        reading = self.measure("import threading\nfor _ in range(3):\n"
                               "    t = threading.Thread(target=burn, args=(0.1,))\n"
                               "    t.start(); t.join()")
        self.assertAlmostEqual(reading.cpu_us, 300e3, delta=15e3)
        self.assertIsNone(reading.switches)

    def test_many_short_children_are_counted_exactly(self):
        """Each less than a tick of /proc: rounding each would make nothing of them."""
        reading = self.measure("import os\nfor _ in range(50):\n    pid = os.fork()\n"
                               "    if not pid: burn(0.004); os._exit(0)\n    os.waitpid(pid, 0)")
        self.assertGreater(reading.cpu_us, 195e3)
        self.assertLess(reading.cpu_us, 350e3)  # forking is work, too

    def test_waits_are_voluntary_switches(self):
        reading = self.measure("for _ in range(100): time.sleep(0.001)")
        self.assertGreaterEqual(reading.switches.voluntary, 100)
        self.assertLess(reading.switches.voluntary, 150)

    def test_memory_and_numbers_at_their_peak(self):
        reading = self.measure("import threading\nhuge = b'x' * (50 << 20)\n"
                               "t = threading.Thread(target=time.sleep, args=(0.4,))\n"
                               "t.start(); t.join(); del huge; time.sleep(0.3)")
        self.assertGreater(reading.peak_pss, 50 << 20)
        self.assertLess(reading.peak_pss, 90 << 20)
        self.assertEqual((reading.processes, reading.threads), (1, 2))

    def test_a_busy_core_is_seen(self):
        core = min(os.sched_getaffinity(0))
        process = self.start("print(flush=True); burn(60)")
        os.sched_setaffinity(process.pid, {core})
        process.stdout.readline()
        for cores in (machine.Cores((core,), (), ()), machine.Cores(*[(core,)] * 3)):
            with meter.Meter(process.pid, cores) as measured:
                time.sleep(0.3)
            reading = measured.reading
            self.assertGreater(reading.busy.server + reading.cores.server.steal, 80)
            self.assertEqual(reading.shared, bool(cores.client))
            self.assertEqual(reading.cpu_user_us is None, reading.shared)

    def test_a_core_is_at_least_as_busy_as_the_server_on_it(self):
        process = self.start("print(flush=True); burn(60)")
        process.stdout.readline()
        idle = meter.Core(0.0, 0.0, None)
        with unittest.mock.patch.object(meter, "core_between", return_value=idle), \
                meter.Meter(process.pid, machine.Cores((0,), (1,), (1,))) as measured:
            time.sleep(0.3)
        reading = measured.reading
        self.assertGreater(reading.busy.server, 0)
        self.assertAlmostEqual(reading.busy.server, reading.cpu_us / reading.seconds / 1e4, delta=1)
        self.assertEqual(reading.busy.client, 0)

    def test_looking_at_a_crowd_costs_little(self):
        process = self.start("import os\nfor _ in range(500):\n"
                             "    if not os.fork(): time.sleep(60)\n"
                             "print(flush=True); time.sleep(60)")
        process.stdout.readline()
        with meter.Meter(process.pid, ALONE) as measured:
            time.sleep(1.5)
        self.assertEqual(measured.reading.processes, 501)
        self.assertGreater(measured._memory.looks, 1)
        self.assertLess(measured._memory.seconds, 0.1)

    def test_a_figure_for_each_column(self):
        row = dict(zip(meter.COLUMNS, self.measure("").raw()))
        self.assertEqual(len(row), len(meter.COLUMNS))
        self.assertEqual((row["server_core_busy"], row["processes"]), ("", 1))


class Verdicts(unittest.TestCase):
    def test_whose_the_figure_is(self):
        for server, client, whose in ((100, 100, "server-bound"), (75, 20, "server-bound"),
                                      (74.9, 100, "mixed"), (50, 10, "mixed"),
                                      (49.9, 100, "client-bound"), (3, 50, "client-bound"),
                                      (3, 2, "waiting"), (None, None, "not pinned"),
                                      (99, None, "not pinned"), (None, 74, "not seen"),
                                      (None, 75, "client-bound")):
            with self.subTest(server=server, client=client):
                self.assertEqual(meter.verdict(machine.Cores(server, client, client)), whose)

    def test_redis_on_a_core_of_its_own(self):
        self.assertEqual(meter.verdict(machine.Cores(40, 30, 90)), "redis-bound")

    def test_one_thread_that_is_full_is_the_server_s_limit_on_any_number_of_cores(self):
        self.assertEqual(meter.verdict(machine.Cores(49, 60, 20), own=98), "server-bound")

    def test_of_cores_that_are_shared_only_what_the_server_used_is_the_server_s(self):
        both_full = machine.Cores(100, 100, 100)
        self.assertEqual(meter.verdict(both_full, own=60, shared=True), "shared")
        self.assertEqual(meter.verdict(both_full, own=80, shared=True), "server-bound")

    def test_little_s_law(self):
        self.assertAlmostEqual(meter.off(100, 10000, 10), 0)
        self.assertAlmostEqual(meter.off(100, 10000, 9), 0.1)
        self.assertAlmostEqual(meter.off(100, 10000, 12), 0.2)

    def test_the_spread_of_rounds(self):
        self.assertEqual(meter.spread([1300, 1100, 1234]), "1,234 [1,100-1,300]")
        self.assertEqual(meter.spread([1100, 1300]), "1,200 [1,100-1,300]")
        self.assertEqual(meter.spread([7.25]), "7")
        self.assertEqual(meter.spread([1.26, 1.24], "{:.2f}"), "1.25 [1.24-1.26]")


if __name__ == "__main__":
    unittest.main()
