"""proxy: nginx, HAProxy and Caddy in front of a server, as OPERATING.md says; and the unit for systemd."""

import os
import re
import shutil
import socket
import subprocess

from case import SOON_SECONDS, TOP, Case, contents, patience
import processes
import redis
import waiting

FILES = os.path.join(TOP, "common", "book", "operating")
NGINX = """daemon off; master_process off; pid %(folder)s/nginx.pid;
events { }
http {
    access_log off;
    client_body_temp_path %(folder)s/body; proxy_temp_path %(folder)s/proxy;
    fastcgi_temp_path %(folder)s/fastcgi; uwsgi_temp_path %(folder)s/uwsgi;
    scgi_temp_path %(folder)s/scgi;
    %(text)s
}
"""
HAPROXY = """defaults
    timeout connect 5s
    timeout client 60s
    timeout server 60s
%(text)s
"""
CADDY = "{\n    admin off\n}\n%(text)s"
# For each: its file, what stands around that, where it listens, there and here, and the command.
PROXIES = {"nginx": ("nginx.conf", NGINX, "listen 80", "listen 127.0.0.1:%d", ["-e", "stderr", "-p", ".", "-c"]),
           "haproxy": ("haproxy.cfg", HAPROXY, "bind :80", "bind 127.0.0.1:%d", ["-db", "-f"]),
           "caddy": ("Caddyfile", CADDY, "guestbook.example {", "http://guestbook.example:%d {\n    bind 127.0.0.1",
                     ["run", "--adapter", "caddyfile", "--config"])}
STATUSES = ("/status.json", "//status.json", "/%73tatus.json", "/x/../status.json", "/x/..%2fstatus.json",
            "/./status.json", "/status.json/", "/status.json/.", "/status.json%00", "/status.json?x",
            "http://guestbook.example/status.json")
POST = b"POST /guestbook HTTP/1.1\r\nHost: guestbook.example\r\nOrigin: %s://guestbook.example\r\nContent-Length: 28\r\n" \
       b"Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n\r\nguest-name=A&guest-remarks=b"


class Proxy(Case):
    def start_proxy(self, program):
        if not shutil.which(program):
            self.skipTest("%s is not installed" % program)
        file, around, there, here, words = PROXIES[program]
        self.port = redis.free_port()
        text = contents(os.path.join(FILES, file)).decode().replace(there, here % self.port).replace(
            "127.0.0.1:8000", "%s:%d" % (self.server.host, self.server.port))
        with open(os.path.join(self.folder, file), "w", encoding="ascii") as conf:
            conf.write(around % {"folder": self.folder, "text": text})
        with open(os.path.join(self.folder, "said"), "wb") as said:
            proxy = processes.start([program, *words, conf.name], cwd=self.folder, stdin=subprocess.DEVNULL, stderr=said)
        self.addCleanup(processes.end, proxy)
        with socket.socket() as client:
            self.assertTrue(waiting.until(lambda: client.connect_ex(("127.0.0.1", self.port)) == 0, SOON_SECONDS))

    def ask(self, request):
        """All that comes back until the proxy closes, as it was asked to."""
        with socket.create_connection(("127.0.0.1", self.port), patience(SOON_SECONDS)) as client:
            client.sendall(request)
            return b"".join(iter(lambda: client.recv(65536), b""))

    def test_the_proxies_of_the_page_hold_back_other_names_all_spellings_of_the_status_and_too_many_posts(self):
        for program in PROXIES:
            with self.subTest(program):
                self.start_proxy(program)
                self.assertNotIn(b"<html", self.ask(b"GET / HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n"))
                for target in STATUSES:
                    said = self.ask(b"GET %s HTTP/1.1\r\nHost: guestbook.example\r\nConnection: close\r\n\r\n" % target.encode())
                    self.assertRegex(said, re.compile(rb"\AHTTP/1\.1 40[04] "), target)
                said = {self.ask(POST % (b"https" if program == "caddy" else b"http"))[9:12] for _ in range(20)}
                self.assertEqual(said, {b"303"} | {"nginx": {b"503"}, "haproxy": {b"429"}}.get(program, set()))

    def test_systemd_understands_the_unit(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("there is no systemd")
        here = os.path.join(self.folder, "here")  # TOP may have a blank in it
        os.symlink(os.path.join(TOP, os.environ.get("SERVERS", ".")), here)
        with open(os.path.join(self.folder, "guestbook.service"), "w", encoding="ascii") as unit:
            unit.write(contents(FILES + "/guestbook.service").decode().replace("/opt/zerohttpd", here))
        done = subprocess.run(["systemd-analyze", "verify", unit.name], capture_output=True, encoding="utf-8", check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
