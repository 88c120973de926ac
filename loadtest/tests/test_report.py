"""The report: right HTML, everything escaped, the same figures as the Markdown."""

import re
import shutil
import unittest
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import programs
import browser

from lib.reporting import chart, gnuplot, table
from lib.reporting.report import Report

EVIL = "<b>\"x\"</b> & 'y' <script>alert(1)</script>"
HEADER = ["server", "20 clients: req/s", "verdict"]


def sample():
    """A report with one of everything."""
    notes = table.Notes()
    refused = notes.mark("12 of 9,211 requests failed: 12 reset")
    rows = [["epoll", "14,652", "server-bound"], ["poll", "14,553 " + refused, "mixed"],
            ["forking", "2,932 %s %s" % (refused, notes.mark("Little's law: 17 % off")), EVIL]]
    report = Report("compare " + EVIL, "How many " + EVIL)
    report.add_text("In every cell `INCR` " + EVIL)
    report.add_table(HEADER, rows, "Requests a second", notes)
    for name in ("bars", "again"):
        report.add_chart(chart.bars(name, EVIL, chart.Axis("requests a second"), {
            "": {"epoll": 14652, "poll": 14553, "forking": 2932}}), "Bars " + EVIL, HEADER, rows)
    report.add_table(["server", *("%d clients" % n for n in range(14))],
                     [["epoll", *("%d" % 12345 for n in range(14))]], "Wider than a screen")
    report.add_raw("cells.tsv", ["server", "clients", "notes"], [
        ["epoll", 20, None], ["poll", 20, "a sentence that is rather too long for one line"]] * 40)
    report.add_environment([("kernel", EVIL), ("cores", 2)])
    return report


class Page(unittest.TestCase):
    def setUp(self):
        self.page = sample().html()
        self.root = ElementTree.fromstring(self.page)  # everything that is opened is closed

    def values(self, *names):
        return [value for each in self.root.iter() for name, value in each.items() if name.split("}")[-1] in names]

    def test_no_id_twice_and_no_link_to_nowhere(self):
        ids = self.values("id")
        self.assertEqual(len(ids), len(set(ids)))
        inside = [link for link in self.values("href", "src") if not link.startswith("data:")]
        self.assertLessEqual(set(inside), {"#" + each for each in ids})

    def test_it_asks_for_nothing(self):
        self.assertEqual(re.findall(r"url\(|@import|<(?:img|script|iframe)", self.page), [])

    def test_what_was_given_is_text(self):
        self.assertFalse({"script", "b"} & {each.tag for each in self.root.iter()})
        self.assertGreaterEqual("".join(self.root.itertext()).count("<script>alert(1)</script>"), 5)
        self.assertIn("<code>INCR</code>", self.page)

    def test_without_gnuplot_one_line_says_so_and_the_figures_are_shown(self):
        with mock.patch.object(gnuplot, "available", return_value=False):
            page = sample().html()
        self.assertEqual(page.count("No chart: gnuplot is not installed."), 2)
        self.assertEqual(page.count('<details open=""><summary>The figures of this chart'), 2)


class Text(unittest.TestCase):
    def test_the_same_figures_and_the_notes_that_they_need(self):
        text = sample().markdown()
        self.assertIn(" 14,553 (1) |", text)
        self.assertIn("- (1) 12 of 9,211 requests failed: 12 reset\n- (2) Little's law", text)
        self.assertNotIn("<svg", text)


class Browser(unittest.TestCase):
    """Chromium shows it: on a desk, on a phone, without a word of complaint."""

    def test_chromium_shows_the_report(self):
        path = Path(programs.folder(self), "report.html")
        path.write_text(sample().html(), "utf-8")
        page = browser.open_page(self, path.as_uri())
        self.assertEqual(page.errors(), [])
        self.assertEqual([event["request"]["url"] for event
                          in page.events("Network.requestWillBeSent")
                          if not event["request"]["url"].startswith("data:")], [path.as_uri()])
        for name, is_open in (("report", "false"), ("report-open", "true")):
            page.value("document.querySelectorAll('details').forEach(each => each.open = %s)" % is_open)
            browser.look_at(self, page, name)
        if shutil.which("gnuplot"):
            self.assertGreater(page.value(
                "document.querySelector('.chart svg').getBoundingClientRect().height"), 100)
