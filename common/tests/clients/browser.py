"""Chromium, with somebody in front of it who reads the home page and signs the guestbook."""

import functools

import chromium
from case import Case, redis

DEVICES = (("phone", 360, 740), ("desktop", 1440, 900))
NAME = "Zo\N{LATIN SMALL LETTER E WITH DIAERESIS} <b>Z.</b> & \N{SMILING FACE WITH SUNGLASSES}"
REMARKS = "<script>alert(1)</script> & \"so\" on\n  'til \N{PENGUIN} {{visitors}}"
UNBROKEN = "2026-01-05T08:59:00Z\n%s\n%s" % ("W" * 64, "m" * 200)  # the oldest of entries

LINES_OF_LINKS = """new Set(Array.from(document.querySelectorAll('nav a:not(:first-child)'), link => link.offsetTop)).size"""
BROKEN = """Promise.all(Array.from([...document.links, ...document.images],
    async each => (await fetch(each.href || each.src)).ok ? '' : each.outerHTML)).then(found => found.join(''))"""
ANSWER = "document.getElementById('answer').textContent.includes('It was %s.')"  # server.js writes it


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


def look_at(test, page):
    """On a phone and on a desktop: nothing sticks out to the side, and the links to the other pages stand in one line."""
    for device, width, height in DEVICES:
        page.resize(width, height)
        page.until("innerWidth === %d" % width)
        test.assertLessEqual(page.value("document.documentElement.scrollWidth"), width, device)
        test.assertEqual(page.value(LINES_OF_LINKS), 1, device)


class Browser(Case):
    def test_chromium_shows_the_home_page(self):
        page = open_page(self, self.url("/"))
        page.until(ANSWER % self.server_name)
        self.assertEqual(page.value("document.querySelector('tr[aria-current]').id"), self.server_name)
        self.assertEqual(page.value(BROKEN), "")
        self.assertEqual(page.errors(), [])

    def test_chromium_signs_the_guestbook(self):
        self.server.redis.seed()
        self.server.redis.ask("LPUSH", redis.ENTRIES, UNBROKEN)
        page = open_page(self, self.url("/guestbook"))
        page.type("#name", NAME)
        page.type("#remarks", REMARKS)
        page.click("form button")
        self.assertEqual([event["redirectResponse"]["status"] for event
                          in page.events("Network.requestWillBeSent")
                          if "redirectResponse" in event], [303])
        self.assertEqual(page.value("""[...document.querySelectorAll('article')].map(
            article => ['h3', 'p'].map(tag => article.querySelector(tag).textContent))
            .filter(([name]) => name.startsWith('Zo'))"""), [[NAME, REMARKS]])
        self.assertIsNone(page.value("document.querySelector('article script, article b')"))
        self.assertEqual(page.errors(), [])
        look_at(self, page)
