"""Each companion shows the page of the seven, and asks Redis as often. What is not installed is
skipped by name."""

import glob
import html
import http.client
import os
import re
import subprocess
import unittest
from urllib.parse import urlsplit

import programs
from lib.measuring import machine, meter, processes
from lib.seeing import xray
from lib.subjects import companions, peers, redis, servers
from proc import gone_within

MOST_LINES = 60
PAGES = 3  # that each is asked for, in each state of the guestbook
WORK_MS = 50
ENTRY = "2026-01-05T09:05:00Z\n<b>Bj\u00f6rn</b>\n\"O'Reilly\" & {{visitors}}\nof <i>two</i> lines = `1` / 2"


def fetch(url):
    """The pages that are asked for on one connection, as long as the server keeps it."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    for _ in range(PAGES):
        connection.request("GET", "/guestbook")
        answer = connection.getresponse()
        yield answer.status, answer.getheader("Content-Type"), answer.read().decode("utf-8")
    connection.close()


def plain(page):
    """Without the counter and the server's name. Each language has its own way to write what HTML
    gives a meaning, and some write more characters so; here all are written alike."""
    def alike(found):
        character = html.unescape(found[0])
        return html.escape(character) if character in '&<>"' else character

    page = re.sub(r"number [\d,]+\. The [\w-]+ server", "number N. The X server", page)
    return re.sub(r"&#?\w+;", alike, page)


class Table(unittest.TestCase):
    def test_each_program_fits_a_page(self):
        for path in glob.glob(os.path.join(machine.TOP, "loadtest/companions/*")):
            if not path.endswith(".md"):
                self.assertLessEqual(processes.printed(path).count("\n"), MOST_LINES, path)

    def test_each_has_a_group_of_packages_and_a_version(self):
        for name in companions.NAMES:
            group = name.partition("-")[0]
            rows = machine.output_of([os.path.join(machine.TOP, "common/tools/deps"), "--list", group])
            self.assertRegex(rows, r"(?m)^(ok|missing) companions,%s " % group)
            self.assertIn(group, companions.VERSIONS)

    def test_the_page_has_the_versions_of_its_run(self):
        facts = machine.read(os.path.join(machine.TOP, "loadtest/results/companions-work/environment.txt"))
        [known] = re.findall(r"^companions: (.*)$", facts, re.MULTILINE)
        text = machine.read(os.path.join(machine.TOP, "loadtest/companions/README.md"))
        rows = re.findall(r"^\| \[([\w-]+)\]\(\S+\) \| \D+ ([\d.]+)", text, re.MULTILINE)
        self.assertEqual({"java-virtual", *dict(rows)}, {*companions.NAMES})
        for name, version in rows:
            self.assertRegex(known, r"(?<![\d.])%s(?!\d)" % re.escape(version), name)

    def test_work_is_microseconds_in_the_environment(self):
        for line in (companions.line("node", 0.5), xray.Program("node").line(xray.Plan(work=0.5))):
            self.assertIn("export WORK_US=500 && exec ", line)
        self.assertNotIn("WORK_US", companions.line("node"))

    def test_what_cannot_be_measured_is_named(self):
        done = programs.run("compare", "--plan", "--into", programs.folder(self), "--url", "/index.html",
                            "--servers", ",".join(companions.NAMES))
        self.assertEqual(done.returncode, 1)
        for name in companions.NAMES:
            self.assertRegex(done.stdout, r"\b%s is left out: .*(it needs|no page but|it is not built|no virtual)"
                             % name)


class Companions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = programs.folder(cls)
        made = subprocess.run(["make", "-s", "-C", machine.TOP, "DEPS=no", "companions"], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8")
        print(made.stdout, end="", flush=True)  # what could not be built, which is skipped below
        cls.store = redis.start_private(cls.folder, None, redis.free_port()).on_a_port()
        cls.addClassCleanup(processes.end_all)
        cls.ours = {}
        for name, fill in cls.states().items():
            fill()
            with servers.Server(servers.path_of("epoll"), cls.store.where, None,
                                os.path.join(cls.folder, "epoll.log")) as server:
                [*_, (_, _, page)] = fetch(server.url)
            cls.ours[name] = plain(page)

    @classmethod
    def states(cls):
        def more_than_a_page():
            cls.store.seed(24)
            cls.store.ask("RPUSH", redis.ENTRIES, ENTRY)
            cls.store.ask("SET", redis.VISITORS, "1234500")

        return {"empty": cls.store.forget, "five": cls.store.seed, "more": more_than_a_page}

    def check(self, name):
        reason = companions.missing(name)
        if reason:
            self.skipTest("%s: %s" % (name, reason))
        log = os.path.join(self.folder, name + ".log")
        with peers.Command(name, companions.line(name), None, log, self.store.where) as server:
            for state, fill in self.states().items():
                fill()
                before = self.store.counts()
                for status, kind, page in fetch(server.url):
                    self.assertEqual((status, kind), (200, "text/html; charset=utf-8"))
                    self.assertEqual(plain(page).splitlines(), self.ours[state].splitlines())
                counted = re.search(r"number ([\d,]+)\.", page).group(1)
                self.assertEqual(counted, "1,234,503" if state == "more" else str(PAGES))
                self.assertIsNone(redis.unequal(PAGES, self.store.counts_since(before)))
            everybody = meter.Tree(server._process.pid).pids()
            server.must_live()
            self.assertEqual(server.end(), 0)
        for pid in everybody:
            self.assertTrue(gone_within(3, pid))

    def test_each_shows_the_page_of_the_seven(self):
        for name in companions.NAMES:
            with self.subTest(name):
                self.check(name)

    def test_a_page_computes_as_long_as_it_is_asked(self):
        for name in companions.NAMES:
            with self.subTest(name):
                if companions.missing(name):
                    self.skipTest(companions.missing(name))
                log = os.path.join(self.folder, name + "-work.log")
                with peers.Command(name, companions.line(name, WORK_MS), None, log, self.store.where) as server:
                    tree, used = meter.Tree(server._process.pid), []
                    for _ in range(2):  # the first pages are compiled, too
                        used.append(meter.cpu_seconds(tree.stats()))
                        list(fetch(server.url))
                    each = 1000 * (meter.cpu_seconds(tree.stats()) - used[1]) / PAGES
                self.assertTrue(WORK_MS / 2 < each < 2 * WORK_MS, each)  # others may be at work here

    def test_they_stand_beside_the_seven(self):
        there = [name for name in companions.NAMES if not companions.missing(name)][:2]
        if not there:
            self.skipTest("no companion is installed; `make companions` brings them")
        names = ",".join(["epoll", *there])
        for command, row in ((["compare", "--quick", "--levels", "20", "--servers", names], r"^\| %s "),
                             (["compare", "--quick", "--delay", "10", "--servers", names], r"^\| %s "),
                             (["compare", "--quick", "--work", "10", "--servers", names], r"^\| %s +\| +(?:≥ )?\d{1,3} "),
                             (["xray", "--quick", "--server", names], r"^\| %s ")):
            with self.subTest(command=command):
                done = programs.run(*command, "--into", programs.folder(self))
                self.assertEqual(done.returncode, 0, done.stdout)
                for name in there:
                    self.assertRegex(done.stdout, "(?m)" + row % name)
