"""proxy: nginx in front of a server, as OPERATING.md says. The two read a request alike."""

import itertools
import os
import re
import shutil
import socket
import subprocess
import time

from case import SOON_SECONDS, TOP, Case, patience
from lib.measuring import processes

CONFIGURATION = """daemon off; master_process off; pid %(folder)s/nginx.pid;
events { }
http {
    access_log off; proxy_ignore_client_abort on;
    client_body_temp_path %(folder)s/body; proxy_temp_path %(folder)s/proxy;
    fastcgi_temp_path %(folder)s/fastcgi; uwsgi_temp_path %(folder)s/uwsgi;
    scgi_temp_path %(folder)s/scgi;
    %(http)s
}
"""
LAX = """upstream server { server 127.0.0.1:8000; keepalive 4; }
server {
    listen 80;
    underscores_in_headers on; ignore_invalid_headers off; # pass on as much as nginx can
    location / {
        proxy_pass http://server; proxy_http_version 1.1;
        proxy_set_header Host $http_host; proxy_set_header Connection "";
        proxy_request_buffering off; proxy_next_upstream off;
    }
}
"""
FORM = b"guest-name=Eve&guest-remarks=hidden"
HIDDEN = (b"POST /guestbook HTTP/1.1\r\nHost: test\r\n"
          b"Content-Type: application/x-www-form-urlencoded\r\n"
          b"Content-Length: %d\r\n\r\n%s" % (len(FORM), FORM))
LENGTHS = [b"Content-Length" + each % len(HIDDEN) for each in (
    b": %d\r\n", b": 0%d\r\n", b": +%d\r\n", b" : %d\r\n", b":\t%d \r\n", b": %d\rX: y\r\n",
    b": %d, 5\r\n", b": %d\r\nContent-Length: 0\r\n")] + [
    b"Content_Length: %d\r\n" % len(HIDDEN), b"Content-Length: 0\r\n", b""]
CODINGS = [b"Transfer-Encoding" + each + b"\r\n" for each in (
    b": chunked", b" : chunked", b": xchunked", b":\r\n chunked", b": chunked, identity",
    b": identity, chunked", b": chunked;a=b", b": chunked,", b":\vchunked", b": CHUNKED")] + [
    b"transfer_encoding: chunked\r\n", b"X: y\nTransfer-Encoding: chunked\r\n", b""]
BODIES = [HIDDEN, b"%x\r\n%s\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN)] + [
    start + HIDDEN for start in (b"0\r\n\r\n", b"0;a=b\r\n\r\n", b"0\n\n", b"0x0\r\n\r\n",
                                 b"1;\r\nA\r\n0\r\n\r\n", b"0\r\nContent-Length: 9\r\n\r\n")]
STATUSES = ("/status", "/status.json", "//status", "/%73tatus", "/x/../status", "/x/..%2fstatus",
            "/./status", "/status/", "/status/.", "/status%00", "/status?x",
            "http://guestbook.example/status")


def of_the_page():
    with open(os.path.join(TOP, "common", "OPERATING.md"), encoding="utf-8") as page:
        return re.search(r"^```nginx\n(.+?)^```$", page.read(), re.DOTALL | re.MULTILINE)[1]


class Proxy(Case):
    def start_proxy(self, http):
        if not shutil.which("nginx"):
            self.skipTest("nginx is not installed")
        http = http.replace("listen 80", "listen unix:%s/nginx" % self.folder).replace(
            "127.0.0.1:8000", "%s:%d" % (self.server.host, self.server.port))
        with open(self.place("conf"), "w", encoding="ascii") as conf:
            conf.write(CONFIGURATION % {"folder": self.folder, "http": http})
        with open(self.place("log"), "wb") as log:
            nginx = processes.start(["nginx", "-e", "stderr", "-p", self.folder, "-c",
                                     self.place("conf")], stdout=log, stderr=log,
                                    stdin=subprocess.DEVNULL)
        self.addCleanup(processes.end, nginx)
        deadline = time.monotonic() + patience(SOON_SECONDS)
        while not self.can_connect():
            self.assertLess(time.monotonic(), deadline, processes.printed(self.place("log")))
            time.sleep(processes.POLL_SECONDS)

    def can_connect(self):
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(self.place("nginx")) == 0

    def ask(self, request):
        """All that comes back. The client says no more, so the end follows the last response."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(patience(SOON_SECONDS))
            client.connect(self.place("nginx"))
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: client.recv(65536), b""))

    def test_no_request_hides_from_a_proxy(self):
        """If nginx takes the hidden post for a request, its client gets the 303. Otherwise nothing
        may be stored, and the next client of the connection gets its own response."""
        self.start_proxy(LAX)
        told = self.entries()
        pairs = set(itertools.product(LENGTHS, CODINGS[:1] + CODINGS[-1:]))
        pairs |= set(itertools.product(LENGTHS[:1] + LENGTHS[-1:], CODINGS))
        for fields in map(b"".join, sorted(pairs)):
            for body in BODIES:
                attempt = b"POST /none HTTP/1.1\r\nHost: test\r\n" + fields + b"\r\n" + body
                told += self.ask(attempt).count(b"HTTP/1.1 303 ")
                other = self.ask(b"HEAD /tux.png HTTP/1.1\r\nHost: test\r\n\r\n")
                self.assertTrue(other.startswith(b"HTTP/1.1 200 ") and b"image/png" in other,
                                "%r gave somebody else %r" % (attempt, other))
            self.assertEqual(self.entries(), told, fields)

    def test_the_proxy_of_the_page_lets_its_visitors_post_but_not_too_often(self):
        self.start_proxy(of_the_page())
        fields = b"Host: guestbook.example\r\nOrigin: http://guestbook.example\r\n"
        start = time.monotonic()
        stored = self.ask(100 * HIDDEN.replace(b"Host: test\r\n", fields)).count(b" 303 ")
        self.assertGreaterEqual(stored, 6)
        self.assertLessEqual(stored, 6 + time.monotonic() - start)

    def test_the_proxy_of_the_page_holds_back_other_names_and_all_spellings_of_the_status(self):
        self.start_proxy(of_the_page())
        self.assertEqual(self.ask(b"GET / HTTP/1.1\r\nHost: rebound.example\r\n\r\n"), b"")
        for target in STATUSES:
            said = self.ask(b"GET %s HTTP/1.1\r\nHost: guestbook.example\r\n\r\n" % target.encode())
            self.assertRegex(said, re.compile(rb"\AHTTP/1\.1 40[04] "), target)
