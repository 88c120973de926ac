"""Are the tables of the documents those of their runs? And figures itself, on a run of its own."""

import os
import shutil
import tempfile
import unittest
import unittest.mock

import book
import figures
import project

RUN = """\
Kept connections (wrk):

| server   | 20 clients: req/s | 500 clients: req/s | CPU µs |
| :------- | ----------------: | -----------------: | -----: |
| epoll    |        50,000 (2) |            100,000 |   10.5 |
| lighttpd |            40,000 |     25,000 (1) (2) |      - |

- (1) rounds differ
- (2) fewer were waiting

Ratios:

| server | of epoll           | rate       |
| :----- | -----------------: | ---------: |
| poll   | 1.20 x [1.10-1.30] | 9 [8-10]   |
| floor  |                  = | 10 [9-11]  |
| apache | 0.50 x [0.40-0.60] | 5 [4-6]    |

New connections (ab), 100 workers:

| server | clients | req/s |
| :----- | ------: | ----: |
| epoll  |      20 |   300 |
| epoll  |     500 | 1,234 |

Pages a second:

| server                   | 50 ms |
| :----------------------- | ----: |
| epoll                    |     7 |
| prethreading             |   600 |
| prethreading --workers 5 |    30 |

AMD EPYC, 2 cores.
"""


class Figures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="zerohttpd.")
        self.addCleanup(shutil.rmtree, folder)
        os.makedirs(os.path.join(folder, "some"))
        with open(os.path.join(folder, "some", "table.md"), "w", encoding="utf-8") as file:
            file.write(RUN)
        with open(os.path.join(folder, "some", "environment.txt"), "w", encoding="utf-8") as file:
            file.write("command: loadtest/compare --rounds 7\n")
        for name, value in (("RESULTS", folder), ("PENDING", ["later"])):
            patch = unittest.mock.patch.object(figures, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        figures.table.cache_clear()
        self.addCleanup(figures.table.cache_clear)


class Tables(Figures):
    def filled(self, marker, *lines):
        text = "Before.\n\n<!-- table: %s -->\n\n%s\n\n<!-- /table -->\n\nAfter.\n" % (
            marker, "\n".join(lines))
        new = figures.fill(text)
        self.assertEqual(figures.fill(new), new)
        self.assertTrue(new.startswith("Before.\n\n<!-- table: %s -->\n\n| " % marker))
        self.assertTrue(new.endswith("\n<!-- /table -->\n\nAfter.\n"))
        stale = list(figures.stale("a.md", text))
        self.assertEqual([fault.line for fault in stale], [3] if new != text else [])
        return [line for line in new.split("\n")[4:-5] if line]

    def test_rows_and_columns_are_the_documents(self):
        self.assertEqual(self.filled("some | Kept", "| who | CPU µs | 500 clients |",
                                     "|---|--:|--:|", "| [07 epoll](../07_epoll/) | 3 | |"), [
            "| who                      | CPU µs | 500 clients |",
            "| :----------------------- | -----: | ----------: |",
            "| [07 epoll](../07_epoll/) |   10.5 |     100,000 |"])

    def test_a_column_may_have_another_heading_another_table_or_be_prose(self):
        self.assertEqual(self.filled(
            "some | Kept\nkept = 500 clients\nnew = some | New | req/s\nwhy = as written",
            "| a | kept | why | CPU µs |", "|---|---|---|---|",
            "| `epoll` | 1 | because | 2 |")[-1], "| `epoll` | 100,000 | because | 10.5   |")

    def test_a_row_with_an_option_may_stand_for_the_one_without(self):
        self.assertEqual(self.filled("some | Pages\nfar = 50 ms, with 5", "| a | far |", "|---|--:|",
                                     "| prethreading | |", "| epoll | |")[2:],
                         ["| prethreading |  30 |", "| epoll        |   7 |"])

    def test_a_table_with_two_names_to_a_row(self):
        self.assertEqual(self.filled("some | New", "| a | req/s |", "|---|---|", "| epoll 500 |")[-1],
                         "| epoll 500 | 1,234 |")

    def test_a_share_of_another_row(self):
        self.assertEqual(self.filled("some | Kept\nof lighttpd = 500 clients, of lighttpd",
                                     "| a | of lighttpd |", "|---|--:|", "| epoll | 9 |")[-1],
                         "| epoll |      4.00 x |")

    def test_notes_become_marks_that_are_explained(self):
        self.assertEqual(self.filled("some | Kept", "| a | 20 | 500 |", "|---|---|---|", "| epoll |",
                                     "| lighttpd | 1 * |")[2:], [
            "| epoll    | 50,000 § | 100,000    |", "| lighttpd | 40,000   | 25,000 * § |",
            r"§ fewer were waiting; \* rounds differ."])

    def test_a_wide_table_is_not_padded(self):
        prose = "x" * 160
        self.assertEqual(self.filled("some | Kept\nwhy = as written", "| a | 20 | why |",
                                     "|---|--:|---|", "| lighttpd | 1 | %s |" % prose),
                         ["| a | 20 | why |", "| --- | --: | --- |",
                          "| lighttpd | 40,000 | %s |" % prose])

    def test_what_is_in_no_run_is_a_fault_of_the_marker(self):
        for marker, heading, row in (("none | Kept", "20", "epoll"), ("some | Lost", "20", "epoll"),
                                     ("some | Kept", "30", "epoll"), ("some | Kept", "20", "poll"),
                                     ("some | Kept", "", "epoll")):
            text = "\n<!-- table: %s -->\n| a | %s |\n|---|---|\n| %s |\n<!-- /table -->\n" % (
                marker, heading, row)
            fault, = figures.stale("a.md", text)
            self.assertEqual(fault[:2], ("a.md", 2))

    def test_a_run_that_is_still_to_be_made_changes_nothing(self):
        self.assertEqual(self.filled("later | Any\nnow = some | Kept | 20", "| a | then | now |",
                                     "|---|---|---|", "| lighttpd | 7 † | |")[-1],
                         "| lighttpd | 7 †  | 40,000 |")


class Text(Figures):
    """Of a document, with rows of its own; the block in it is no text."""

    def faults(self, text, *rows):
        return [fault.what for fault in figures.misquoted(
            "a.md", text + "\n\n```text\n3,000 pages a second\n```\n", [("a.md", *row) for row in rows])]

    def assert_right(self, text, *rows):
        self.assertEqual(self.faults(text, *rows), [])

    def assert_wrong(self, what, text, *rows):
        fault, = self.faults(text, *rows)
        self.assertIn(what, fault)

    CELL = "{some | Kept | epoll | 20}"  # 50,000

    def test_a_number_is_as_exact_as_it_is_written(self):
        new = "{some | New | epoll 500 | req/s}"  # 1,234
        for written in ("1,234", "1,230", "1,200"):
            self.assert_right("serves %s pages a\nsecond" % written,
                              ("serves {%s} pages" % written, new))
        for written in ("1,235", "1,240", "1,300", "1,000", "1,234.1"):
            self.assert_wrong("says %s, and it is 1234" % written, "serves %s" % written,
                              ("serves {%s}" % written, new))
        self.assert_right("some 1,130 pages", ("some {1,130} pages", new))

    def test_cells_may_be_divided_and_several_stand_in_one_row(self):
        self.assert_right("0.5 to 2 x as many", ("{0.5} to {2} x", self.CELL + " / 1e5; 1e5 / " + self.CELL))
        self.assert_wrong("2 figures, and its row 1", "0.5 to 2 x", ("{0.5} to {2} x", self.CELL))

    def test_words_are_figures_too(self):
        self.assert_right("down to half of it", ("to {half} of", self.CELL + " / 95000"))
        self.assert_wrong("says half", "down to half", ("to {half}", self.CELL + " / 125000"))

    def test_faster_needs_intervals_that_do_not_overlap(self):
        for source, wrong in (
                ("{some | Ratios | poll | of epoll} > 1", None), ("{some | Ratios | floor | of epoll} > 1", "interval"),
                ("{some | Ratios | poll | rate} > {some | Ratios | apache | rate}", None),
                ("{some | Ratios | floor | rate} > {some | Ratios | poll | rate}", "all ends"),
                ("{some | Kept | epoll | 500} > {some | Kept | lighttpd | 500}", "interval")):
            words = "it is faster than that"
            if wrong:
                self.assert_wrong(wrong, words, (words, source))
            else:
                self.assert_right(words, (words, source))
        self.assert_right("it is ahead", ("it is ahead", "{some | Kept | epoll | 500} > 1"))

    def test_without_figures_it_is_true(self):
        self.assert_right("is ahead", ("is ahead", self.CELL + " > 1"))
        self.assert_wrong("is not so", "is ahead", ("is ahead", self.CELL + " < 1"))

    def test_words_that_are_not_there(self):
        self.assert_wrong("is not there", "Other words.", ("serves {7} pages", self.CELL))

    def test_a_cell_that_is_not_there(self):
        self.assert_wrong("nothing begins with 'poll'", "serves 7 pages", (
            "serves {7}", "{some | Kept | poll | 20}"))
        self.assert_wrong("no number", "serves 7 pages", ("serves {7}", "{some | Kept | lighttpd | CPU}"))

    def test_what_looks_measured_has_a_row(self):
        for text in ("7 pages a second", "9 µs of", "1.2 x as many", "17 % more", "9.5 ms", "27 KiB",
                     "3 times as many", "7 pages/s", "1.5 to 3 x."):
            self.assert_wrong("looks measured", "It was `so` " + text)
        self.assert_right("64 KiB, 50 ms, 3 x 10, in 2024, HTTP/1.1, 5 s and [a](b.md#x-9-%)")

    def test_a_row_says_why_another_is_not(self):
        self.assert_right("33 pages a second at most", ("33 pages a second", "constant: 1 / 30 ms"))

    def test_only_figures_between_braces_are_accounted_for(self):
        self.assert_wrong("9 µs", "50,000 pages a second, 9 µs each",
                          ("{50,000} pages a second, 9 µs each", self.CELL))

    def test_a_run_that_is_still_to_be_made(self):
        self.assert_right("7 pages a second", ("{7} pages a second", "{later | Any | a | b}"))


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ours = project.Project(book.TOP)
        cls.texts = {path: ours.text(path) for path in ours.documents()}

    def test_tables_are_those_of_their_runs(self):
        self.assert_none([fault for path, text in self.texts.items()
                          for fault in figures.stale(path, text)])

    def assert_none(self, faults):
        self.assertFalse(faults, "\n" + "\n".join("%s:%d: %s" % fault for fault in sorted(faults)))

    def test_numbers_in_the_text_are_those_of_their_runs(self):
        rows = figures.quoted()
        pages = {path for path in self.texts if figures.PAGES.fullmatch(path)}
        self.assertLessEqual({row[0] for row in rows}, pages)
        self.assert_none([fault for path in pages
                          for fault in figures.misquoted(path, self.texts[path], rows)])

    def test_runs_that_are_still_to_be_made(self):
        there = set(figures.PENDING).intersection(os.listdir(figures.RESULTS))
        self.assertFalse(there, "no longer PENDING in figures.py")
        if figures.PENDING:
            self.skipTest("no run yet: %s" % ", ".join(figures.PENDING))
