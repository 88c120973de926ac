"""The wall in Chromium, and `make serve`: all seven at once, on ports that follow each other."""

import contextlib
import http.client
import os
import pty
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from browser import look_at, open_page
from case import ENVIRONMENT, FOLDER, SOON_SECONDS, TOP, Server, patience
import processes
import top
from status import hold, let_go

SERVE = os.path.join(TOP, "common", "tools", "serve")
FOR_ALL = "    Everybody who can reach these ports sees their status and the wall.\n"
BASES = range(20000, 32000, 10)  # below the ports that the kernel picks for others
CARD = "document.getElementById('%s').closest('.server')"
RUNNING = CARD + ".querySelector('.word').textContent === 'running'"
LABEL = CARD + ".querySelector('.cells').ariaLabel"
REFUSED = "net::ERR_CONNECTION_REFUSED"  # the browser's own words, which no page can prevent


def free_base():
    """Seven ports that nobody has, behind the number that is returned."""
    for base in BASES:
        with contextlib.ExitStack() as stack:
            try:
                for chapter in range(1, len(top.NAMES) + 1):
                    taken = stack.enter_context(socket.socket())
                    taken.bind(("127.0.0.1", base + chapter))
                return base
            except OSError:
                continue
    raise AssertionError("there are no seven free ports")


def answers(port):
    """Does somebody listen there?"""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def status_of(port, host):
    """How the server there answers a client that names it so."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=patience(SOON_SECONDS))) as connection:
        connection.request("GET", "/status.json", headers={"Host": host})
        return connection.getresponse().status


class Wall(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = free_base()
        cls.servers = {}
        for chapter, name in enumerate(top.NAMES, 1):
            cls.servers[name] = Server(name, cls.base + chapter)
            cls.addClassCleanup(cls.servers[name].end)

    def open(self, query="", name="epoll"):
        return open_page(self, self.servers[name].url + "/wall.html" + query)

    def hold(self, name, number):
        return hold(self, self.servers[name], number)

    def await_all(self, page):
        page.until("document.querySelector('.server')")
        for name in top.NAMES:
            page.until(RUNNING % name)

    def test_shows_seven_running_servers(self):
        for page in (self.open(), self.open("?base=%d" % self.base, "forking")):
            self.await_all(page)
            for name in top.NAMES:
                whose = r"^1 event loop, " if name in top.of_kind("loop") else r"^\d+ workers?: "
                self.assertRegex(page.value(LABEL % name), whose)
                page.until("/^\\d/.test(%s.querySelector('.rate strong').textContent)" % (CARD % name))
            self.assertEqual(page.errors(), [])

    def test_shows_clients_come_and_go(self):
        page = self.open()
        self.await_all(page)
        held = top.NAMES[1:]  # iterative would be held by the first one
        clients = [client for name in held for client in self.hold(name, 5)]
        for name in held:  # and the wall's own
            page.until("/\\b6 reading/.test(%s)" % (LABEL % name))
        look_at(self, page)
        let_go(clients)
        for name in held:
            page.until("/\\b1 reading/.test(%s)" % (LABEL % name))
        self.assertEqual(page.errors(), [])

    def test_shows_a_server_that_is_held_as_busy(self):
        page = self.open()
        self.await_all(page)
        clients = self.hold("iterative", 1)
        page.until("/busy for \\d+ s/.test(%s.innerText)" % (CARD % "iterative"))
        self.assertTrue(page.value(CARD % "iterative" + ".matches('.late')"))
        self.assertTrue(page.value(RUNNING % "epoll"))
        let_go(clients)
        page.until(RUNNING % "iterative")
        self.assertEqual(page.errors(), [])

    def test_shows_a_server_that_is_not_there_and_one_that_is_another(self):
        page = self.open("?base=%d" % (self.base + 1))  # so the last one has nobody
        page.until("document.querySelector('.server')")
        page.until(CARD % top.NAMES[-1] + ".querySelector('.word').textContent === 'not running'")
        page.until(CARD % "iterative" +
                   ".querySelector('.word').textContent === 'forking is at this port'")
        self.assertEqual([error for error in page.errors() if REFUSED not in error], [])

    # ---- make serve -------------------------------------------------------------------------

    def settings(self, base, **more):
        return {**ENVIRONMENT, "BASE": str(base), "SERVERS": os.environ.get("SERVERS", "."),
                "LOGS": tempfile.mkdtemp(prefix="serve.", dir=FOLDER), **more}

    @contextlib.contextmanager
    def serve(self, bind="127.0.0.1", stdin=subprocess.DEVNULL, **more):
        """The base of its ports, its process, and what it has printed when all seven are ready."""
        base = free_base()
        process = processes.start([SERVE], env=self.settings(base, BIND=bind, **more), cwd=TOP, stdin=stdin,
                                  encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with process.stdout:
            said = ""
            while not said.endswith("Ctrl-C ends them all.\n"):
                line = process.stdout.readline()
                self.assertTrue(line, "it ended: " + said)
                said += line
            yield base, process, said
            if process.returncode is None:
                self.assertEqual(processes.end(process), 0)

    def test_serve_says_once_that_its_ports_are_taken_and_takes_no_arguments(self):
        with self.serve() as (base, _, _):
            for arguments, words in ([], "--port"), (["--help"], "no arguments"):
                other = subprocess.run([SERVE, *arguments], env=self.settings(base), cwd=TOP, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
                self.assertEqual((other.returncode, other.stdout.count(words)), (1, 1), other.stdout)

    def test_serve_ends_with_its_window(self):
        """The hang-up may reach the make around it alone. The locale is one that no system has."""
        window, terminal = pty.openpty()
        with self.serve(stdin=terminal, LC_ALL="xx_XX.UTF-8") as (_, process, _):
            os.close(terminal)
            os.close(window)
            process.communicate(timeout=patience(SOON_SECONDS))
            self.assertEqual(process.returncode, 0)

    def test_serve_leaves_nothing_behind_however_it_is_ended(self):
        """timeout(1) signals make and then the group, while make passes its signal on; Ctrl-C reaches
        the group, and so does a terminal that is closed; kill -9 may be the kernel's, without memory."""
        term, hang_up, stop, kill = signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL
        for signals in (term, term), (hang_up, hang_up), (stop, stop), (kill,):
            with self.subTest(signals=signals), self.serve() as (base, process, _):
                for number, pause in zip(signals, (0.003, 0)):
                    os.killpg(process.pid, number)
                    time.sleep(pause)
                said = process.communicate(timeout=patience(SOON_SECONDS))[0]  # so all of them have ended
                self.assertNotIn("Killed", said)
                self.assertEqual([], [port for port in range(base + 1, base + 1 + len(top.NAMES)) if answers(port)], said)
                self.assertEqual(process.returncode, -kill if kill in signals else 0, said)

    def test_serve_shows_the_status_to_all_if_other_machines_can_reach_it(self):
        """Whatever is exported for every shell, or for another Redis."""
        for bind, status in (("127.0.0.1", 421), ("0.0.0.0", 200)):
            with self.subTest(bind), self.serve(bind, REDISCLI_AUTH="another's", TMOUT="1") as (base, _, said):
                self.assertEqual(FOR_ALL in said, status == 200, said)
                self.assertNotIn("Redis", said)
                for chapter in range(1, len(top.NAMES) + 1):
                    for host, wanted in (("192.0.2.7", status), ("rebound.example", 421), ("localhost", 200)):
                        self.assertEqual(status_of(base + chapter, host), wanted, (chapter, host))
