"""Every program, run for a second or two: equal work, no error, a table, a page that opens.

Nothing here says how fast anything has to be."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "common/tests/clients"))

import browser
import chromium

from lib.measuring import machine
from lib.subjects import peers, servers

LOADTEST = os.path.join(machine.TOP, "loadtest")


class Programs(unittest.TestCase):
    def run_briefly(self, program, options, tools=(), beside=()):
        """Runs it, and looks at what it prints and leaves. Returns what it printed."""
        missing = [tool for tool in tools if not shutil.which(tool)]
        missing += [name for name in beside if peers.missing(name)]
        if missing:
            self.skipTest("not installed: %s" % ", ".join(missing))
        done = subprocess.run([os.path.join(LOADTEST, program), *shlex.split(options)],
                              cwd=machine.TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        page = os.path.join(machine.TOP, done.stderr.strip().splitlines()[-1])
        self.addCleanup(shutil.rmtree, os.path.dirname(page))
        self.look_at_tables(done.stdout)
        self.look_at_page(page)
        return done.stdout

    def look_at_tables(self, text):
        """Each row has as many cells as its header, and at least one row has a figure."""
        tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
        self.assertTrue(tables, text)
        for table in tables:
            rows = [line.strip("|").split(" | ") for line in table.splitlines()]
            self.assertEqual({len(row) for row in rows}, {len(rows[0])}, table)
            self.assertGreater(len(rows), 2, table)
        self.assertRegex(text, r"\| +(≥ )?[1-9][\d,.]*")

    def look_at_page(self, path):
        with open(path, encoding="utf-8") as file:
            self.assertIn("<table>", file.read())
        if not chromium.find():
            return
        page = chromium.Page(browser.the_browser())
        self.addCleanup(page.close)
        page.open("file://" + path)
        self.assertEqual(page.errors(), [])

    def test_compare(self):
        text = self.run_briefly(
            "compare", "--quick --levels 20 --servers iterative,epoll,floor", ["ab", "wrk"])
        self.assertIn("Equal work", text)

    def test_compare_with_a_redis_far_away(self):
        self.run_briefly("compare", "--quick --delay 0,10 --servers poll", ["ab"])

    def test_compare_with_work_and_cores(self):
        self.run_briefly("compare", "--quick --seconds 0.1 --work 0,0.5 --servers epoll", ["wrk"])

    def test_compare_with_servers_of_another_kind(self):
        other = 'cd "%s" && %s another.py {port}' % (HERE, sys.executable)
        text = self.run_briefly(
            "compare", "--quick --levels 20 --servers epoll --command 'old=%s {redis_port}; true' "
            "--command 'file=%s' --page file=/x --command 'mine=cd . && \"%s\"'" % (
                other, other, servers.path_of("epoll")), ["ab", "wrk"])
        self.assertEqual(len(re.findall(r"^\| mine ", text, re.MULTILINE)), 2)
        self.assertEqual(len(re.findall(r"^\| old ", text, re.MULTILINE)), 1)
        self.assertEqual(len(re.findall(r"^\| file ", text, re.MULTILINE)), 2)
        for said in ("old is asked by ab alone", "file keeps no connection", "work not counted",
                     "every cell but those"):
            self.assertIn(said, text)
        self.assertRegex(text, r"Bytes of a page: .*\bfile 4\b")

    def test_a_command_that_does_not_serve_its_page(self):
        other = '%s "%s/another.py" {port}' % (sys.executable, HERE)
        for options, said in (("--command 'a=%s' --lab" % other, "are started here"),
                              ("--command epoll=x", "no name for another server"),
                              ("--command 'a=x' --page b=/", "one of --command"),
                              ("--quick --servers floor --command a=false", "a did not start"),
                              ("--quick --servers floor --levels 20 --command 'a=%s'" % other,
                               "pages Redis counted 0 INCR"),
                              ("--quick --servers floor --command 'a=%s 1'" % other,
                               "a: it does not answer for /guestbook")):
            with self.subTest(options=options), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([os.path.join(LOADTEST, "compare"), *shlex.split(options),
                                       "--into", folder], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      encoding="utf-8", check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(said, done.stdout)

    def test_latency(self):
        text = self.run_briefly("latency", "--quick --servers epoll --delay 0", ["h2load", "ab"])
        self.assertRegex(text, r"\| epoll +\|[^|]*\| +\d+\.\d / ")

    def test_mixes(self):
        self.run_briefly("mixes", "--quick --servers epoll", ["ab", "wrk", "curl"])

    def test_an_interrupted_run_goes_on_where_it_stopped(self):
        def rows():
            path = os.path.join(folder, "cells.tsv")
            if not os.path.exists(path):
                return []
            with open(path, encoding="utf-8") as file:
                return file.read().splitlines()

        with tempfile.TemporaryDirectory() as folder:
            command = [os.path.join(LOADTEST, "compare"), *"--quick --rounds 2 --servers epoll,floor "
                       "--levels 20 --into".split(), folder]
            first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while first.poll() is None and len(rows()) < 3:
                time.sleep(0.01)
            first.send_signal(signal.SIGINT)
            self.assertEqual(first.wait(), 130)
            before = rows()
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            self.assertEqual((done.returncode, rows()[:len(before)], len(rows())), (0, before, 9), done.stdout)

    def test_the_plan_is_said_without_measuring(self):
        for program in ("compare", "latency", "mixes", "ramp", "connections", "files"):
            done = subprocess.run([os.path.join(LOADTEST, program), "--plan", "--rounds", "7"],
                                  cwd=machine.TOP, stdout=subprocess.PIPE, encoding="utf-8", check=True)
            self.assertRegex(done.stdout, r"^\d+ (cells|steps), about \d+ minutes\n$")

    def test_sweep(self):
        self.run_briefly("sweep", "--quick --levels 20,50 --servers preforking,threading", ["ab"])

    def test_connections(self):
        self.run_briefly("connections", "--quick --levels 200 --seconds 0.3 --servers epoll,nginx,floor",
                         ["httperf"], ["nginx"])

    def test_files(self):
        self.run_briefly("files", "--quick --small 50 --large 5 --rounds 1 "
                         "--servers epoll,lighttpd,apache", ["curl"], ["lighttpd", "apache"])

    def test_burst(self):
        self.run_briefly("burst", "--quick --seconds 0.05 --rounds 1 --servers epoll,floor",
                         ["ab", "wrk"])

    def test_ramp(self):
        self.run_briefly("ramp", "--quick --servers epoll --from 200 --to 800 --steps 3 "
                         "--step-seconds 0.3", ["h2load"])

    def test_cost(self):
        self.run_briefly("cost", "--quick --parts calls,cpu --servers epoll --levels 20 "
                         "--seconds 0.05", ["ab", "wrk", "strace"])

    def test_soak(self):
        text = self.run_briefly("soak", "--quick --servers poll", ["ab", "wrk"])
        self.assertRegex(text, r"\| poll .* flat")

    def test_xray(self):
        self.run_briefly("xray", "--quick --server epoll", ["strace", "ss"])
