"""Other machines: what runs there is watched, and ends with us, however we end."""

import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

import programs
from lib import Trouble
from lib.measuring import machine, meter, processes
from lib.subjects import lab, peers, redis, remote, servers
from proc import all_pids, machine_s_own, name_of, network_namespace, within
from test_lab import ENVIRONMENT, has_tools

SSHD = shutil.which("sshd", path=peers.PATHS)


def is_root_locked():
    """sshd without PAM lets nobody in whose password begins so (sshd(8))."""
    with open("/etc/shadow", encoding="utf-8") as file:
        return any(line.startswith("root:!") for line in file)


WHY_NOT = lab.why_not() or (None if SSHD else "there is no sshd") or (
    "root is locked" if is_root_locked() else None)
SPINNER = [sys.executable, "-c", "while True: pass"]


class Near(remote.Remote):
    """The same commands, on this machine and without ssh."""

    def _ssh(self, host, *words):
        return ["sh", "-c", super()._ssh(host, *words)[-1]]

    def address(self, host):
        return "127.0.0.1"


class There(unittest.TestCase):
    """What is run on a machine, without ssh."""

    def setUp(self):
        self.log = os.path.join(programs.folder(self), "log")
        self.place = Near("no inventory")
        self.place.__enter__()
        self.addCleanup(self.place.end)

    def start(self, host, *command):
        with open(self.log, "ab") as log:
            return self.place.run_in(host, command, stdout=log)

    def test_a_process_runs_on_its_core_in_a_folder_that_goes_with_it(self):
        process = self.start("server", "sh", "-c", "pwd; taskset -pc $$; kill -9 $$")
        self.assertTrue(processes.wait(process, 5))
        self.assertEqual(processes.end(process), 128 + signal.SIGKILL)
        folder, cores = processes.printed(self.log).splitlines()
        self.assertFalse(os.path.exists(folder))
        self.assertEqual(cores.split()[-1], str(machine.usable_cores()[0]))

    def test_what_cannot_start_says_why(self):
        launched = servers.Started("it", (), self.log, launch=self.place.place("server").launch)
        launched.start(["no-such-program"])
        with self.assertRaisesRegex(Trouble, "it did not start: .*no-such-program"):
            launched.await_ready(lambda: False)

    @programs.needs("ssh")
    def test_a_host_that_is_not_there_is_named(self):
        with open(self.log, "w", encoding="utf-8") as file:
            file.write("Host server\nHostName 127.0.0.1\nHost redis\nHostName not.there.invalid\n")
        with self.assertRaisesRegex(Trouble, "no host `redis`"), remote.Remote(self.log):
            pass

    def test_each_host_s_work_is_seen(self):
        self.start("redis", "sleep", "60")
        with self.assertRaisesRegex(Trouble, "server has ended"):
            self.place.meter(None, self.place.cores(), None)
        self.start("server", *SPINNER)
        with self.place.watch() as busy, self.place.meter(None, self.place.cores(), None) as watch:
            time.sleep(0.5)
        reading = watch.reading
        self.assertGreater(reading.used["server"], 2)
        self.assertAlmostEqual(reading.cpu_us, reading.used["server"] * reading.seconds * 1e4,
                               delta=1e5)
        self.assertLess(reading.used["redis"], 5)
        self.assertEqual((reading.processes, reading.threads), (1, 1))
        self.assertGreater(reading.peak_pss, 1e6)
        self.assertEqual(set(busy), {"load", "server", "redis"})
        self.assertEqual(busy["server"], reading.used["server"])
        self.assertEqual(set(reading.kernel), set(meter.RECORD))

    def test_the_verdict_is_of_all_hosts(self):
        def reading(busy, used, party):
            cores = machine.Cores(*[meter.UNKNOWN] * 3)._replace(
                **{party: meter.Core(busy, 0, 50)})
            return meter.Reading(2, 1e6, 5e5, None, None, 1, 1, cores, {"TCPTimeouts": 1}, {
                "server": used, "client": used, "redis": 0, "thread": used})

        for figures, verdict in (((95, 20, 10), meter.SERVER), ((50, 95, 10), meter.CLIENT),
                                 ((50, 20, 95), meter.REDIS), ((50, 20, 10), meter.NOBODY)):
            server, client, store = figures
            pinned = machine.Cores(("a 0",), ("here 0",), ("b 0",))
            found = remote._together(pinned, reading(client, client, "client"),
                                     reading(server, server, "server"), reading(store, store, "server"))
            self.assertEqual(found.verdict, verdict)
            self.assertEqual((found.busy, found.kernel["TCPTimeouts"]), ((server, client, store), 3))


@unittest.skipIf(WHY_NOT, WHY_NOT)
@has_tools
class OverSsh(unittest.TestCase):
    """The hosts of a lab, with an sshd in each."""

    @classmethod
    def setUpClass(cls):
        cls.folder = programs.folder(cls)
        cls.lab = lab.Lab()
        cls.lab.__enter__()
        cls.addClassCleanup(cls.lab.end)
        for key in "host", "key":
            machine.output_of(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", cls.path(key)])
        inventory = ["Host *", "User root", "IdentityFile " + cls.path("key"),
                     "UserKnownHostsFile " + cls.path("known"), "StrictHostKeyChecking accept-new"]
        for host in lab.HOSTS[1:]:
            cls.start_sshd(host)
            inventory += ["Host " + host, "HostName " + cls.lab.address(host)]
        more = [*inventory, "Host load-2", "HostName " + cls.lab.address("lb")]
        for name, lines in ("machines", inventory), ("more", more):
            with open(cls.path(name), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def start_sshd(cls, host):
        """Its own /run, because it insists on a folder there."""
        options = {"HostKey": cls.path("host"), "AuthorizedKeysFile": cls.path("key.pub"),
                   "ListenAddress": cls.lab.address(host), "PidFile": "none", "StrictModes": "no",
                   "UsePAM": "no"}
        with open(cls.path(host + ".log"), "wb") as log:
            cls.lab.run_in(host, [
                "unshare", "--mount", "sh", "-c",
                'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$@"', "sh", SSHD, "-D", "-e",
                "-f", "/dev/null", *("-o%s=%s" % pair for pair in options.items())],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        if not within(4, lambda: "Server listening" in processes.printed(cls.path(host + ".log"))):
            raise AssertionError(processes.printed(cls.path(host + ".log")))

    def started(self, program, *words):
        """A load test, on the host `load`."""
        return subprocess.Popen(
            [*self.lab.prefix("load"), sys.executable, "-B", os.path.join(machine.TOP, "loadtest", program),
             "--inventory", self.path("machines"), *words], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=ENVIRONMENT)

    def run_there(self, program, *words):
        """A complete run; returns its rows, and what it printed. A busy machine may hold no rate."""
        folder = self.path(self.id())
        with self.started(program, *words, "--into", folder) as started:
            out, err = started.communicate(timeout=300)
        self.assertIn("report.html", err)
        rows = programs.cells(folder)
        self.assertEqual([row["wrong"] for row in rows if row["wrong"]], [])
        self.assertEqual(self.people(), set())
        return rows, out

    def people(self):
        """Who runs on the hosts, beside sshd."""
        spaces = {network_namespace(self.lab.pid(host)) for host in lab.HOSTS[1:]}
        return {name_of(pid) for pid in all_pids() if network_namespace(pid) in spaces} - {
            "tail", "sshd", "sshd-session", "sshd-auth", ""}

    def test_compare_knows_all_that_it_knows_of_one_machine(self):
        before = machine_s_own()
        rows, out = self.run_there("compare", "--servers", "preforking,epoll,floor", "--levels", "20",
                                   "--rounds", "1", "--seconds", "1")
        self.assertEqual(len(rows), 6)
        for row in rows:
            with self.subTest(**{name: row[name] for name in ("subject", "generator")}):
                asks = row["subject"] != "floor"
                micros = float(row["server_cpu_us"]) / float(row["requests"])
                self.assertTrue(1 < micros < 1000, micros)
                self.assertGreater(int(row["peak_pss_bytes"]), 1e5)
                self.assertGreater(float(row["server_core_busy"]), 1)
                self.assertEqual(float(row["redis_percent"]) > 1, asks)
                self.assertGreater(float(row["client_percent"]), 1)
                self.assertIn(row["verdict"], {meter.SERVER, meter.CLIENT, meter.BOTH, meter.REDIS,
                                               meter.NOBODY, meter.OTHERS})
                self.assertIn("server", row["hosts"])
                self.assertEqual(int(row["processes"]) > 1, row["subject"] == "preforking")
        self.assertIn("of %s" % self.lab.address("server"), out)
        self.assertEqual(machine_s_own(), before)

    def test_another_machine_makes_a_share_of_the_load(self):
        rows, out = self.run_there("compare", "--inventory", self.path("more"), "--servers", "epoll,floor",
                                   "--levels", "20", "--rounds", "1", "--seconds", "1")
        self.assertEqual({row["generator"] for row in rows}, {"ab", "wrk"})
        for row in rows:
            self.assertRegex(row["hosts"], "load-2 [1-9]")
            self.assertGreater(float(row["client_core_busy"]), 1)
        self.assertIn("load-2 made a share of the load", out)

    def test_ramp_climbs_through_a_balancer(self):
        rows, out = self.run_there("ramp", "--servers", "epoll", "--instances", "2", "--from", "100",
                                   "--to", "200", "--steps", "2", "--step-seconds", "0.5")
        self.assertIn("| epoll, nginx before 2 | ", out)
        self.assertTrue(any("lb" in row["hosts"] for row in rows if row["instances"]))
        self.assertTrue(all(row["processes"] == (row["instances"] or "1") for row in rows))

    def test_redis_may_be_further_away(self):
        rows, _ = self.run_there("compare", "--servers", "poll", "--delay", "5", "--rounds", "1",
                                 "--seconds", "0.5")
        self.assertGreater(float(rows[0]["p50_ms"]), 15)

    def test_nothing_is_left_if_it_is_killed(self):
        for number in signal.SIGINT, signal.SIGKILL:
            with self.subTest(signal=number), self.started(
                    "compare", "--servers", "forking", "--levels", "20", "--seconds", "5",
                    "--into", self.path("killed-%d" % number)) as program:
                wanted = {"forking", redis.SERVER}
                self.assertTrue(within(60, lambda: wanted <= self.people()), self.people())
                program.send_signal(number)
                program.communicate(timeout=30)
                self.assertTrue(within(10, lambda: not self.people()), self.people())
