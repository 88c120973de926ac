"""Four machines over ssh, here with an ssh that runs its commands on this machine: what it is told to do there
begins, is measured, and ends with us."""

import os
import unittest

import programs
import redis
import top
from lib.measuring import machine, meter
from lib.subjects import peers, remote

SSH = """#!/bin/sh
while case $1 in -F|-o) shift 2;; *) false;; esac; do :; done
case $1 in
-G) case $2 in redis) echo hostname 127.0.0.2;; *) echo hostname 127.0.0.1;; esac; exit;;
esac
shift
exec sh -c "$*"
"""


@programs.needs("ab", "wrk", redis.SERVER, top.path_of("epoll"))
class OverSsh(unittest.TestCase):
    def setUp(self):
        self.folder = programs.folder(self)
        ssh = os.path.join(self.folder, "ssh")
        with open(ssh, "w", encoding="ascii") as file:
            file.write(SSH)
        os.chmod(ssh, 0o700)
        self.environment = {**os.environ, "PATH": self.folder + ":" + os.environ["PATH"], "QUICK": "1"}

    def words(self, *words):
        return ["--inventory", os.path.join(self.folder, "machines"), "--rounds", "1", "--levels", "10", "--into",
                os.path.join(self.folder, "results"), *words]

    def test_a_run_is_made_there_and_nothing_is_left(self):
        done = programs.run("compare", *self.words("--servers", "preforking,epoll,floor"), env=self.environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        for row in programs.cells(os.path.join(self.folder, "results")):
            self.assertEqual(row["wrong"], "")
            self.assertGreater(float(row["server_cpu_us"]), 1000)
            self.assertGreater(float(row["server_percent"]), 1)
            if row["subject"] != "floor":
                self.assertEqual(row["incr"], row["get"])
        facts = machine.read(os.path.join(self.folder, "results", "environment.txt"))
        self.assertIn("of 127.0.0.1, redis on", facts)
        self.assertEqual(self.left(), [])

    def test_redis_may_be_further_away_and_servers_behind_a_balancer(self):
        done = programs.run("compare", *self.words("--servers", "poll", "--delay", "5", "--kinds", "new"),
                            env=self.environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertGreaterEqual(float(programs.cells(os.path.join(self.folder, "results"))[0]["p50_ms"]), 15)
        if peers.missing("nginx"):
            self.skipTest(peers.missing("nginx"))
        done = programs.run("compare", *self.words("--servers", "poll", "--instances", "2", "--kinds", "new"),
                            env=self.environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(programs.cells(os.path.join(self.folder, "results"))[0]["instances"], "2")

    def left(self):
        """Our servers and Redis of the other machines."""
        found = [machine.read("/proc/%s/cmdline" % pid).replace("\0", " ") for pid in os.listdir("/proc") if pid.isdecimal()]
        return [line for line in found if "127.0.0.1" in line and machine.PLAIN in line or "127.0.0.2:6379" in line]

    def test_one_reading_of_three(self):
        load, server, store = ({**dict.fromkeys(meter.COLUMNS, 0), **figures} for figures in (
            {"client_core_busy": 97.0, "tcp_timeouts": 2}, {"server_core_busy": 52, "server_cpu_us": 7.0, "tcp_timeouts": 1},
            {"server_core_busy": 22, "server_percent": 20}))
        both = remote.together(load, server, store)
        self.assertEqual([both[name] for name in ("server_core_busy", "client_core_busy", "redis_core_busy", "redis_percent",
                                                  "server_cpu_us", "tcp_timeouts")], [52, 97.0, 22, 20, 7.0, 3])


if __name__ == "__main__":
    unittest.main()
