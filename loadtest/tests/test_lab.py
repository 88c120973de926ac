"""Four hosts, and what runs on them; and nothing of it afterwards, however it ended."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

from lib.measuring import machine, processes
from lib.subjects import relay, lab, servers
from proc import runs

WHY_NOT = lab.why_not()
SETTINGS = ["core/somaxconn", "ipv4/ip_local_port_range", "ipv4/tcp_tw_reuse",
            "ipv4/tcp_max_syn_backlog", "ipv4/ip_forward"]


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Hosts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.before = machine_s_own()
        self.lab = lab.Lab()
        self.lab.__enter__()
        spaces = {network_namespace(self.lab.pid(host)) for host in lab.HOSTS}
        self.assertEqual(len(spaces), 4)
        self.addCleanup(self.must_be_gone, spaces)
        self.addCleanup(self.lab.end)

    def must_be_gone(self, spaces):
        self.assertEqual(spaces & inhabited_namespaces(), set())
        self.assertEqual(machine_s_own(), self.before)

    def output(self, host, *command):
        process = self.lab.run_in(host, list(command), stdout=subprocess.PIPE, encoding="utf-8",
                                  stderr=subprocess.STDOUT)
        with process.stdout:
            text = process.stdout.read()
        processes.wait(process, 5)
        self.assertEqual(processes.end(process), 0, text)
        return text

    def instance(self, name, store):
        """A server on `server`; returns its ADDRESS:PORT and pid."""
        log = os.path.join(self.folder, "server.log")
        with open(log, "wb") as out:
            process = self.lab.run_in(
                "server", [servers.path_of(name), "--port", "0", "--bind",
                           self.lab.address("server"), "--redis", store.where],
                cwd=machine.TOP, stdout=out, stderr=subprocess.STDOUT)
        for _ in range(500):
            with open(log, encoding="utf-8") as text:
                banner = re.search(r"listening on http://(\S+)", text.read())
            if banner:
                return banner.group(1), process.pid
            time.sleep(0.01)
        self.fail("the server did not start")

    def test_each_has_an_address_and_settings_of_its_own(self):
        self.assertEqual(len({self.lab.address(host) for host in lab.HOSTS}), 4)
        for host in lab.HOSTS:
            with self.subTest(host=host):
                self.assertIn(self.lab.address(host), self.output(host, "ip", "-4", "address"))
                self.assertEqual(self.output(host, "cat", "/proc/sys/net/core/somaxconn",
                                             "/proc/sys/net/ipv4/ip_local_port_range").split(),
                                 ["65535", "1024", "65535"])

    @unittest.skipUnless(os.access(relay.path(), os.X_OK), "slow_redis is not built")
    @unittest.skipUnless(os.access(servers.path_of("epoll"), os.X_OK), "epoll is not built")
    def test_redis_may_be_further_away(self):
        store = self.lab.redis(self.folder)
        with relay.SlowRedis(store, 100, self.lab.place("redis").cores, self.folder,
                             self.lab.prefix("redis"), self.lab.address("redis")) as slow:
            where, _ = self.instance("epoll", slow)
            seconds = self.output("load", "curl", "-sS", "-o", "/dev/null", "-w", "%{time_total}",
                                  "http://%s/guestbook" % where)
        self.assertGreaterEqual(float(seconds), 0.3)  # three questions
        self.assertLess(float(seconds), 1.0)

    @unittest.skipUnless(shutil.which("nginx"), "there is no nginx")
    @unittest.skipUnless(os.access(servers.path_of("epoll"), os.X_OK), "epoll is not built")
    def test_the_balancer_takes_two_instances_in_turn(self):
        store = self.lab.redis(self.folder)
        store.seed()
        instances = [self.instance("epoll", store) for _ in range(2)]
        with self.lab.balancer([where for where, _ in instances], self.folder) as balancer:
            pages = self.output("load", "curl", "-sS", *[balancer.url + "/guestbook"] * 4)
            self.assertEqual(pages.count("</html>"), 4)
            balancer.must_live()
        self.assertEqual(store.counts().visitors, 4)
        for (_, pid) in instances:
            os.kill(pid, signal.SIGTERM)

    def test_who_is_still_there_goes_with_the_hosts(self):
        process = self.lab.run_in("load", ["sh", "-c", "setsid sleep 60 & echo $!; wait"],
                                  stdout=subprocess.PIPE, encoding="utf-8")
        with process.stdout:
            child = int(process.stdout.readline())
        self.lab.end()
        self.assertFalse(runs(child))


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Killed(unittest.TestCase):
    SCRIPT = """
import subprocess, sys, time
sys.path.insert(0, %r)
from lib.measuring import processes
from lib.subjects import lab
with processes.tidied(), lab.Lab() as four:
    store = four.redis(sys.argv[1])
    with four.balancer([four.address("server") + ":80"], sys.argv[1]):
        four.run_in("load", ["sh", "-c", "echo $$; setsid sleep 60 & exec sleep 60"])
        time.sleep(60)
"""

    @unittest.skipUnless(shutil.which("nginx"), "there is no nginx")
    def test_nothing_is_left_however_we_end(self):
        script = self.SCRIPT % os.path.join(machine.TOP, "loadtest")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            with self.subTest(signal=number), tempfile.TemporaryDirectory() as folder:
                before, spaces_before = machine_s_own(), inhabited_namespaces()
                with subprocess.Popen([sys.executable, "-B", "-c", script, folder],
                                      stdout=subprocess.PIPE, encoding="utf-8") as program:
                    child = int(program.stdout.readline())
                    spaces = inhabited_namespaces() - spaces_before
                    self.assertIn(network_namespace(child), spaces)
                    self.assertGreaterEqual(len(spaces), 5)
                    program.send_signal(number)
                    program.wait(10)
                self.assertTrue(gone_within(3, spaces))
                self.assertFalse(runs(child))
                self.assertEqual(machine_s_own(), before)

    def test_even_if_the_keeper_is_killed(self):
        before = inhabited_namespaces()
        with subprocess.Popen([os.path.join(machine.TOP, "loadtest/hosts"), "one", "two"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
            for _ in range(2):
                keeper.stdout.readline()
            spaces = inhabited_namespaces() - before
            keeper.kill()
        self.assertGreaterEqual(len(spaces), 3)
        self.assertTrue(gone_within(3, spaces))


def gone_within(seconds, spaces):
    deadline = time.monotonic() + seconds
    while spaces & inhabited_namespaces() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not spaces & inhabited_namespaces()


def inhabited_namespaces():
    """The network namespaces that somebody is in."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    return {network_namespace(pid) for pid in pids} - {None}


def machine_s_own():
    """Interfaces, namespaces with a name, and settings, as they are outside all labs."""
    named = os.listdir("/run/netns") if os.path.isdir("/run/netns") else []
    settings = []
    for name in SETTINGS:
        with open("/proc/sys/net/" + name, encoding="utf-8") as file:
            settings.append(file.read())
    return sorted(os.listdir("/sys/class/net")), named, settings


def network_namespace(pid):
    try:
        return os.readlink("/proc/%d/ns/net" % pid)
    except OSError:
        return None
