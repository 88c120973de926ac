"""The book as a site: what `make book` has made, read as files and seen in Chromium. And the pages of
the servers themselves, as somebody sees them who cannot see well.

Without pandoc, WeasyPrint, Chromium, epubcheck or axe-core, what needs it is skipped.
"""

import collections
import html.parser
import os
import re
import shutil
import subprocess
import sys
import unittest
import urllib.parse
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients"))

import case
import chromium
from browser import SCREENSHOTS, the_browser
from lib.measuring import machine
from lib.subjects import redis

BOOK = os.path.join(machine.BUILD, "book")
AXE = os.path.join(machine.BUILD, "node_modules", "axe-core", "axe.min.js")
TOOLS = ("pandoc", "weasyprint")
BUILD_SECONDS = 900
PHONE, DESKTOP = (360, 740), (1280, 800)
# The corner of a table may be empty.
VIOLATIONS = """axe.run(document, {resultTypes: ['violations'],
    rules: {'empty-table-header': {enabled: false}}}).then(found => found.violations.map(
    each => each.id + ': ' + each.nodes.slice(0, 3).map(node => node.target.join(' ')).join(', ')))"""
OWN = ("/", "/guestbook", "/guestbook?page=x", "/wall.html", "/explore.html", "/status", "/there-is-no-such-page")
SEEN = ("index", "01_iterative/index", "common/ideas", "common/glossary", "01_iterative/main.c",
        "common/the-box-opened-once", "01_iterative/exercises/queue", "loadtest/index",
        "loadtest/results/sweep/table", "01_iterative/slides", "common/classroom/slides")


def setUpModule():
    case.set_up()
    if not all(map(shutil.which, TOOLS)):
        return
    copied = os.path.join(case.TOP, "public", "book")
    if not os.path.exists(copied):
        unittest.addModuleCleanup(shutil.rmtree, copied, ignore_errors=True)
    Files.printed = subprocess.check_output(
        ["make", "-j2", "book", "OUT=" + os.environ.get("PLAIN", "build/plain")], cwd=case.TOP, timeout=BUILD_SECONDS,
        encoding="utf-8", env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "DEPS": "no"}).splitlines()
    shutil.copytree(BOOK, case.public("book"), dirs_exist_ok=True)


class Html(html.parser.HTMLParser):
    """What a page has of links, anchors, pictures and headings."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.fetched = collections.Counter(), [], []
        self.pictures, self.headings, self.inline = [], [], []
        self.feed(Path(path).read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if "id" in attributes:
            self.ids[attributes["id"]] += 1
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag in ("img", "script", "link", "iframe") and attributes.get("rel") != "canonical":
            self.fetched.append(attributes.get("src") or attributes.get("href"))
        if tag == "img":
            self.pictures.append(attributes)
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.headings.append(int(tag[1]))
        if tag == "style" or "style" in attributes or any(name.startswith("on") for name in attributes) \
                or tag == "script" and "src" not in attributes:
            self.inline.append((tag, attrs))


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not all(map(shutil.which, TOOLS)):
            raise unittest.SkipTest("pandoc or WeasyPrint is not installed")
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(BOOK) for name in names
                 if name.endswith(".html")]
        cls.pages = {path: Html(path) for path in paths}

    def each(self, faults):
        found = sorted("%s: %s" % (os.path.relpath(path, BOOK), fault)
                       for path, page in self.pages.items() for fault in faults(path, page))
        self.assertEqual(found, [], "\n" + "\n".join(map(str, found)))

    def test_making_it_says_where_it_is(self):
        self.assertRegex(self.printed[-1], r"^The book is in \S*/book: open ")
        self.assertLess(len(self.printed), 150)

    def test_there_is_a_page_for_each_chapter(self):
        for chapter in ("01_iterative", "04_threading", "07_epoll"):
            self.assertIn(os.path.join(BOOK, chapter, "index.html"), self.pages)

    def test_every_link_and_anchor_leads_somewhere(self):
        def faults(path, page):
            for link in page.links + page.fetched:
                where = urllib.parse.urlsplit(link)
                to = os.path.normpath(os.path.join(os.path.dirname(path),
                                                   urllib.parse.unquote(where.path)))
                if where.scheme:
                    continue
                if where.path and not os.path.isfile(to):
                    yield "links to %s" % link
                elif where.fragment and where.fragment not in self.pages[to if where.path else path].ids:
                    yield "links to %s: no such anchor" % link
        self.each(faults)

    def test_nothing_is_fetched_from_another_host(self):
        self.each(lambda path, page: [each for each in page.fetched
                                      if urllib.parse.urlsplit(each).netloc])

    def test_the_servers_policy_allows_all_of_it(self):
        self.each(lambda path, page: page.inline)

    def test_pictures_have_a_text_in_their_place(self):
        self.each(lambda path, page: [each["src"] for each in page.pictures if not each.get("alt")])

    def test_a_figure_and_the_mark_of_its_note_stay_together(self):
        cells = re.findall(r"<td>([^<]*[*\u2020])</td>", Path(os.path.join(BOOK, "loadtest", "index.html")).read_text("utf-8"))
        self.assertTrue(cells)
        self.assertEqual([cell for cell in cells if re.search(r"[ \n][*\u2020]", cell)], [])

    def test_headings_are_in_order(self):
        def faults(_, page):
            if not page.headings or page.headings[0] != 1:
                yield "does not begin with an h1"
            for before, heading in zip(page.headings, page.headings[1:]):
                if heading > before + 1:
                    yield "h%d after h%d" % (heading, before)
        self.each(faults)

    def test_no_anchor_is_there_twice(self):
        self.each(lambda path, page: [name for name, times in page.ids.items() if times > 1])

    def test_links_in_the_pdf_lead_somewhere(self):
        page = Html(os.path.join(machine.BUILD, "rough", "book.html"))
        self.assertEqual([link for link in page.links
                          if link.startswith("#") and link[1:] not in page.ids], [])
        self.assertEqual([name for name, times in page.ids.items() if times > 1], [])

    @unittest.skipUnless(shutil.which("pdftotext"), "pdftotext is not installed")
    def test_nothing_leaves_the_paper(self):
        """An A4 page has a margin of 2 cm, and a slide one of 2 cm to its sides. 72 points are an inch."""
        for path in ["zerohttpd.pdf", *(os.path.relpath(page, BOOK)[:-len("html")] + "pdf" for page in self.pages
                                        if page.endswith("/slides.html"))]:
            words = subprocess.check_output(["pdftotext", "-bbox", os.path.join(BOOK, path), "-"], encoding="utf-8")
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

    @unittest.skipUnless(shutil.which("pdftotext"), "pdftotext is not installed")
    def test_the_first_page_has_the_edition_and_its_date(self):
        first = subprocess.check_output(["pdftotext", "-l", "1", os.path.join(BOOK, "zerohttpd.pdf"), "-"],
                                        encoding="utf-8")
        self.assertRegex(first, r"Version \d+\.\d+\.\d+\n\d{4}-\d\d-\d\d\nThe ZeroHTTPd authors")

    def test_epubcheck_finds_nothing(self):
        if not shutil.which("epubcheck"):
            self.skipTest("epubcheck is not installed")
        done = subprocess.run(["epubcheck", os.path.join(BOOK, "zerohttpd.epub")], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("WARNING", done.stdout)


class Seen(unittest.TestCase):
    """By Chromium, from a server."""

    @classmethod
    def setUpClass(cls):
        if not chromium.find():
            raise unittest.SkipTest("Chromium is not installed")
        cls.server = case.Server("epoll")
        cls.addClassCleanup(cls.server.end)
        cls.server.redis.seed()
        os.makedirs(SCREENSHOTS, exist_ok=True)

    def setUp(self):
        self.page = chromium.Page(the_browser())
        self.addCleanup(self.page.close)

    def open(self, path):
        self.page.open(self.server.url + path)

    def open_book(self, name):
        if not all(map(shutil.which, TOOLS)):
            self.skipTest("pandoc or WeasyPrint is not installed")
        self.open("/book/%s.html" % name)

    def shoot(self, name):
        self.page.save_screenshot(os.path.join(SCREENSHOTS, name.replace("/", "-") + ".png"))

    def violations(self):
        self.page.value(case.contents(AXE).decode())
        return self.page.value(VIOLATIONS)

    def test_the_home_page_leads_to_the_book(self):
        self.open_book("index")
        self.open("/")
        self.page.click('main a[href="/book/"]')
        self.assertIn("ZeroHTTPd", self.page.value("document.title"))
        self.assertEqual(self.page.errors(), [])

    def test_the_same_links_lead_from_each_page_to_the_others(self):
        for path in OWN:
            self.open(path)
            self.assertEqual(self.page.value("Array.from(document.querySelectorAll('nav a'), a => a.pathname).join()"),
                             "/,/guestbook,/status,/wall.html,/explore.html", path)

    def test_pages_fetch_from_this_server_only_and_fit_a_phone(self):
        for name in SEEN:
            for width, height in (PHONE, DESKTOP):
                with self.subTest(name, width=width):
                    self.page.resize(width, height)
                    self.open_book(name)
                    self.assertEqual(self.page.errors(), [])
                    self.assertEqual({urllib.parse.urlsplit(event["request"]["url"]).netloc for event
                                      in self.page.events("Network.requestWillBeSent")},
                                     {self.server.url.removeprefix("http://")})
                    self.assertLessEqual(self.page.value("document.documentElement.scrollWidth"), width)
                    self.shoot("book-%s-%d" % (name, width))

    def test_the_words_in_a_drawing_can_be_read_on_a_phone(self):
        self.page.resize(*PHONE)
        for name in ("01_iterative/index", "loadtest/index"):
            with self.subTest(name):
                self.open_book(name)
                shrunk = self.page.value("""Array.from(document.querySelectorAll('main img'),
                    each => each.clientWidth / each.naturalWidth)""")
                self.assertGreater(len(shrunk), 1)
                self.assertGreater(12 * min(shrunk), 10)  # pixels; 12 is what the drawings have

    def test_search_finds_a_section(self):
        self.open_book("01_iterative/index")
        self.page.type("#search", "dropped SYN wire")
        self.page.until("document.querySelector('#found li a')")
        self.assertEqual(self.page.value("document.querySelector('#found a').textContent"),
                         "Chapter 1: iterative: A dropped SYN, on the wire")
        self.assertRegex(self.page.value("document.querySelector('#found li').textContent"),
                         r"on the wire (… )?(\S+ )+…$")  # a space: it ends behind a word
        self.shoot("book-search")
        self.page.press_enter("#found a")
        self.page.until("location.hash === '#a-dropped-syn-on-the-wire'")
        self.assertEqual(self.page.errors(), [])

    def test_lines_that_are_gone_and_new_differ_in_colour_and_sign(self):
        colour = "getComputedStyle(document.querySelector('.diff .%s')).backgroundColor"
        for scheme in ("light", "dark"):
            self.page.prefer(scheme)
            self.open_book("02_forking/index")
            for sign, name, most in (("-", "st", 0), ("+", "va", 1)):
                rgb = list(map(int, re.findall(r"\d+", self.page.value(colour % name))))
                self.assertEqual(rgb.index(max(rgb)), most, rgb)  # the red, the green
                self.assertEqual(self.page.value("document.querySelector('.diff .%s').textContent[0]" % name), sign)

    def test_code_on_a_slide_is_as_large_as_text(self):
        self.page.resize(*DESKTOP)
        for name in ("01_iterative/slides", "04_threading/slides", "common/classroom/slides"):
            self.open_book(name)
            sizes = self.page.value("""Array.from(document.querySelectorAll('.slide pre code'), code => [
                parseFloat(getComputedStyle(code).fontSize), parseFloat(getComputedStyle(code.closest('.slide')).fontSize),
                code.scrollWidth <= code.closest('.slide').clientWidth])""")
            self.assertTrue(sizes)
            for code, text, fits in sizes:
                self.assertEqual((code, True), (text, fits))

    def test_keys_turn_slides(self):
        self.page.resize(*DESKTOP)
        self.open_book("01_iterative/slides")
        shown = """document.elementFromPoint(innerWidth / 2, innerHeight / 2).closest('.slide')
            === document.querySelectorAll('.slide')[%d]"""
        self.assertTrue(self.page.value(shown % 0))
        self.page.value("""document.body.dispatchEvent(
            new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))""")
        self.page.until(shown % 1)

    @unittest.skipUnless(os.path.exists(AXE), "axe-core is not installed: npm install --prefix build axe-core")
    def test_the_servers_own_pages_and_the_book_are_accessible(self):
        for scheme in ("light", "dark"):
            self.page.prefer(scheme)
            for show, names in ((self.open, OWN), (self.open_book, SEEN)):
                for name in names:
                    with self.subTest(name, scheme=scheme):
                        show(name)
                        self.assertEqual(self.violations(), [])
