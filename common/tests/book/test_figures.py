"""Are the tables of the documents those of their runs? And figures itself, on a run of its own."""

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

| server | 20 clients | of epoll           |
| :----- | ---------: | -----------------: |
| epoll  | 50,000 (1) |                  1 |
| poll   |      1,234 | 1.20 x [1.10-1.30] |
| floor  |          - |                  = |

- (1) rounds differ
"""
POLL, FASTER = "{some | Kept | poll | 20}", "{some | Kept | %s | of epoll} > %s"
QUOTED = (  # text, its row of quoted.tsv if it has one, and a word of the fault if it has one
    ("serves 1,230 pages a\nsecond", ("serves {1,230} pages a second", POLL), None),  # as exact as it is written
    ("serves 1,240", ("serves {1,240}", POLL), "says 1,240, and it is 1234"),
    ("some 1,130 pages", ("some {1,130} pages", POLL), None),
    ("down to half of it", ("to {half} of", POLL + " / 2500"), None),
    ("half", ("{half}", POLL + " / 1e5"), "says half"),
    ("0.5 to 2 x as many", ("{0.5} to {2} x", POLL + " / 2468; 2468 / " + POLL), None),
    ("0.5 to 2 x", ("{0.5} to {2} x", POLL), "2 figures, and its row 1"),
    *(("it is faster", ("it is faster", FASTER % cell), what) for cell, what in (
        (("poll", "1"), None), (("poll", "1.2"), "all ends"), (("floor", "1"), "interval"))),
    ("is ahead", ("is ahead", POLL + " < 1"), "is not so"),
    ("Other words.", ("serves {7} pages", POLL), "is not there"),
    ("serves 7", ("serves {7}", "{some | Kept | none | 20}"), "nothing begins with 'none'"),
    ("serves 7", ("serves {7}", "{some | Kept | floor | 20}"), "no number"),
    *(("It was `so` " + text, None, "looks measured") for text in (
        "7 pages a second", "9 µs of", "1.2 x as many", "17 % more", "27 KiB", "1.5 to 3 x.")),
    ("64 KiB, 50 ms, 3 x 10, in 2024, HTTP/1.1, 5 s and [a](b.md#x-9-%)", None, None),
    ("1,234 pages a second, 9 µs each", ("{1,234} pages a second, 9 µs each", POLL), "9 µs"))


class Cases(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="zerohttpd.")
        self.addCleanup(shutil.rmtree, folder)
        for name, text in (("table.md", RUN), ("environment.txt", "command: loadtest/compare --rounds 7\n")):
            path = Path(folder, "some", name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        patch = unittest.mock.patch.object(figures, "RESULTS", folder)
        patch.start()
        self.addCleanup(patch.stop)
        figures.table.cache_clear()
        self.addCleanup(figures.table.cache_clear)

    def test_what_is_not_as_in_its_run_is_a_fault_of_the_marker(self):
        for marker, row in (("some | Kept", "epoll | 1"), ("none | Kept", "epoll"), ("some | Lost", "epoll")):
            text = "\n<!-- table: %s -->\n| a | 20 |\n|---|---|\n| %s |\n<!-- /table -->\n" % (marker, row)
            fault, = figures.stale("a.md", text)
            self.assertEqual(fault[:2], ("a.md", 2))

    def test_numbers_in_a_text(self):
        for text, row, what in QUOTED:
            block = "\n\n```text\n3,000 pages a second\n```\n"  # is no text
            faults = [fault.what for fault in figures.misquoted("a.md", text + block, [("a.md", *row)] if row else [])]
            with self.subTest(text, row=row):
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
