"""The wall in Chromium, `make load` and `make serve`: all seven at once, on ports that follow each other."""

import contextlib
import http.client
import os
import re
import socket
import subprocess
import tempfile
import unittest

from browser import look_at, open_page
from case import ENVIRONMENT, FOLDER, SOON_SECONDS, TOP, Server, patience
from lib.measuring import processes
from lib.subjects import servers
from status import hold, let_go

LOAD = os.path.join(TOP, "common", "tools", "load")
SERVE = os.path.join(TOP, "common", "tools", "serve")
FOR_ALL = "    Everybody who can reach these ports sees /status and the wall.\n"
BASES = range(20000, 32000, 10)  # below the ports that the kernel picks for others
CARD = "document.getElementById('%s').closest('.server')"
RUNNING = CARD + ".querySelector('.word').textContent === 'running'"
LABEL = CARD + ".querySelector('.cells').ariaLabel"
LANES = CARD + ".querySelector('.lanes')"
ASKED = """performance.getEntriesByType('resource').filter(
    entry => entry.name.endsWith('/status.json')).length"""
LOOK_AWAY = """(() => {
    Object.defineProperty(document, 'hidden', {value: %s, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
})()"""
LATER = "(now => { performance.now = () => now() + 31000 })(performance.now.bind(performance))"
REFUSED = "net::ERR_CONNECTION_REFUSED"  # the browser's own words, which no page can prevent


def free_base():
    """Seven ports that nobody has, behind the number that is returned."""
    for base in BASES:
        with contextlib.ExitStack() as stack:
            try:
                for chapter in range(1, 8):
                    taken = stack.enter_context(socket.socket())
                    taken.bind(("127.0.0.1", base + chapter))
                return base
            except OSError:
                continue
    raise AssertionError("there are no seven free ports")


def outer_address():
    """An IPv4 address of this machine that is not of its loopback interface, or None. A client that
    connects to it comes from there, too."""
    found = re.search(r" inet ([\d.]+)", subprocess.check_output(
        ["ip", "-4", "-oneline", "address", "show", "up", "scope", "global"], encoding="utf-8"))
    return found and found.group(1)


def status_of(at, port, host):
    """How the server there answers a client that names it so."""
    with contextlib.closing(http.client.HTTPConnection(at, port, timeout=patience(SOON_SECONDS))) as connection:
        connection.request("GET", "/status.json", headers={"Host": host})
        return connection.getresponse().status


class Wall(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = free_base()
        cls.servers = {}
        for chapter, name in enumerate(servers.NAMES, 1):
            cls.servers[name] = Server(name, cls.base + chapter)
            cls.addClassCleanup(cls.servers[name].end)

    def open(self, query="", name="epoll"):
        return open_page(self, self.servers[name].url + "/wall.html" + query)

    def hold(self, name, number):
        return hold(self, self.servers[name], number)

    def await_all(self, page):
        page.until("document.querySelector('.server')")
        for name in servers.NAMES:
            page.until(RUNNING % name)

    def test_shows_seven_running_servers(self):
        for page in (self.open(), self.open("?base=%d" % self.base, "forking")):
            self.await_all(page)
            for name in servers.NAMES:
                whose = r"^1 event loop, " if name in ("poll", "epoll") else r"^\d+ workers?: "
                self.assertRegex(page.value(LABEL % name), whose)
                page.until("/^\\d/.test(%s.querySelector('.rate strong').textContent)"
                           % (CARD % name))
            self.assertEqual(page.errors(), [])

    def test_the_longest_words_of_a_card_take_one_line(self):
        page = self.open()
        self.await_all(page)
        page.resize(1366, 768)
        wide = page.value("""[...document.querySelectorAll('.parts')].filter(each => {
            each.textContent = 'kernel 100 %, own 100 %';
            return each.scrollWidth > each.clientWidth || each.clientHeight > 22;
        }).length""")
        self.assertEqual(wide, 0)

    def test_shows_clients_come_and_go(self):
        page = self.open()
        self.await_all(page)
        held = ("forking", "preforking", "threading", "prethreading", "poll", "epoll")
        clients = [client for name in held for client in self.hold(name, 5)]
        for name in held:  # and the wall's own
            page.until("/\\b6 reading/.test(%s)" % (LABEL % name))
            self.assertIsNotNone(page.value(CARD % name + ".querySelector('.cells .reading')"))
        look_at(self, page, "wall")
        let_go(clients)
        for name in held:
            page.until("/\\b1 reading/.test(%s)" % (LABEL % name))
        self.assertEqual(page.errors(), [])

    def test_shows_the_last_second_as_lanes(self):
        page = self.open()
        self.await_all(page)
        names = ("forking", "preforking", "threading", "prethreading")
        clients = [client for name in names for client in self.hold(name, 3)]
        page.value("document.getElementById('lanes').click()")
        for name in names:  # each has been reading for longer than that: its bar is the whole lane
            page.until("/The last second of .*\\b4 reading/.test(%s)" % (LANES % name + ".ariaLabel"))
            page.until("/M0\\.0 /.test(%s.querySelector('.reading').getAttribute('d'))"
                       % (LANES % name))
            self.assertEqual("none", page.value("getComputedStyle(%s).display" % (
                CARD % name + ".querySelector('.cells')")))
        for name in ("poll", "epoll"):
            self.assertIsNotNone(page.value(LANES % name + ".querySelector('.loop')"))
            self.assertIn("keeps no times", page.value(LANES % name + ".textContent"))
        self.assertIn("worker has just", page.value(LANES % "iterative" + ".textContent"))
        look_at(self, page, "wall-lanes")
        page.value("document.getElementById('lanes').click()")
        for name in names:
            page.until(CARD % name + ".querySelector('.cells .reading')")
        let_go(clients)
        self.assertEqual(page.errors(), [])

    def test_shows_a_server_that_is_held_as_busy_and_waits_its_turn(self):
        page = self.open()
        self.await_all(page)
        clients = self.hold("iterative", 1)
        page.until("/busy for [2-9] s/.test(%s.innerText)" % (CARD % "iterative"))
        self.assertTrue(page.value(CARD % "iterative" + ".matches('.late')"))
        self.assertIsNotNone(page.value(CARD % "iterative" + ".querySelector('.cells path')"))
        self.assertTrue(page.value(RUNNING % "epoll"))
        asked = {event["requestId"] for event in page.events("Network.requestWillBeSent")
                 if event["request"]["url"] == self.servers["iterative"].url + "/status.json"}
        ended = {event["requestId"] for method in ("loadingFinished", "loadingFailed")
                 for event in page.events("Network." + method)}
        self.assertEqual(len(asked - ended), 1)
        look_at(self, page, "wall-busy")
        page.value(LATER)  # it waits on, for longer than half a minute
        for seconds in ("[34]\\d", "[6-9]\\d"):
            page.until("/busy for %s s/.test(%s.innerText)" % (seconds, CARD % "iterative"))
            page.value(LATER)
        let_go(clients)
        page.until(RUNNING % "iterative")
        self.assertEqual(page.errors(), [])

    def test_shows_a_server_that_is_not_there_and_one_that_is_another(self):
        page = self.open("?base=%d" % (self.base + 1))  # so the seventh has nobody
        page.until("document.querySelector('.server')")
        page.until(CARD % "epoll" + ".querySelector('.word').textContent === 'not running'")
        page.until(CARD % "iterative" +
                   ".querySelector('.word').textContent === 'forking is at this port'")
        self.assertEqual([error for error in page.errors() if REFUSED not in error], [])

    def test_asks_nothing_while_nobody_looks_or_it_is_to_pause(self):
        def look_away(away):
            page.value(LOOK_AWAY % away)

        def pause(paused):
            page.press_enter("#pause")
            page.until("document.querySelector('#pause').ariaPressed === '%s'" % paused)

        page = self.open()
        self.await_all(page)
        for stop in (look_away, pause):
            stop("true")
            before = page.value(ASKED)
            page.value("new Promise(resolve => setTimeout(resolve, 1500))")  # longer than a turn
            self.assertEqual(page.value(ASKED), before)
            stop("false")
            page.until("%s >= %d" % (ASKED, before + len(servers.NAMES)))
        self.assertEqual(page.errors(), [])

    def test_gives_the_commands_by_keyboard(self):
        page = self.open()
        page.until("document.querySelector('.server')")
        label = page.value("document.querySelectorAll('.server .choices button')[2].ariaLabel")
        self.assertEqual(label, "Copy 2,000: make load SERVER=iterative CLIENTS=2000 BASE=%d" % self.base)
        page.press_enter(".server .choices button:nth-of-type(3)")
        page.until("/^(Copied|Selected)/.test(document.querySelector('#said').textContent)")
        self.assertEqual(page.value("document.querySelector('.load code').textContent"),
                         "make load SERVER=iterative CLIENTS=2000 BASE=%d" % self.base)
        self.assertEqual(page.errors(), [])

    # ---- make load --------------------------------------------------------------------------

    def load(self, **asked):
        environment = {**ENVIRONMENT, "BASE": str(self.base), **asked}
        done = subprocess.run([LOAD], env=environment, stdin=subprocess.DEVNULL, check=False,
                              capture_output=True, encoding="utf-8", timeout=patience(SOON_SECONDS))
        return done.returncode, done.stdout, done.stderr

    def test_load_refuses_what_it_cannot_do(self):
        for asked, why in (({}, "SERVER"), ({"SERVER": "apache"}, "one of iterative"),
                           ({"SERVER": "epoll", "CLIENTS": "many"}, "CLIENTS=many"),
                           ({"SERVER": "epoll", "CLIENTS": "-1"}, "CLIENTS=-1"),
                           ({"SERVER": "epoll", "CLIENTS": "20001"}, "20000"),
                           ({"SERVER": "epoll", "CLIENTS": "0"}, "nothing to do"),
                           ({"SERVER": "epoll", "LOAD_SECONDS": "0"}, "nothing to do"),
                           ({"SERVER": "epoll", "BASE": "70000"}, "BASE=70000")):
            status, out, err = self.load(**asked)
            self.assertEqual((status, out), (2, ""), err)
            self.assertRegex(err, r"\Aload: .*%s.*\n\Z" % why)

    def test_load_says_who_is_not_there(self):
        status, out, err = self.load(SERVER="epoll", HELD="1", BASE=str(self.base + 1))
        self.assertEqual((status, out), (1, ""))
        self.assertIn("port %d" % (self.base + 8), err)

    # ---- make serve -------------------------------------------------------------------------

    @contextlib.contextmanager
    def serve(self, bind):
        """The base of its ports, and what it has printed when all seven are ready."""
        base = free_base()
        environment = {**ENVIRONMENT, "BASE": str(base), "BIND": bind,
                       "SERVERS": os.environ.get("SERVERS", "."),
                       "LOGS": tempfile.mkdtemp(prefix="serve.", dir=FOLDER)}
        process = processes.start([SERVE], env=environment, cwd=TOP, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  encoding="utf-8")
        said = ""
        with process.stdout:
            while not said.endswith("Ctrl-C ends them all.\n"):
                line = process.stdout.readline()
                self.assertTrue(line, "it ended: " + said)
                said += line
            yield base, said
            self.assertEqual(processes.end(process), 0)

    def test_serve_shows_the_status_to_all_if_other_machines_can_reach_it(self):
        for bind, at, status in (("", "127.0.0.1", 421), ("127.0.0.2", "127.0.0.2", 421),
                                 ("0.0.0.0", "127.0.0.1", 200)):
            with self.subTest(bind), self.serve(bind) as (base, said):
                self.assertEqual(FOR_ALL in said, status == 200, said)
                self.assertEqual(said.count("root"), os.geteuid() == 0 and status == 200, said)
                for chapter in range(1, 8):
                    for host, wanted in (("192.0.2.7", status), ("rebound.example", 421), ("localhost", 200)):
                        self.assertEqual(status_of(at, base + chapter, host), wanted, (at, chapter, host))

    def test_serve_shows_the_wall_to_a_browser_on_another_machine(self):
        address = outer_address()
        if not address:
            self.skipTest("this machine has no address but its loopback's")
        with self.serve("0.0.0.0") as (base, _):
            page = open_page(self, "http://%s:%d/wall.html" % (address, base + 7))
            self.await_all(page)
            look_at(self, page, "wall-elsewhere")
            self.assertEqual(page.errors(), [])
