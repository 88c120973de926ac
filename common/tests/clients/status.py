"""/status in Chromium: with scripts it follows what the server does, without it is complete."""

import re
import socket

from browser import Browser, look_at
from case import Case

HALF = b"GET / HTTP/1.1\r\nHost: half"  # who has sent this is being read from, for ten seconds
HOLDS_ONE = ("iterative",)


def hold(test, server, number):
    """So many clients with half a request each, until let_go() or the end of the test."""
    clients = []
    test.addCleanup(let_go, clients)
    for _ in range(number):
        clients.append(socket.create_connection((server.host, server.port)))
        clients[-1].sendall(HALF)
    return clients


def let_go(clients):
    for client in clients:
        client.close()


class Status(Case):
    open = Browser.open

    def test_chromium_sees_three_clients_come_and_go(self):
        page = self.open("/status")
        page.until("document.querySelector('#cells').ariaLabel")
        clients = hold(self, self.server, 3)
        if self.server_name in HOLDS_ONE:
            page.until("document.querySelector('#pace').textContent.startsWith('Busy')")
            self.assertIsNotNone(page.value("document.querySelector('#cells path')"))
        else:  # and the page's own
            page.until("/\\b4 reading/.test(document.querySelector('#cells').ariaLabel)")
            page.until("document.querySelector('#cells .reading')")
        let_go(clients)
        page.until("/\\b1 reading/.test(document.querySelector('#cells').ariaLabel) && "
                   "document.querySelector('#pace').textContent.startsWith('Kept')")
        self.assertEqual(page.errors(), [])

    def test_chromium_draws_a_rate_and_the_processor(self):
        page = self.open("/status")
        page.until("/^\\d/.test(document.querySelector('#rate').textContent)")
        self.assertRegex(page.value("document.querySelector('#cpu').textContent"), r"^\d+ %$")
        for chart in ("rate-chart", "cpu-chart"):
            self.assertTrue(page.value("document.querySelector('#%s .line').getAttribute('d')"
                                       % chart))
        look_at(self, page, "status-" + self.server_name)
        self.assertEqual(page.errors(), [])

    def test_chromium_shows_all_of_the_status_without_scripts(self):
        page = self.open("/")
        page.without_scripts()
        page.open(self.url("/status"))
        self.assertEqual(page.value("document.querySelector('h1').textContent"), self.server_name)
        text = page.value("document.querySelector('main').innerText")
        self.assertRegex(text, r"\b[1-9] reading")  # its own, and perhaps the last test's
        counted = re.findall(r"\b(\d+) (?:writing|asking|reading|fresh|lingering|idle|waiting)", text)
        self.assertEqual(len(counted), 6 if self.server_name in ("poll", "epoll") else 7)
        if self.server_name.startswith("pre"):
            self.assertEqual(sum(map(int, counted)), 8)  # of all workers
        self.assertNotIn("{{", text)
        figures = page.value("[...document.querySelectorAll('dd')].map(dd => dd.textContent)")
        self.assertEqual(len(figures), 14)
        for figure in figures:
            self.assertRegex(figure, r"^\d+( ms| KiB)?$")
        workers = 8 if self.server_name.startswith("pre") else 1
        self.assertGreaterEqual(page.value("document.querySelectorAll('#slots tr').length"),
                                workers)
        self.assertEqual(page.value("document.querySelectorAll('main [hidden]').length"), 5)
        look_at(self, page, "status-plain-" + self.server_name)
        self.assertEqual(page.errors(), [])
