"""Are the tables of the documents those of their runs? And figures itself, on a run of its own."""

import os
import shutil
import tempfile
import unittest
import unittest.mock
from pathlib import Path

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

AMD EPYC, 2 cores.
"""


CELL, NEW = "{some | Kept | epoll | 20}", "{some | New | epoll 500 | req/s}"  # 50,000 and 1,234
QUOTED = (  # text, its rows of quoted.tsv, and a word of the fault, if it has one
    # as exact as it is written
    *(("serves %s pages a\nsecond" % number, [("serves {%s} pages" % number, NEW)], None)
      for number in ("1,234", "1,230", "1,200")),
    *(("serves %s" % number, [("serves {%s}" % number, NEW)], "says %s, and it is 1234" % number)
      for number in ("1,235", "1,240", "1,300", "1,000", "1,234.1")),
    ("some 1,130 pages", [("some {1,130} pages", NEW)], None),
    # cells may be divided, and several stand in one row
    ("0.5 to 2 x as many", [("{0.5} to {2} x", CELL + " / 1e5; 1e5 / " + CELL)], None),
    ("0.5 to 2 x", [("{0.5} to {2} x", CELL)], "2 figures, and its row 1"),
    # words are figures too
    ("down to half of it", [("to {half} of", CELL + " / 95000")], None),
    ("down to half", [("to {half}", CELL + " / 125000")], "says half"),
    # faster needs intervals that do not overlap
    *(("it is faster than that", [("it is faster than that", source)], what) for source, what in (
        ("{some | Ratios | poll | of epoll} > 1", None), ("{some | Ratios | floor | of epoll} > 1", "interval"),
        ("{some | Ratios | poll | rate} > {some | Ratios | apache | rate}", None),
        ("{some | Ratios | floor | rate} > {some | Ratios | poll | rate}", "all ends"),
        ("{some | Kept | epoll | 500} > {some | Kept | lighttpd | 500}", "interval"))),
    ("it is ahead", [("it is ahead", "{some | Kept | epoll | 500} > 1")], None),
    # without figures it is true
    ("is ahead", [("is ahead", CELL + " > 1")], None), ("is ahead", [("is ahead", CELL + " < 1")], "is not so"),
    # words and cells that are not there
    ("Other words.", [("serves {7} pages", CELL)], "is not there"),
    ("serves 7 pages", [("serves {7}", "{some | Kept | poll | 20}")], "nothing begins with 'poll'"),
    ("serves 7 pages", [("serves {7}", "{some | Kept | lighttpd | CPU}")], "no number"),
    # what looks measured has a row, and only figures between braces are accounted for
    *(("It was `so` " + text, [], "looks measured") for text in (
        "7 pages a second", "9 µs of", "1.2 x as many", "17 % more", "9.5 ms", "27 KiB", "3 times as many",
        "7 pages/s", "1.5 to 3 x.")),
    ("64 KiB, 50 ms, 3 x 10, in 2024, HTTP/1.1, 5 s and [a](b.md#x-9-%)", [], None),
    ("33 pages a second at most", [("33 pages a second", "constant: 1 / 30 ms")], None),
    ("50,000 pages a second, 9 µs each", [("{50,000} pages a second, 9 µs each", CELL)], "9 µs"),
)


class Cases(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="zerohttpd.")
        self.addCleanup(shutil.rmtree, folder)
        os.makedirs(os.path.join(folder, "some"))
        Path(os.path.join(folder, "some", "table.md")).write_text(RUN, "utf-8")
        Path(os.path.join(folder, "some", "environment.txt")).write_text("command: loadtest/compare --rounds 7\n", "utf-8")
        patch = unittest.mock.patch.object(figures, "RESULTS", folder)
        patch.start()
        self.addCleanup(patch.stop)
        figures.table.cache_clear()
        self.addCleanup(figures.table.cache_clear)

    def test_what_is_not_as_in_its_run_is_a_fault_of_the_marker(self):
        for marker, heading, row in (("some | Kept", "20", "epoll | 1"),
                                     ("none | Kept", "20", "epoll"), ("some | Lost", "20", "epoll"),
                                     ("some | Kept", "30", "epoll"), ("some | Kept", "20", "poll"),
                                     ("some | Kept", "", "epoll")):
            text = "\n<!-- table: %s -->\n| a | %s |\n|---|---|\n| %s |\n<!-- /table -->\n" % (
                marker, heading, row)
            fault, = figures.stale("a.md", text)
            self.assertEqual(fault[:2], ("a.md", 2))

    def test_numbers_in_a_text(self):
        for text, rows, what in QUOTED:
            block = "\n\n```text\n3,000 pages a second\n```\n"  # is no text
            faults = [fault.what for fault in
                      figures.misquoted("a.md", text + block, [("a.md", *row) for row in rows])]
            with self.subTest(text, rows=rows):
                self.assertEqual(len(faults), 1 if what else 0, faults)
                self.assertIn(what or "", "".join(faults))


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
