"""The book as a site: what `make book` has made, read as files and seen in Chromium. Without pandoc,
WeasyPrint, Chromium or pdftotext, what needs it is skipped."""

import collections
import html
import os
import re
import shutil
import subprocess
import sys
import unittest
import urllib.parse
from pathlib import Path

sys.dont_write_bytecode = True

import case
from browser import open_page
from lib.measuring import machine

BOOK = os.path.join(machine.BUILD, "book")
MADE = unittest.skipUnless(shutil.which("pandoc") and shutil.which("weasyprint"), "pandoc or WeasyPrint is not installed")
BUILD_SECONDS = 2700  # of a core that others want first (run)
PHONE, DESKTOP = (360, 740), (1280, 800)
SEEN = ("index", "01_iterative/index", "common/book/glossary", "01_iterative/main.c",
        "common/the-box-opened-once", "01_iterative/exercises/queue", "loadtest/index",
        "loadtest/results/sweep/table")


def setUpModule():
    case.set_up()
    if not shutil.which("pandoc") or not shutil.which("weasyprint"):
        return
    copied = os.path.join(case.TOP, "public", "book")
    if not os.path.exists(copied):
        unittest.addModuleCleanup(shutil.rmtree, copied, ignore_errors=True)
    subprocess.run(["make", "-s", "-j2", "book", "OUT=" + os.environ.get("PLAIN", "build/plain")], cwd=case.TOP,
                   timeout=BUILD_SECONDS, check=True, stdout=subprocess.DEVNULL,
                   env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "DEPS": "no"})
    shutil.copytree(BOOK, os.path.join(case.ROOT, "public", "book"), dirs_exist_ok=True)


class Html:
    """What a page has of links, anchors and pictures. It is pandoc's: a < is always a tag's."""

    def __init__(self, path):
        text = Path(path).read_text("utf-8")
        self.ids = collections.Counter(re.findall(r'\bid="([^"]*)"', text))
        self.links = [html.unescape(each) for each in re.findall(r'<a\s[^>]*?href="([^"]*)"', text)]
        self.pictures = re.findall(r"<img\s[^>]*>", text)


@MADE
class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = {path: Html(path) for path in map(str, Path(BOOK).rglob("*.html"))}

    def faults(self, path, page):
        for link in page.links:
            where = urllib.parse.urlsplit(link)
            to = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(where.path)))
            if where.scheme:
                continue
            if where.path and not os.path.isfile(to):
                yield "links to %s" % link
            elif where.fragment and where.fragment not in self.pages[to if where.path else path].ids:
                yield "links to %s: no such anchor" % link
        yield from ("has no alt: " + each for each in page.pictures if not re.search(r'\balt="[^"]', each))
        yield from ("%s is there twice" % name for name, times in page.ids.items() if times > 1)

    def test_links_lead_somewhere_and_pictures_have_a_text_in_their_place(self):
        self.assertGreater(len(self.pages), 20)
        self.assertEqual([], sorted("%s: %s" % (os.path.relpath(path, BOOK), fault)
                                    for path, page in self.pages.items() for fault in self.faults(path, page)))

    def test_links_in_the_pdf_lead_somewhere(self):
        page = Html(os.path.join(machine.BUILD, "rough", "book.html"))
        self.assertEqual([link for link in page.links if link.startswith("#") and link[1:] not in page.ids], [])

    def test_the_pdf_has_each_page_once(self):
        text = Path(machine.BUILD, "rough", "book.html").read_text("utf-8")
        titles = re.findall(r'<h1 id="[^"]*"[^>]*>(.*?)</h1>', text, re.DOTALL)
        self.assertGreater(len(titles), 20)
        self.assertEqual(sorted(set(titles)), sorted(titles))

    @unittest.skipUnless(shutil.which("pdftotext"), "pdftotext is not installed")
    def test_nothing_leaves_the_paper(self):
        """An A4 page has a margin of 2 cm, and a slide one of 2 cm to its sides. 72 points are an inch."""
        for path in Path(BOOK).rglob("*.pdf"):
            words = subprocess.check_output(["pdftotext", "-bbox", path, "-"], encoding="utf-8")
            number = width = height = 0
            for tag, *places in re.findall(
                    r'<(page|word)(?: (?:width|xMin)="(.*?)" (?:height|yMin)="(.*?)")(?: xMax="(.*?)" yMax="(.*?)")?', words):
                if tag == "page":
                    number, width, height = number + 1, *map(float, places[:2])
                    continue
                left, top, right, bottom = map(float, places)
                self.assertTrue(54 < left and right < width - 54 and 0 < top and bottom < height,
                                "%s, page %d: %s" % (path, number, places))
            self.assertTrue(number, path)


@MADE
class Seen(unittest.TestCase):
    """By Chromium, from a server."""

    @classmethod
    def setUpClass(cls):
        cls.server = case.Server("epoll")
        cls.addClassCleanup(cls.server.end)

    def open(self, path):
        return open_page(self, self.server.url + path)

    def test_the_book_is_where_the_home_page_says(self):
        self.assertIn("at /book/.", self.open("/").value("document.querySelector('main').innerText"))
        self.assertIn("ZeroHTTPd", self.open("/book/").value("document.title"))

    def test_pages_fetch_from_this_server_only_and_fit_a_phone(self):
        for name in SEEN:
            page = self.open("/book/%s.html" % name)
            for width, height in (PHONE, DESKTOP):
                with self.subTest(name, width=width):
                    page.resize(width, height)
                    page.until("innerWidth === %d" % width)
                    self.assertLessEqual(page.value("document.documentElement.scrollWidth"), width)
            self.assertEqual(page.errors(), [])
            self.assertEqual({urllib.parse.urlsplit(event["request"]["url"]).netloc
                              for event in page.events("Network.requestWillBeSent")},
                             {self.server.url.removeprefix("http://")})

    def test_search_finds_a_section(self):
        page = self.open("/book/01_iterative/index.html")
        page.type("#search", "dropped SYN wire")
        page.until("document.querySelector('#found li a')")
        self.assertEqual(page.value("document.querySelector('#found a').textContent"),
                         "Chapter 1: iterative: A dropped SYN, on the wire")
        page.value("document.querySelector('#found a').click()")
        page.until("location.hash === '#a-dropped-syn-on-the-wire'")
        self.assertEqual(page.errors(), [])
