"""Two runs held together, and a reader's runs in one file."""

import contextlib
import io
import os
import re
import unittest
from unittest import mock

import programs
from lib import Trouble, rounds, stored
from lib.measuring import machine

diff = programs.load("diff")
publish = programs.load("publish")
HEADER = "subject\tclients\tbacklog\trequests_per_second\twrong\tverdict\n"


class Diff(unittest.TestCase):
    def setUp(self):
        self.top = programs.folder(self)

    def run_of(self, name, rates, backlog=10, verdict="server full", wrong="", server="epoll",
               table="| a |", **facts):
        """Stores a run. Returns its folder."""
        folder = os.path.join(self.top, name)
        os.makedirs(folder)
        facts = {"governor": "powersave", "command": "loadtest/compare", "seed": name, **facts}
        for file, text in (
                ("environment.txt", "".join("%s: %s\n" % pair for pair in facts.items())),
                ("table.md", table),
                ("cells.tsv", HEADER + "".join("%s\t20\t%s\t%s\t%s\t%s\n" % (
                    server, backlog, rate, wrong, verdict) for rate in rates))):
            with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                out.write(text)
        return folder

    def held(self, a, b, column=None):
        return diff.held_together(stored.read(a), stored.read(b), column)

    def text(self, *runs):
        return self.held(*runs).markdown()


class Ratios(Diff):
    def test_a_ratio_with_its_interval_and_what_differs(self):
        text = self.text(self.run_of("a", [99, 100, 101]),
                         self.run_of("b", [198, 200, 202], 50, governor="performance"))
        self.assertRegex(text, r"epoll .* 100 .* 200 .* 2\.00 x \[1\.9\d-2\.0\d\]")
        self.assertIn("- governor: A powersave; B performance", text)
        self.assertIn("- backlog: A 10; B 50", text)
        self.assertNotIn("seed", text)

    def test_equal_if_the_interval_holds_1(self):
        text = self.text(self.run_of("a", [90, 100, 110]), self.run_of("b", [91, 102, 109]))
        self.assertRegex(text, r" = \|")
        self.assertIn("Nothing that is stored differs", text)

    def test_one_round_has_no_interval(self):
        text = self.text(self.run_of("a", [100]), self.run_of("b", [100]))
        self.assertRegex(text, r"1\.00 x \|")

    def test_a_full_client_is_noted_and_a_wrong_round_left_out(self):
        a = self.run_of("a", [99, 100, 101], verdict="client full")
        self.assertIn("x [", self.text(a, self.run_of("b", [198, 200, 202])))
        self.assertIn("- (1) the load generator was full", self.text(a, self.run_of("c", [50])))
        with self.assertRaises(Trouble):
            self.held(a, self.run_of("d", [200], wrong="an error"))

    def test_the_rounds_of_two_runs_are_drawn_apart(self):
        self.assertEqual(rounds.interval([2, 2, 2], [1, 1, 1]), (2, 2))
        low, high = rounds.interval([2, 2, 2], [1, 2, 4])
        self.assertEqual((low, high), (0.5, 2))


class Packed(Diff):
    def pack(self, *folders):
        path = os.path.join(self.top, "mine.tar.gz")
        return stored.pack(folders, path), path

    def test_the_latest_complete_run_of_each_experiment(self):
        old, new, cut = (self.run_of("old", [1]), self.run_of(
            "new", [99, 100, 101], command="loadtest/compare --rounds 7 --into /home/me/x"),
            self.run_of("cut", [3], table="Interrupted: 1 of 9"))
        delay = self.run_of("delay", [5], command="loadtest/compare --delay 0,10")
        for seconds, folder in enumerate((old, new, cut, delay)):
            os.utime(folder, (seconds, seconds))
        names, path = self.pack(delay, cut, new, old)
        self.assertEqual(names, ["compare", "compare-delay-0-10"])
        runs = stored.read(path)
        self.assertEqual(runs["compare"].cells[0]["requests_per_second"], "99")
        self.assertNotIn("/home/me", str(runs))
        text = self.text(path, self.run_of("theirs", [198, 200, 202]))
        self.assertRegex(text, r" 100 \| *200 \| *2\.00 x")
        self.assertIn("| compare-delay-0-10 |", re.sub(" +", " ", self.text(path, path)))

    def test_nothing_to_pack_or_to_read(self):
        with mock.patch.object(machine, "BUILD", self.top), \
                mock.patch.object(publish, "WORK", self.top), \
                contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(publish.pack_mine(), 1)
        self.assertIn("no complete run", said.getvalue())
        for path in (self.top, __file__, os.path.join(self.top, "none")):
            with self.assertRaises(Trouble):
                stored.read(path)
