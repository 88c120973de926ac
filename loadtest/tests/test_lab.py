"""Four hosts, and programs that run on them; and nothing of it afterwards, however it ended."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

import programs
from lib.measuring import meter, processes
from lib.subjects import lab, redis, relay, servers
from proc import (empty_within, gone_within, inhabited_namespaces, machine_s_own, name_of, network_namespace,
                  runs, within)

WHY_NOT = lab.why_not()
has_tools = programs.needs("h2load", "nginx", "wrk", "ab", "curl", redis.SERVER, servers.path_of("epoll"), relay.path())
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("REDIS", "QUICK")}


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Hosts(unittest.TestCase):
    def setUp(self):
        before = machine_s_own()
        self.addCleanup(lambda: self.assertEqual(machine_s_own(), before))

    def test_each_has_an_address_and_settings_of_its_own_and_who_is_there_goes_with_it(self):
        with lab.Lab() as four:
            spaces = {network_namespace(four.pid(host)) for host in lab.HOSTS}
            self.assertEqual((len(spaces), len(set(map(four.address, lab.HOSTS)))), (4, 4))
            for host in lab.HOSTS:
                with self.subTest(host=host):
                    process = four.run_in(host, [
                        "sh", "-c", "setsid sleep 60 >/dev/null & echo $!; ip -4 address; cd /proc/sys/net; "
                        "exec cat core/somaxconn ipv4/ip_local_port_range"],
                        stdout=subprocess.PIPE, encoding="utf-8")
                    with process.stdout:
                        child = int(process.stdout.readline())
                        said = process.stdout.read()
                    self.assertIn(four.address(host), said)
                    self.assertEqual(said.split()[-3:], ["65535", "1024", "65535"])
        self.assertFalse(runs(child))
        self.assertEqual(spaces & inhabited_namespaces(), set())

    def test_even_if_the_keeper_is_killed(self):
        before = inhabited_namespaces()
        with subprocess.Popen([os.path.join(programs.LOADTEST, "hosts"), "one", "two"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
            for _ in range(2):
                keeper.stdout.readline()
            spaces = inhabited_namespaces() - before
            keeper.kill()
        self.assertGreaterEqual(len(spaces), 3)
        self.assertTrue(empty_within(3, spaces))

    def test_a_crowd_finds_room_apart(self):
        """In a process of its own, because what it does to that cannot be undone."""
        with programs.python("from lib.subjects import places\n"
                             "with places.Apart():\n"
                             "    print(open('/proc/sys/net/core/somaxconn').read())\n"
                             "    import socket; door = socket.create_server(('127.0.0.1', 0))\n"
                             "    socket.create_connection(door.getsockname())") as program:
            self.assertEqual(program.stdout.read().split(), ["65535"])
        self.assertEqual(program.returncode, 0)


@unittest.skipIf(WHY_NOT, WHY_NOT)
@has_tools
class Programs(unittest.TestCase):
    def run_there(self, program, *words):
        """Returns what it printed, and its cells."""
        folder, before = programs.folder(self), machine_s_own()
        done = programs.run(program, "--lab", "--servers", "epoll", *words, "--into", folder,
                            env=ENVIRONMENT, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(machine_s_own(), before)
        return done.stdout, programs.cells(folder)

    def test_ramp_climbs_directly_and_through_the_balancer(self):
        said, _ = self.run_there("ramp", "--instances", "2", "--from", "100", "--to", "200", "--steps", "2",
                                 "--step-seconds", "0.3")
        self.assertIn("| epoll, nginx before 2 | ", said)

    def test_redis_may_be_further_away(self):
        _, [cell] = self.run_there("compare", "--quick", "--delay", "20")
        self.assertGreater(float(cell["p50_ms"]), 3 * 20)  # three questions

    def test_killed_in_the_middle_it_leaves_what_was_measured_and_nothing_else(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            with self.subTest(signal=number):
                self.kill_one(number)

    def kill_one(self, number):
        before, own, folder = machine_s_own(), network_namespace(os.getpid()), programs.folder(self)
        with tempfile.TemporaryDirectory() as temporary, subprocess.Popen(
                [sys.executable, "-B", os.path.join(programs.LOADTEST, "ramp"), "--lab", "--servers",
                 "forking", "--instances", "2", "--from", "200", "--to", "400", "--steps", "2",
                 "--step-seconds", "1", "--into", folder], stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, env={**ENVIRONMENT, "TMPDIR": temporary}) as program:
            tree, wanted = meter.Tree(program.pid), {"h2load", "nginx", "forking", redis.SERVER}
            self.assertTrue(within(30, lambda: wanted <= set(map(name_of, tree.pids()))))
            people = tree.pids()
            spaces = set(map(network_namespace, people)) - {own, None}
            self.assertEqual(len(spaces), 5)
            program.send_signal(number)
            program.wait(20)
            self.assertTrue(empty_within(3, spaces))
            self.assertTrue(all(gone_within(3, pid) for pid in people))
            self.assertEqual((machine_s_own(), os.listdir(temporary)), (before, []))
        self.assertGreater(processes.printed(folder + "/cells.tsv").count("\n"), 2)  # before nginx
