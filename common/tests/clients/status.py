"""/status/ in Chromium: it follows what the server does."""

import socket

from browser import look_at, open_page
from case import Case

HALF = b"GET / HTTP/1.1\r\nHost: half"  # who has sent this is being read from
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
    def test_chromium_sees_three_clients_come_and_go_and_the_charts(self):
        page = open_page(self, self.url("/status/"))
        page.until("document.querySelector('#cells').ariaLabel")
        clients = hold(self, self.server, 3)
        if self.server_name in HOLDS_ONE:
            page.until("document.querySelector('#pace').textContent.startsWith('Busy')")
        else:  # and the page's own
            page.until("/\\b4 reading/.test(document.querySelector('#cells').ariaLabel)")
            page.until("document.querySelector('#cells .reading')")
        let_go(clients)
        page.until("/\\b1 reading/.test(document.querySelector('#cells').ariaLabel)")
        page.until("/^\\d/.test(document.querySelector('#rate').textContent)")
        for chart in ("rate-chart", "cpu-chart"):
            page.until("document.querySelector('#%s .line').getAttribute('d')" % chart)
        look_at(self, page)
        self.assertEqual(page.errors(), [])
