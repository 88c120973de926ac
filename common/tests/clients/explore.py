"""The model's page in Chromium: every slider, the table, the lanes, the address; and no script at all."""

import json
import unittest

from browser import look_at, open_page
from case import Server

DONE = "document.body.dataset.done !== undefined"
RATES = """[...document.querySelectorAll('#results tr')].map(
    row => Number.parseFloat(row.cells[1].textContent.replaceAll(',', '')))"""
MOVE = """(() => {
    const slider = document.getElementById('%s');
    slider.value = %s;
    slider.dispatchEvent(new Event('input', {bubbles: true}));
})()"""
TICK = "document.getElementById('%s').click()"


class Explore(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("epoll")
        cls.addClassCleanup(cls.server.end)

    def open(self, query="", scripts=True):
        page = open_page(self, self.server.url + "/explore.html" + query, scripts)
        if scripts:
            page.until(DONE)
        return page

    def test_every_slider_changes_the_table_and_the_address(self):
        page = self.open("#clients=200&delay=10")
        for slider, index, word in (("clients", 2, "clients=5"), ("delay", 8, "delay=50"), ("work", 6, "work=10"),
                                    ("workers", 2, "workers=5"), ("cores", 3, "cores=8")):
            page.value("location.hash = '#clients=200&delay=10'")
            page.until(DONE + " && document.body.dataset.done === location.hash")
            before = page.value(RATES)
            self.assertEqual(len(before), 7)
            page.value(MOVE % (slider, index))
            page.until(DONE)
            self.assertNotEqual(page.value(RATES), before, slider)
            self.assertIn(word, page.value("location.hash"))
            self.assertIn(word.split("=")[1], page.value("document.getElementById('%s-is').textContent" % slider))
        for box in ("kept", "apart"):
            before = page.value(RATES)
            page.value(TICK % box)
            page.until(DONE)
            self.assertNotEqual(page.value(RATES), before, box)
            self.assertIn(box + "=1", page.value("location.hash"))
        self.assertEqual(page.errors(), [])

    def test_a_question_and_its_answer_are_in_view_together(self):
        for width, height in ((1366, 768), (390, 844)):
            page = self.open()
            page.resize(width, height)
            for number in (1, 4, 6):
                link = "document.querySelector('.questions li:nth-child(%d) a')" % number
                page.value(link + ".scrollIntoView({block: 'center', behavior: 'instant'})")
                page.value(link + ".click()")
                page.until(DONE + " && document.body.dataset.done === location.hash")
                for each in (link, "document.querySelector('#results tr:first-child')",
                             "document.querySelector('#results tr:last-child')"):
                    box = page.value("JSON.stringify(%s.getBoundingClientRect())" % each)
                    box = json.loads(box)
                    self.assertTrue(0 <= box["top"] and box["bottom"] <= height, (width, number, each, box))
            self.assertLessEqual(page.value("document.documentElement.scrollWidth"), width)

    def test_the_address_is_the_setting(self):
        page = self.open("#clients=77&kept=1&lanes=poll")
        self.assertEqual(page.value("document.getElementById('clients-is').textContent"), "77")
        self.assertTrue(page.value("document.getElementById('kept').checked"))
        self.assertIn("poll", page.value("document.getElementById('picture').ariaLabel"))
        for wrong in ("#clients=0", "#clients=none", "#clients=1e99", "#delay=-1&lanes=nobody"):
            page = self.open(wrong)
            self.assertEqual(page.value("document.getElementById('clients-is').textContent"), "100")
            self.assertEqual(page.errors(), [])

    def test_it_says_what_was_measured_and_what_is_only_computed(self):
        page = self.open("#clients=500")
        self.assertRegex(page.value("document.getElementById('known').textContent"), "^Measured as well, in the stored run “compare")
        self.assertRegex(page.value("document.querySelector('#results tr').innerText"), r"measured [\d,]+ \([+\u2212]\d+\s%\)")
        page.value(MOVE % ("cores", 6))
        page.until(DONE)
        self.assertRegex(page.value("document.getElementById('known').textContent"), "^Only computed")

    def test_the_lanes_have_a_table(self):
        page = self.open("#clients=20&delay=1")
        for name in ("iterative", "forking", "threading", "epoll"):
            page.value("document.getElementById('lanes').value = '%s'" % name)
            page.value("document.getElementById('lanes').dispatchEvent(new Event('change'))")
            shown = page.value("document.querySelectorAll('#picture title').length")
            self.assertGreater(shown, 5, name)
            self.assertEqual(page.value("document.querySelectorAll('#spans tr').length"), shown)
        look_at(self, page, "explore")
        self.assertEqual(page.errors(), [])

    def test_a_crowd_is_computed_to_its_end(self):
        page = self.open("#clients=15000")  # how long a frame takes is a test of loadtest/tests
        self.assertRegex(page.value("document.getElementById('took').textContent"), r"^\d,\d{3},\d{3} events")
        self.assertEqual(page.errors(), [])

    def test_without_scripts_it_shows_the_stored_runs(self):
        page = self.open(scripts=False)
        self.assertGreater(page.value("document.querySelectorAll('#stored tbody tr').length"), 10)
        self.assertFalse(page.value("document.getElementById('app').checkVisibility()"))
