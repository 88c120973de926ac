"""Every program, run for a second or two: equal work, no error, a table, a page that opens.

Nothing here says how fast anything has to be."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest

import programs
import browser
import chromium
from lib.measuring import machine, processes
from lib.subjects import peers, servers

OTHER = '%s "%s/another.py" {port}' % (sys.executable, programs.HERE)


class Programs(unittest.TestCase):
    def run_briefly(self, program, options, tools="", beside=()):
        """Runs it, and looks at what it prints and leaves. Returns what it printed."""
        missing = [tool for tool in tools.split() if not shutil.which(tool)]
        missing += [name for name in beside if peers.missing(name)]
        if missing:
            self.skipTest("not installed: %s" % ", ".join(missing))
        done = programs.run(program, *shlex.split(options), stderr=subprocess.PIPE, timeout=120)
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
        self.assertIn("<table>", processes.printed(path))
        if chromium.find():
            page = chromium.Page(browser.the_browser())
            self.addCleanup(page.close)
            page.open("file://" + path)
            self.assertEqual(page.errors(), [])

    def test_each(self):
        for program, options, tools, *words in (
                ("compare", "--levels 20 --servers iterative,epoll,floor", "ab wrk", "Equal work"),
                ("compare", "--delay 0,10 --servers poll", "ab"),
                ("compare", "--seconds 0.1 --work 0,0.5 --servers epoll", "wrk"),
                ("latency", "--servers epoll --delay 0", "h2load ab", r"\| epoll +\|[^|]*\| +\d+\.\d / "),
                ("mixes", "--servers epoll", "ab wrk curl"),
                ("sweep", "--levels 20,50 --servers preforking,threading", "ab"),
                ("burst", "--seconds 0.05 --rounds 1 --servers epoll,floor", "ab wrk"),
                ("ramp", "--servers epoll --from 200 --to 800 --steps 3 --step-seconds 0.3", "h2load"),
                ("cost", "--parts calls,cpu --servers epoll --levels 20 --seconds 0.05", "ab wrk strace"),
                ("soak", "--servers poll", "ab wrk", r"\| poll .* flat"),
                ("xray", "--server epoll", "strace ss")):
            with self.subTest(program + " " + options):
                text = self.run_briefly(program, "--quick " + options, tools)
                for each in words:
                    self.assertRegex(text, each)

    def test_those_beside_peers(self):
        for program, options, tools, beside in (
                ("connections", "--levels 200 --seconds 0.3 --servers epoll,nginx,floor", "httperf", ["nginx"]),
                ("files", "--small 50 --large 5 --rounds 1 --servers epoll,lighttpd,apache", "curl",
                 ["lighttpd", "apache"])):
            with self.subTest(program):
                self.run_briefly(program, "--quick " + options, tools, beside)

    def test_compare_with_servers_of_another_kind(self):
        text = self.run_briefly(
            "compare", "--quick --levels 20 --servers epoll --command 'old=%s {redis_port}; true' "
            "--command 'file=%s' --page file=/x --command 'mine=cd . && \"%s\"'" % (
                OTHER, OTHER, servers.path_of("epoll")), "ab wrk")
        for name, rows in (("mine", 2), ("old", 1), ("file", 2)):
            self.assertEqual(len(re.findall(r"^\| %s " % name, text, re.MULTILINE)), rows)
        for said in ("old is asked by ab alone", "file keeps no connection", "work not counted",
                     "every cell but those"):
            self.assertIn(said, text)
        self.assertRegex(text, r"Bytes of a page: .*\bfile 4\b")

    def test_what_cannot_be_measured_is_refused_in_words(self):
        for options, said in (("--command 'a=%s' --lab" % OTHER, "are started here"),
                              ("--command epoll=x", "no name for another server"),
                              ("--command 'a=x' --page b=/", "one of --command"),
                              ("--lab --inventory machines", "different places"),
                              ("--url index.html", "not a path"), ("--flush", "--redis"),
                              ("--lab --redis h:1", "--lab has a Redis of its own"),
                              ("--inventory f --redis h:1", "--inventory has a Redis of its own"),
                              ("--servers epoll,nobody", "none of"), ("--levels 0", "number from 1"),
                              ("--quick --servers floor --command a=false", "a did not start"),
                              ("--quick --servers floor --levels 20 --command 'a=%s'" % OTHER,
                               "pages Redis counted 0 INCR"),
                              ("--quick --servers floor --command 'a=%s 1'" % OTHER,
                               "a: it does not answer for /guestbook")):
            with self.subTest(options=options):
                done = programs.run("compare", *shlex.split(options), "--into", programs.folder(self))
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(said, done.stdout)

    def test_an_interrupted_run_goes_on_where_it_stopped(self):
        folder = programs.folder(self)
        command = ["compare", *"--quick --rounds 2 --servers epoll,floor --levels 20 --into".split(), folder]

        def rows():
            return machine.read(os.path.join(folder, "cells.tsv")).splitlines()

        first = subprocess.Popen([os.path.join(programs.LOADTEST, command[0]), *command[1:]],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while first.poll() is None and len(rows()) < 3:
            time.sleep(0.01)
        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(), 130)
        before = rows()
        done = programs.run(*command)
        self.assertEqual((done.returncode, rows()[:len(before)], len(rows())), (0, before, 9), done.stdout)

    def test_the_plan_is_said_without_measuring(self):
        for program in ("compare", "latency", "mixes", "ramp", "connections", "files"):
            done = programs.run(program, "--plan", "--rounds", "7")
            self.assertRegex(done.stdout, r"^\d+ (cells|steps), about \d+ minutes\n$")
