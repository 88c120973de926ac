"""proxy: nginx in front of a server, as OPERATING.md says."""

import os
import re
import shutil
import socket
import subprocess

from case import SOON_SECONDS, TOP, Case, contents, patience
import processes
import waiting

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
STATUSES = ("/status.json", "//status.json", "/%73tatus.json", "/x/../status.json", "/x/..%2fstatus.json",
            "/./status.json", "/status.json/", "/status.json/.", "/status.json%00", "/status.json?x",
            "http://guestbook.example/status.json")


class Proxy(Case):
    def start_proxy(self):
        if not shutil.which("nginx"):
            self.skipTest("nginx is not installed")
        page = contents(os.path.join(TOP, "common", "book", "OPERATING.md")).decode()
        http = re.search(r"^```nginx\n(.+?)^```$", page, re.DOTALL | re.MULTILINE)[1]
        http = http.replace("listen 80", "listen unix:%s/nginx" % self.folder).replace(
            "127.0.0.1:8000", "%s:%d" % (self.server.host, self.server.port))
        with open(os.path.join(self.folder, "conf"), "w", encoding="ascii") as conf:
            conf.write(CONFIGURATION % {"folder": self.folder, "http": http})
        nginx = processes.start(["nginx", "-e", "stderr", "-p", self.folder, "-c", conf.name], stdin=subprocess.DEVNULL)
        self.addCleanup(processes.end, nginx)
        with socket.socket(socket.AF_UNIX) as client:
            self.assertTrue(waiting.until(
                lambda: client.connect_ex(os.path.join(self.folder, "nginx")) == 0, SOON_SECONDS))

    def ask(self, request):
        """All that comes back. The client says no more, so the end follows the last response."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(patience(SOON_SECONDS))
            client.connect(os.path.join(self.folder, "nginx"))
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: client.recv(65536), b""))

    def test_the_proxy_of_the_page_holds_back_other_names_and_all_spellings_of_the_status(self):
        self.start_proxy()
        self.assertEqual(self.ask(b"GET / HTTP/1.1\r\nHost: rebound.example\r\n\r\n"), b"")
        for target in STATUSES:
            said = self.ask(b"GET %s HTTP/1.1\r\nHost: guestbook.example\r\n\r\n" % target.encode())
            self.assertRegex(said, re.compile(rb"\AHTTP/1\.1 40[04] "), target)
