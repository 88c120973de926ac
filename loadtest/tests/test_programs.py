"""Every program, run for a moment: equal work, no error, a table, a page that opens. Nothing here says how fast
anything has to be. And programs that were told to do something, and would have measured without it."""

import contextlib
import glob
import io
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import unittest
import unittest.mock
import xml.etree.ElementTree

import programs
import processes
import top
import waiting
from lib import cells, engine
from lib.generators.load import Load
from lib.measuring import machine, meter
from lib.subjects import peers

OTHER = '%s "%s/another.py" {port}' % (sys.executable, programs.HERE)

class Programs(unittest.TestCase):
    def run_briefly(self, program, options, tools="", beside=()):
        """Runs it, in a terminal that knows few letters, with a password for another Redis, and TMOUT, which would
        end the shell of ours. Returns what it printed, and its table.md."""
        missing = [tool for tool in tools.split() if not shutil.which(tool)]
        missing += [name for name in beside if peers.missing(name)]
        if missing:
            self.skipTest("not installed: %s" % ", ".join(missing))
        self.folder = programs.folder(self)
        done = programs.run(program, "--quick", "--into", self.folder, *shlex.split(options), timeout=120,
                            env={**os.environ, "PYTHONIOENCODING": "iso-8859-1", "REDISCLI_AUTH": "x", "TMOUT": "1"})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "file://%s/report.html" % self.folder)
        text = processes.printed(os.path.join(self.folder, "table.md"))
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            rows = [line.strip("|").split(" | ") for line in table.splitlines()]
            self.assertEqual({len(row) for row in rows}, {len(rows[0])}, table)
            self.assertGreater(len(rows), 2, table)
        self.assertRegex(text, r"\| +(≥ )?[1-9][\d,.]*")
        xml.etree.ElementTree.fromstring(machine.read(self.folder + "/report.html").replace("<!DOCTYPE html>", ""))
        return done.stdout + text

    def test_each(self):
        """One whole run of each kind."""
        for program, options, tools, beside, *words in (
                ("compare", "--levels 20 --servers iterative,epoll,floor --rounds 1", "ab wrk", [], "Equal work", "new/s"),
                ("compare", "--delay 0,10 --servers poll --rounds 1", "ab", [], r"Redis 10 ms away", "asked it through a relay"),
                ("compare", "--work 0,1 --idle 0,20 --servers epoll --rounds 1", "wrk", [], "1 ms of work a page", "asked it over a Unix socket"),
                ("compare", "--path /index.html --levels 10 --servers epoll,nginx,floor --rounds 1", "ab wrk", ["nginx"]),
                ("compare", "--levels 20 --rounds 1 --kinds new --servers epoll --command 'old=%s {redis_port}; true' "
                 "--command 'mine=cd . && \"%s\"'" % (OTHER, top.path_of("epoll")), "ab", [], r"\| mine ", r"\| old ", "All asked it over TCP"),
                ("latency", "--servers epoll --levels 100,200", "h2load", [], "The limit, in requests a second"),
                ("latency", "--path /index.html --levels 200 --servers epoll,nginx", "h2load", ["nginx"]),
                ("sweep", "--levels 20,50 --servers preforking --backlog 10", "ab", [], r"\d \| \d"),
                ("cost", "--parts cpu --kinds new,kept --servers epoll,floor --levels 200 --seconds 0.5", "h2load wrk", [],
                 r"epoll +\| +\d+ \| +\d", r"floor +\| +[\d.]+ \| +- \|"),
                ("cost", "--parts memory --servers epoll,iterative --idle 20", "", [], r"epoll +\| +20 \| +[\d.]+ ", "iterative: It holds one"),
                ("cost", "--parts calls --servers epoll --command 'mine=\"%s\"'" % top.path_of("epoll"), "ab strace", [],
                 r"System calls for .*\n\n\| call +\| epoll \| +mine \|")):
            with self.subTest(program + " " + options):
                text = self.run_briefly(program, options, tools, beside)
                for each in words:
                    self.assertRegex(text, each)

    def test_a_round_shuffles_its_cells_and_from_these_every_figure_can_be_computed(self):
        """By other few lines: a page's CPU time is that of the meter by the pages of the meter's time."""
        self.run_briefly("compare", "--rounds 2 --seconds 0.1 --levels 1,2 --servers poll,epoll,floor", "ab wrk")
        for row in programs.cells(self.folder):
            window, used = float(row["metered_seconds"]), float(row["server_cpu_us"]) / 1e6
            self.assertAlmostEqual(100 * used / window, float(row["server_percent"]), delta=1)
            self.assertGreaterEqual(window, float(row["seconds"]) - 0.01)
            if row["subject"] != "floor":  # all requests of the load are those of the row: its p99 holds no others
                self.assertLessEqual(int(row["incr"]), int(row["requests"]) + int(row["clients"]))
            self.assertLess(used, 1.1 * window)
            self.assertAlmostEqual(int(row["requests"]) / float(row["seconds"]) / float(
                row["requests_per_second"]), 1, delta=0.01)
            self.assertGreater(float(row["canary_us"]), 100)
        orders = [[(row["subject"], row["generator"], row["clients"]) for row in programs.cells(self.folder)
                   if row["round"] == number] for number in "12"]
        self.assertEqual(*map(sorted, orders))
        self.assertNotEqual(*orders)
        for order in orders:
            self.assertNotEqual([each[1:] for each in order], sorted(each[1:] for each in order))

    def test_the_table_of_a_run_that_is_interrupted_says_so(self):
        folder = programs.folder(self)
        run = subprocess.Popen([programs.LOADTEST + "/compare", "--quick", "--servers", "epoll", "--rounds", "20", "--into", folder],
                               stdout=subprocess.PIPE, encoding="utf-8", start_new_session=True)
        with run:
            waiting.until(lambda: programs.cells(folder), 60)
            run.send_signal(signal.SIGINT)
            self.assertRegex(run.stdout.read(), r"\AInterrupted: \d+ of 40 cells were measured\.\n")

    def test_a_pipe_is_told_now_and_then_how_much_time_is_left(self):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            its = engine.Progress(2, 60)
            its.begin("poll")
            its.begin("epoll")
        self.assertEqual(told.getvalue(), "poll (cell 1 of 2, about 120 s left)\n")

    def test_help_fits_80_columns(self):
        for name in ("compare", "sweep", "latency", "cost", "xray", "which", "same", "publish"):
            lines = programs.run(name, "--help", env={**os.environ, "COLUMNS": "80"}).stdout.splitlines()
            self.assertEqual((lines[0].split()[0], [line for line in lines if len(line) > 80]), ("usage:", []), name)

    def test_what_cannot_be_measured_is_refused_in_words(self):
        for options, said in (("--command epoll=x", "no name for another"), ("--servers epoll,nobody", "none of"),
                              ("--inventory f --command 'a=%s'" % OTHER, "no other servers"),
                              ("--instances 2", "where the balancer is"), ("--cores 4000", "more than there are"),
                              ("--quick --servers floor --command a=false", "a did not start"),
                              ("--quick --servers floor --command 'a=%s 1'" % OTHER, "a: it does not answer for /guestbook")):
            with self.subTest(options=options):
                done = programs.run("compare", *shlex.split(options), "--into", programs.folder(self))
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(said, done.stdout)


class Disturbed(unittest.TestCase):
    """A cell beside other work is measured again, and void if it always was."""

    def test_again_three_times_and_then_void(self):
        for what, tries, wrong, most in (
                ([("others_percent", 40.0)] * 3, 3, "other work took 40 % of a core", 3), ([("others_percent", 40.0), ()], 2, "", 3),
                ([()], 1, "", 3), ([("others_percent", 40.0)], 1, "", 1), ([("throttled", 7)], 1, "throttled: ", 1),
                ([("steal_percent", 40.0)] * 2, 2, "steal: other machines took 40 %", 2),
                ([("canary_us", 1200.0)] * 2, 2, "slow: the canary took more", 2), ([("canary_us", 1200.0), ()], 2, "", 3)):
            left, run = list(what), object.__new__(engine.Run)

            def measure(cell, _run, left=left):
                figures = dict([left.pop(0) or ("canary_us", 1000.0)])
                cell.canary_us = figures.get("canary_us")
                cell.figures = {**dict.fromkeys(meter.COLUMNS, 0), **figures}
                cell.load = Load(5, {}, 1.0, 1.0, {50: 1.0})

            run.rows, run.canaries, run.tries, run.progress, run.asked = [], [1000.0] * 9, most, engine.Progress(1, 1), {}
            run._tsv = open(os.devnull, "w", encoding="utf-8")
            self.addCleanup(run._tsv.close)
            with unittest.mock.patch.object(cells, "measure", measure):
                row = run.measured(cells.Spot("epoll", "ab", clients=5), 1)
            self.assertEqual((row["tries"], row["wrong"][:len(wrong)], bool(row["wrong"])), (str(tries), wrong, bool(wrong)))


class Ignored(unittest.TestCase):
    """What was told to do something, and did not, has no figures."""

    def test_a_delay_or_work_that_no_page_has_met(self):
        for dial, ms, cpu, words in (({"delay_ms": 10}, 29, 100, "3 calls to it took 29.0 ms"), ({"delay_ms": 10}, 30, 100, ""),
                                     ({"work_ms": 2}, 30, 1500, "was to compute for 2 ms, and took 1.50"),
                                     ({"work_ms": 2}, 30, 1900, "")):
            cell = cells.Cell(cells.Spot("node", "wrk", clients=10, **dial), 1)
            cell.load = Load(1000, {}, 1, ms, {50: ms})
            cell.figures = {"server_cpu_us": 1000.0 * cpu}
            found = "".join(cells.ignored(cell))
            self.assertEqual(bool(found), bool(words), found)
            self.assertIn(words, found)


publish, same = map(programs.load, ("publish", "same"))


class Same(unittest.TestCase):
    """Old and new: what is alike is held, what is not is found, and what cannot be judged is said to be so."""

    def judged(self, ratio, noise, number):
        dice = random.Random(number)
        return same.judged([[[1.0, ratio * dice.lognormvariate(0, noise)]] for _ in range(number)])

    def test_the_interval_decides(self):
        for ratio, noise, number, verdict in (
                (1, 0.01, 20, same.HELD), (1.02, 0.005, 20, same.HELD), (1.08, 0.01, 20, same.CHANGED),
                (0.9, 0.01, 20, same.CHANGED), (1.05, 0.02, 20, same.UNSURE), (1, 0.3, 20, same.UNSURE),
                (1, 0, same.FEWEST - 1, same.UNSURE), (1, 0, same.FEWEST, same.HELD), (2, 0.1, 8, same.CHANGED)):
            self.assertEqual(self.judged(ratio, noise, number), verdict, (ratio, noise, number))

    def test_a_revision_stands_for_all_seven(self):
        self.assertEqual(same.pairs("HEAD", ".")[0], ("iterative@HEAD", "iterative"))
        self.assertEqual(len(same.pairs("a1b2", "HEAD")), len(top.NAMES))
        for pair in (("epoll@HEAD", "epoll"), ("./a", "./b"), ("python3 x {port}", "./b")):
            self.assertEqual(same.pairs(*pair), [pair])

    @programs.needs("ab")
    def test_a_server_that_computes_is_found_and_the_same_code_is_not_even_measured(self):
        for old, status, words in (("epoll --work 0.2", 1, r"kept page: CPU µs .*changed"), ("epoll", 0, "the same machine code")):
            done = programs.run("same", old, "epoll", "--works", "kept page")
            if "other work took the cores" in done.stdout:
                self.skipTest(done.stdout)
            self.assertEqual(done.returncode, status, done.stdout)
            self.assertRegex(done.stdout, words)

    def test_the_hash_knows_no_path_version_or_comment(self):
        """It does know what the program does."""
        source, folder = "/* %s */ int main(void) { const char *version = \"%s\"; return version[%d]; }", programs.folder(self)
        codes = []
        for at, values in enumerate((("a", "2.0.0", 1), ("b\n", "2.1.0", 1), ("a", "2.0.0", 2))):
            path = "%s/%d" % (folder, at)
            subprocess.run(["cc", "-g", "-O0", "-x", "c", "-", "-o", path], input=(source % values).encode(), check=True)
            codes.append(machine.code_of(path))
        self.assertEqual(codes[0], codes[1])
        self.assertNotEqual(codes[0], codes[2])

    def test_a_run_says_what_was_held_since(self):
        store = programs.folder(self)
        os.mkdir(store + "/some")
        files = {"cells.tsv": "subject\tround\nepoll --backlog 10\t1\n", "table.md": "Some words.\n\n| a |\n", "environment.txt":
                 "release: 1.9\nZeroHTTPd: abc\ncode: poll 1, epoll 1\n"}
        for name, text in files.items():
            with open("%s/some/%s" % (store, name), "w", encoding="utf-8") as file:
                file.write(text)
        finding = same.Finding("kept page: CPU µs", "1", "2", 2.0, 1.9, 2.1, same.CHANGED)
        for code, words in (("2", r"epoll changed \(kept page: CPU µs 2.00 \[1.90-2.10\]\)"), ("1", r"epoll held \(the same code\)")):
            today = [("release", "2.1"), ("ZeroHTTPd", "def"), ("code", "poll 1, epoll %s" % code)]
            with unittest.mock.patch.multiple(same, compared=lambda *_: [finding]), unittest.mock.patch.object(
                    same.stored, "STORE", store), unittest.mock.patch.object(same.machine, "environment", lambda today=today: today), \
                    contextlib.redirect_stdout(io.StringIO()):
                same.hold(None)
            self.assertRegex(machine.read(store + "/some/environment.txt"), r"\nheld: 2.1 at def: %s\n\Z" % words)
            self.assertRegex(machine.read(store + "/some/table.md"), r"\AMeasured for release 1.9. .* release 2.1 at def: %s"
                             r"\.\n\nSome words" % words)


class Publish(unittest.TestCase):
    RUN = ("some", 1, "loadtest/compare --rounds 7", "a test")

    def setUp(self):
        self.there = os.path.join(programs.folder(self), "some")
        os.mkdir(self.there)
        patch = unittest.mock.patch.object(publish, "STORE", os.path.dirname(self.there))
        patch.start()
        self.addCleanup(patch.stop)

    def why(self, table="| a |", cells_="", **facts):
        facts = {"ZeroHTTPd": "abc1234", "release": machine.release(), "engine": machine.ENGINE, "command": self.RUN[2], **facts}
        for name, text in (("environment.txt", "".join("%s: %s\n" % pair for pair in facts.items())), ("table.md", table),
                           ("cells.tsv", cells_)):
            with open(os.path.join(self.there, name), "w", encoding="utf-8") as file:
                file.write(text)
        return publish.why(self.RUN)

    def test_what_has_to_be_made_again(self):
        self.assertEqual(self.why(), "")
        self.assertEqual(self.why(table="20,000 clients are left out: a process may have 20,000 descriptors."), "")
        now = machine.release()
        self.assertEqual(self.why(code="epoll 0"), "")  # whatever the code has become since
        self.assertEqual(self.why(release="1.9", held=now + " at abc: poll held (0.99-1.01)"), "")
        for how, words in (({"command": "loadtest/compare"}, "another command"), ({"engine": "0"}, "measured by engine 0"),
                           ({"release": "1.9"}, "not held at " + now),
                           ({"release": "1.9", "held": "1.9.1 at abc: poll held (0.99-1.01)"}, "not held at " + now),
                           ({"release": "1.9", "held": now + " at abc: poll changed (1.10)"}, "not all is held"),
                           ({"table": "floor is left out: it is not built."}, "incomplete: floor"),
                           ({"table": "Interrupted: 2 of 9 cells were measured."}, "incomplete: Interrupted")):
            self.assertIn(words, self.why(**how))

    def test_each_run_is_shown_by_a_page(self):
        pages = [machine.read(path) for kind in ("*.md", "*/*.md", "loadtest/companions/*.md", "public/*.html", "loadtest/results/*.tsv")
                 for path in glob.glob(os.path.join(glob.escape(machine.TOP), kind))]
        for name, *_ in publish.RUNS:
            self.assertTrue(re.search(r"results/%s/|[ {]%s \|" % (name, name), "".join(pages)), name)

    def test_a_noisy_hour(self):
        header = "subject\tround\tgenerator\tclients\trequests\twrong\trequests_per_second\tserver_core_busy\tclient_core_busy\n"
        line = "floor\t%d\tab\t20\t9\t%s\t%d\t99\t60\n"
        for rates, wrong, words in (([100] * 7, "", ""), ([100, 130] * 3, "", "nothing may be ranked: the floor's pages a second drifted by 26 %"),
                                    ([100] * 7, "other work took 40 % of a core", "noisy: 7 of 7 cells were disturbed"),
                                    ([100] * 7, "3 of 9 requests failed", "7 of 7 cells are wrong")):
            self.assertIn(words, self.why(cells_=header + "".join(line % (at, wrong, rate) for at, rate in enumerate(rates))))

    def test_tables_are_computed_from_stored_cells(self):
        shutil.copytree(os.path.join(programs.LOADTEST, "results", "cores"), self.there, dirs_exist_ok=True)
        before = machine.read(self.there + "/table.md")
        for name, new in (("table.md", ""), ("cells.tsv", machine.read(self.there + "/cells.tsv").replace("\tpoll\t", "\tepool\t"))):
            with open(os.path.join(self.there, name), "w", encoding="utf-8") as file:
                file.write(new)
        publish.tabulate(self.RUN)
        self.assertEqual(machine.read(self.there + "/table.md").count("epool"), before.count("poll") - before.count("epoll"))


if __name__ == "__main__":
    unittest.main()
