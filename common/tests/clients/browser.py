"""Chromium, with somebody in front of it who reads the home page and signs the guestbook."""

import functools
import os

import chromium
from case import Case, redis  # first: it says where lib is
from lib.measuring import machine

SCREENSHOTS = os.path.join(machine.BUILD, "screenshots")
DEVICES = (("phone", 360, 740), ("desktop", 1440, 900))
NAME = "Zo\N{LATIN SMALL LETTER E WITH DIAERESIS} <b>Z.</b> & \N{SMILING FACE WITH SUNGLASSES}"
REMARKS = "<script>alert(1)</script> & \"so\" on\n  'til \N{PENGUIN} {{visitors}}"
UNBROKEN = "2026-01-05T08:59:00Z\n%s\n%s" % ("W" * 64, "m" * 200)  # the oldest of entries

# The sentence that server.js changes, when it has.
ANSWER = """new Promise(resolve => {
    const answer = document.getElementById('answer');
    const look = () => answer.querySelector('strong') && resolve(answer.textContent);
    new MutationObserver(look).observe(answer, {childList: true});
    look();
})"""


@functools.lru_cache(maxsize=None)
def the_browser():
    return chromium.Chromium(chromium.find())


def open_page(test, url, scripts=True):
    """In a window that the test closes at its end."""
    if not chromium.find():
        test.skipTest("Chromium is not installed")
    page = chromium.Page(the_browser())
    test.addCleanup(page.close)
    if not scripts:
        page.without_scripts()
    page.open(url)
    return page


def look_at(test, page, name):
    """On a phone and on a desktop: nothing sticks out to the side. Keeps a picture of each."""
    os.makedirs(SCREENSHOTS, exist_ok=True)
    for device, width, height in DEVICES:
        page.resize(width, height)
        page.until("innerWidth === %d" % width)
        test.assertLessEqual(page.value("document.documentElement.scrollWidth"), width, device)
        page.save_screenshot(os.path.join(SCREENSHOTS, "%s-%s.png" % (name, device)), whole=True)


class Browser(Case):
    def open(self, path):
        return open_page(self, self.url(path))

    def test_chromium_shows_the_home_page(self):
        page = self.open("/")
        self.assertIn("ZeroHTTPd", page.value("document.title"))
        self.assertEqual(page.value("""[...document.images].filter(
            image => image.naturalWidth == 0).map(image => image.src)"""), [])
        penguin = """document.querySelector('img[src="/tux.svg"]')"""
        self.assertGreater(page.value(penguin + ".naturalWidth"), 0)
        self.assertIn("It was %s." % self.server_name, page.value(ANSWER))
        self.assertEqual(page.value("document.querySelector('tr[aria-current]').id"),
                         self.server_name)
        self.assertEqual(page.errors(), [])

    def test_chromium_signs_the_guestbook(self):
        page = self.open("/guestbook")
        self.assertEqual(page.errors(), [])
        page.type("#name", NAME)
        page.type("#remarks", REMARKS)
        page.click("form button")
        self.assertEqual([event["redirectResponse"]["status"] for event
                          in page.events("Network.requestWillBeSent")
                          if "redirectResponse" in event], [303])
        self.assertEqual(page.errors(), [])
        self.assert_signed_once(page)
        page.reload()  # asks for the page again, and does not sign again
        self.assert_signed_once(page)

    def assert_signed_once(self, page):
        self.assertEqual(page.value("location.pathname"), "/guestbook")
        self.assertEqual(page.value("""[...document.querySelectorAll('article')].map(
            article => ['h3', 'p'].map(tag => article.querySelector(tag).textContent))
            .filter(([name]) => name.startsWith('Zo'))"""), [[NAME, REMARKS]])
        self.assertIsNone(page.value("document.querySelector('article script, article b')"))

    def test_chromium_shows_what_was_wrong_and_keeps_what_was_typed(self):
        before = self.entries()
        page = self.open("/guestbook")
        page.value("document.querySelector('form').noValidate = true")
        page.type("#name", NAME)
        page.type("#remarks", "   ")
        page.click("form button")
        self.assertIn("remarks", page.value("document.querySelector('[role=alert]').textContent"))
        self.assertEqual(page.value("document.querySelector('#name').value"), NAME)
        self.assertEqual(page.value("document.querySelector('#remarks').value"), "   ")
        self.assertEqual(self.entries(), before)

    def test_chromium_needs_no_scrolling_to_the_side(self):
        self.server.redis.seed()
        self.server.redis.ask("LPUSH", redis.ENTRIES, UNBROKEN)
        look_at(self, self.open("/guestbook"), "guestbook")
