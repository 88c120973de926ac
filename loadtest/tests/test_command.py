"""A server that is somebody else's, started by a command line as a shell takes it."""

import os
import shlex
import sys
import unittest
import urllib.request

import programs
from lib import Trouble
from lib.measuring import machine, meter, processes
from lib.subjects import peers
from proc import gone_within

REDIS = "127.0.0.1:6379"  # nobody asks it
tearDownModule = processes.end_all

# Serves; each page computes for a while. SIGTERM lets it say goodbye.
SERVER = """#!%s
import http.server, os, signal, sys, time

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.getcwd().encode())

def stop(*_):
    print("goodbye", flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, stop)
ports = [int(word) for word in sys.argv[1:] if word.isdigit()]
server = http.server.HTTPServer(("127.0.0.1", ports[0] if ports else 0), Page)
server.serve_forever()
""" % sys.executable


class Lines(unittest.TestCase):
    def test_a_line_that_asks_for_nothing_is_given_our_options(self):
        for line in ("./mine", "cd 'a b' && ./mine -v", "./mine 8000", "./mine '#'", "./a#",
                     "port=1; ./mine ${port}"):
            self.assertEqual(peers.command_line(line), line + " --port {port} --redis {redis}")

    def test_its_name_is_that_of_the_program_with_a_port_or_of_the_last(self):
        for line, name in (("./mine", "mine"), ("python3 -m http.server {port}", "python3"),
                           ("cd x && ./mine {port}", "mine"), ("cd x; A=1 exec ../b/mine", "mine"),
                           ("'/tmp/my server'", "my server"), ("./mine 2>&1 | tee x", "mine"),
                           ("a; ./mine {port}; true", "mine"), ("A=1", "server"),
                           ("echo 'x", "server")):
            self.assertEqual(peers.name_of(line), name)


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = programs.folder(self)
        self.log = os.path.join(self.folder, "log")
        program = os.path.join(self.folder, "server")
        with open(program, "w", encoding="ascii") as file:
            file.write(SERVER)
        os.chmod(program, 0o700)

    def open(self, line):
        line = line.replace("FOLDER", shlex.quote(self.folder))
        return peers.Command("it", peers.command_line(line), None, self.log, REDIS)

    def fetch(self, server):
        with urllib.request.urlopen(server.url, timeout=5) as answer:
            return answer.read().decode()

    def test_others_on_the_line_end_with_it(self):
        """It serves, and is asked to end itself; then nothing is left."""
        for line in ("cd FOLDER; sleep 60 & ./server {port}",
                     "cd FOLDER && setsid sleep 60 & cd FOLDER && ./server {port}",
                     "cd FOLDER && ./server {port} | cat",
                     "cd FOLDER && sh -c './server {port}; true'"):
            with self.subTest(line=line):
                with self.open(line) as server:
                    self.assertEqual(self.fetch(server), self.folder)
                    everybody = meter.Tree(server._process.pid).pids()
                    self.assertEqual(server.end(), 0)
                self.assertTrue(all(gone_within(2, pid) for pid in everybody))
                self.assertIn("goodbye\n", processes.printed(self.log))

    def test_the_server_is_measured_and_not_its_shell(self):
        with self.open("cd FOLDER && ./server {port}; true") as server:
            shell = server._process.pid
            self.assertNotEqual(server.pid, shell)
            with meter.Meter(server.pid, machine.Cores((), (), ())) as watched:
                self.fetch(server)
            self.assertGreaterEqual(watched.reading.cpu_us, 1e5)
            self.assertEqual(watched.reading.processes, 1)
            self.assertNotIn(shell, meter.Tree(server.pid).pids())

    def must_fail(self, line, words):
        with self.assertRaisesRegex(Trouble, words) as raised:
            with self.open(line):
                self.fail("it started")
        self.assertNotIn("\n", str(raised.exception))

    def test_one_line_says_why_it_did_not_start(self):
        self.must_fail("cd FOLDER && ./serve {port}",  # two shells' words
                       r"^it did not start: .*\./serve: (not found|No such file or directory)$")
        self.must_fail("cd FOLDER/nowhere && ./server", "^it did not start: .*cd: ")
        self.must_fail("echo 'no such luck' >&2; exit 3 # {port}",
                       "^it did not start: no such luck$")
        self.must_fail("%s -m http.server 80" % sys.executable, "^it did not start: .*unrecognized "
                       "arguments: --port .*; it was given --port and --redis: .*{port}")
        self.must_fail("./it '{port}", "^it did not start: .*(Unterminated|unexpected EOF)")
        self.must_fail("true", "^it did not start: status 0.*foreground; it was given --port")
