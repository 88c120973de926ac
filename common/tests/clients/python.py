"""Python's own http.client."""

import contextlib
import http.client
from urllib.parse import quote_plus

from case import Case, LARGE_BYTES, SOON_SECONDS, contents, patience, public


class Python(Case):
    def connect(self):
        connection = http.client.HTTPConnection(self.server.host, self.server.port,
                                                timeout=patience(SOON_SECONDS))
        self.addCleanup(connection.close)
        return connection

    def test_python_asks_many_things_on_one_connection(self):
        connection = self.connect()
        connection.connect()
        socket = connection.sock
        for method, path, status, body in (
                ("GET", "/", 200, contents(public("index.html"))),
                ("GET", "/guestbook", 200, None),
                ("HEAD", "/tux.png", 200, b""),
                ("GET", "/nothing", 404, None),
                ("OPTIONS", "/guestbook", 204, b""),
                ("DELETE", "/guestbook", 405, None),
                ("GET", "/tux.png", 200, contents(public("tux.png")))):
            with self.subTest(method=method, path=path):
                connection.request(method, path)
                response = connection.getresponse()
                got = response.read()
                self.assertEqual(response.status, status)
                self.assertTrue(body in (None, got))
                self.assertIs(connection.sock, socket)

    def test_python_posts_a_form_in_chunks(self):
        remarks = "Piece by piece, \N{SNOWMAN} by \N{PENGUIN}."
        form = "guest-name=Chunky&guest-remarks=" + quote_plus(remarks)
        connection = self.connect()
        connection.request("POST", "/guestbook", (byte.encode() for byte in form),
                           {"Content-Type": "application/x-www-form-urlencoded",
                            "Transfer-Encoding": "chunked"}, encode_chunked=True)
        with contextlib.closing(connection.getresponse()) as response:
            self.assertEqual(response.status, 303)
            self.assertEqual(response.getheader("Location"), "/guestbook")
        self.assertEqual(self.newest_entry(), ["Chunky", remarks])

    def test_python_reads_a_large_file(self):
        connection = self.connect()
        connection.request("GET", "/large.bin")
        response = connection.getresponse()
        self.assertEqual(response.length, LARGE_BYTES)
        self.assertTrue(response.read() == contents(public("large.bin")), "it is not as it was")
