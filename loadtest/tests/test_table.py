"""The table is aligned, and Markdown. The progress line guesses well."""

import io
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib.reporting import table
from lib.reporting.progress import Progress


class Markdown(unittest.TestCase):
    def test_names_to_the_left_figures_to_the_right(self):
        rows = [["poll", "9,876"], ["epoll", "19,876"]]
        self.assertEqual(table.markdown(["server", "req/s"], rows),
                         "| server |  req/s |\n"
                         "| :----- | -----: |\n"
                         "| poll   |  9,876 |\n"
                         "| epoll  | 19,876 |")

    def test_all_lines_have_one_length_however_narrow(self):
        lines = table.markdown(["a", "b", "c"], [["", "1", "-"], ["x", "", "22"]]).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)

    def test_a_bar_does_not_end_a_cell(self):
        self.assertIn(r"a\|b", table.markdown(["a|b"], []))


class Footnotes(unittest.TestCase):
    def test_the_same_words_have_one_number(self):
        notes = table.Notes()
        self.assertEqual([notes.mark(text) for text in ("x", "y", "x")], ["(1)", "(2)", "(1)"])
        self.assertEqual(notes.numbered(), [(1, "x"), (2, "y")])


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ProgressLine(unittest.TestCase):
    def setUp(self):
        self.now = 0.0

    def progress(self, out):
        return Progress(cells=4, guess_seconds=3, out=out, clock=lambda: self.now)

    def test_a_guess_first_then_what_was_seen(self):
        progress = self.progress(io.StringIO())
        self.assertEqual(progress.seconds_left(), 12)
        self.now = 2.0
        progress.cell_done("poll: 9 requests/s")
        self.assertEqual(progress.seconds_left(), 6)

    def test_a_cell_that_waits_for_a_far_redis_takes_longer(self):
        progress = self.progress(io.StringIO())
        waits = [0, 7, 50, 0]
        progress.begin("near", waits)
        self.assertEqual(progress.seconds_left(), 12 + 57)
        for self.now, left in ((2.0, 6 + 57), (11.0, 4 + 50), (63.0, 2)):
            progress.begin("any", waits)
            progress.cell_done("any")
            waits = waits[1:]
            self.assertEqual(progress.seconds_left(), left)

    def test_in_a_terminal_one_line_rewritten(self):
        out = Terminal()
        progress = self.progress(out)
        progress.begin("poll, 20 clients")
        progress.cell_done("poll: 9 requests/s")
        progress.clear()
        self.assertEqual(out.getvalue(),
                         "\r\033[Kpoll, 20 clients: cell 1 of 4, about 12 s left\r\033[K")

    def test_elsewhere_a_line_now_and_then(self):
        out = io.StringIO()
        progress = self.progress(out)
        for seconds in (1.0, 21.0, 22.0):
            self.now = seconds
            progress.begin("poll, 20 clients")
            progress.cell_done("poll: %g requests/s" % seconds)
        self.assertEqual(out.getvalue(), "poll: 21 requests/s (cell 2 of 4, about 21 s left)\n")


if __name__ == "__main__":
    unittest.main()
