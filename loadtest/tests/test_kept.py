"""A run that is interrupted goes on where it stopped."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib.measuring import machine
from lib.cells import Cell, Spot
from lib.kept import Kept

ONE, TWO = (Cell(Spot(name, "ab", 20), 1) for name in ("poll", "epoll"))


class Cells(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(os.path.join(self.folder, "raw"))
        first = Kept(self.folder, "this")
        self.assertEqual(first.begin(7, "today"), (7, "today"))
        first.keep(ONE, {ONE.spot: 100})

    def test_what_is_kept_is_recalled_once(self):
        second = Kept(self.folder, "this")
        self.assertEqual(second.begin(8, "tomorrow"), (7, "today, tomorrow"))
        self.assertEqual(second.asked, {ONE.spot: 100})
        self.assertIsNone(second.recall(spot=TWO.spot, round=1))
        self.assertIsNone(second.recall(spot=ONE.spot, round=2))
        self.assertEqual(second.recall(spot=ONE.spot, round=1), ONE)
        self.assertIsNone(second.recall(spot=ONE.spot, round=1))

    def test_every_sitting_adds_to_it(self):
        second = Kept(self.folder, "this")
        second.begin(8, "tomorrow")
        second.recall(spot=ONE.spot, round=1)
        second.keep(TWO, {})
        third = Kept(self.folder, "this")
        self.assertEqual([third.recall(round=1), third.recall(round=1)], [ONE, TWO])

    def test_a_cell_that_was_cut_off_is_measured_again(self):
        Kept(self.folder, "this").keep(TWO, {})
        path = os.path.join(self.folder, "raw", "kept.pickle")
        os.truncate(path, os.path.getsize(path) - 1)
        second = Kept(self.folder, "this")
        self.assertEqual([second.recall(round=1), second.recall(round=1)], [ONE, None])

    def test_another_run_takes_nothing_from_it(self):
        other = Kept(self.folder, "that")
        self.assertEqual(other.begin(8, "tomorrow"), (8, "tomorrow"))
        self.assertIsNone(other.recall(round=1))

    def test_a_complete_run_leaves_nothing(self):
        Kept(self.folder, "this").complete()
        self.assertIsNone(Kept(self.folder, "this").recall(round=1))

    def test_without_a_folder_nothing_is_kept(self):
        nothing = Kept(None, "this")
        self.assertEqual(nothing.begin(7, "today"), (7, "today"))
        nothing.keep(ONE, {})
        nothing.complete()


class Interrupted(unittest.TestCase):
    def test_it_goes_on_where_it_stopped(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [os.path.join(machine.TOP, "loadtest/compare"), "--quick", "--rounds", "2",
                       "--servers", "epoll,floor", "--levels", "20", "--into", folder]
            first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            cells = os.path.join(folder, "cells.tsv")
            while first.poll() is None and len(rows(cells)) < 3:
                pass
            first.send_signal(signal.SIGINT)
            self.assertEqual(first.wait(), 130)
            before = rows(cells)
            self.assertTrue(os.path.exists(os.path.join(folder, "raw", "kept.pickle")))
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  encoding="utf-8", check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            after = rows(cells)
            self.assertEqual(after[:len(before)], before)
            self.assertEqual(len(after), 1 + 2 * 2 * 2)
            self.assertFalse(os.path.exists(os.path.join(folder, "raw", "kept.pickle")))


def rows(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


if __name__ == "__main__":
    unittest.main()
