"""The model's page in Chromium: every slider, the table, the address; and no script at all."""

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
        for do, word in [(MOVE % (slider, at), word) for slider, at, word in (
                ("clients", 2, "clients=5"), ("delay", 8, "delay=50"), ("work", 6, "work=10"),
                ("workers", 2, "workers=5"), ("cores", 3, "cores=8"))] + [
                    (TICK % box, box + "=1") for box in ("kept", "apart")]:
            page.value("location.hash = '#clients=200&delay=10'")
            page.until(DONE + " && document.body.dataset.done === location.hash")
            before = page.value(RATES)
            self.assertEqual(len(before), 7)
            page.value(do)
            page.until(DONE)
            self.assertNotEqual(page.value(RATES), before, word)
            self.assertIn(word, page.value("location.hash"))
        look_at(self, page)
        self.assertEqual(page.errors(), [])

    def test_it_says_that_it_computes_and_a_long_time_in_words(self):
        page = open_page(self, self.server.url + "/explore.html#clients=15000&delay=300&work=100", True)
        page.until("document.getElementById('known').textContent.startsWith('Still computing 7 of')")
        page.value("location.hash = '#clients=500&delay=10'")
        page.until(DONE + " && document.body.dataset.done === location.hash")
        self.assertRegex(page.value("document.getElementById('results').rows[0].cells[3].textContent"), r"^15\ss, p99\b.*1\d\ss$")

    def test_without_scripts_it_shows_the_stored_runs(self):
        page = self.open(scripts=False)
        self.assertGreater(page.value("document.querySelectorAll('#stored tbody tr').length"), 10)
        self.assertFalse(page.value("document.getElementById('app').checkVisibility()"))
