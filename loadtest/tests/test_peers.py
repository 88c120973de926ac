"""Each peer, the floor, and each tool, for a moment: the right bytes on kept and on closed
connections, and nothing is left afterwards. What is not installed is skipped by name."""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import time
import unittest
from urllib.parse import urlsplit

import programs
from lib.measuring import machine, processes
from lib.subjects import peers
from proc import gone_within

PUBLIC = os.path.join(machine.TOP, "public")
tearDownModule = processes.end_all


def contents(name):
    with open(os.path.join(PUBLIC, name), "rb") as file:
        return file.read()


def fetch(url, times, **headers):
    """Asks so often on one connection. Returns the last body, and how many connections it took,
    by the client's ports."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    ports, body = set(), b""
    for _ in range(times):
        connection.request("GET", urlsplit(url).path, headers=headers)
        ports.add(connection.sock.getsockname()[1])
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise AssertionError("%s: %d" % (url, answer.status))
    connection.close()
    return body, len(ports)


class Live(unittest.TestCase):
    def setUp(self):
        self.folder = programs.folder(self)
        os.chmod(self.folder, 0o755)  # Apache, run by root, serves as nobody
        self.log = os.path.join(self.folder, "log")

    def need(self, name):
        reason = peers.missing(name)
        if reason:
            self.skipTest(reason)


class Peers(Live):
    def check(self, name, root):
        self.need(name)
        core = min(os.sched_getaffinity(0))
        with peers.Peer(name, root, {core}, self.log + name) as peer:
            self.assertEqual(os.sched_getaffinity(peer.pid), {core})
            for file in os.listdir(root):
                self.assertEqual(fetch(peer.url + "/" + file, 3), (contents(file), 1))
                self.assertEqual(fetch(peer.url + "/" + file, 2, Connection="close"), (contents(file), 2))
            peer.must_live()
        self.assertEqual(peer.end(), 0)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", urlsplit(peer.url).port), 1).close()
        with self.assertRaises(ProcessLookupError):
            os.killpg(peer.pid, 0)

    def test_they_serve_files_and_so_what_only_its_owner_may_read(self):
        root = os.path.join(self.folder, "root")
        os.mkdir(root, 0o700)
        for file in ("index.html", "tux.png"):
            shutil.copy(os.path.join(PUBLIC, file), root)
        for name in peers.NAMES:
            with self.subTest(name):
                self.check(name, root)


class Floor(Live):
    def setUp(self):
        super().setUp()
        self.need("floor")

    def floor(self, **options):
        return peers.Floor(None, self.log, **options)

    def talk(self, floor, *pieces):
        """Sends them one by one. Returns how many answers there were in the end, and whether the
        floor then closed."""
        got, closes = b"", False
        with socket.create_connection(("127.0.0.1", urlsplit(floor.url).port), 0.2) as client:
            for piece in pieces:
                client.sendall(piece)
                time.sleep(0.05)
            with contextlib.suppress(socket.timeout):
                while more := client.recv(65536):
                    got += more
                closes = True
        return got.count(b"HTTP/1.1 200 OK\r\n"), closes

    def test_it_keeps_a_connection_if_the_client_does(self):
        with self.floor() as floor:
            for request, closes in [
                    (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", False),
                    (b"GET / HTTP/1.1\r\nHost: h\r\nconnection: Close\r\n\r\n", True),
                    (b"GET / HTTP/1.0\r\n\r\n", True),
                    (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", False)]:
                with self.subTest(request=request):
                    self.assertEqual(self.talk(floor, request), (1, closes))

    def test_requests_in_pieces_and_several_at_once(self):
        whole = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
        with self.floor() as floor:
            self.assertEqual(self.talk(floor, whole * 3), (3, False))
            self.assertEqual(self.talk(floor, whole[:9], whole[9:] + whole), (2, False))


class Killed(Live):
    SCRIPT = """
import os, signal, sys
from lib.subjects import peers, redis, relay
public, folder = sys.argv[1:]
log = folder + "/log."
started = [peers.Peer(name, public, None, log + name) for name in peers.NAMES if not peers.missing(name)]
started += [] if peers.missing("floor") else [
    peers.Floor(None, log + "floor"), relay.SlowRedis(redis.Redis("127.0.0.1:1"), 5, None, folder)]
started += [peers.Command("it", "cd / && %s -m http.server {port}; true" % sys.executable, None, log + "it", "")]
print(*[each.__enter__().pid for each in started], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

    def test_nothing_outlives_who_started_it(self):
        with programs.python(self.SCRIPT, PUBLIC, self.folder) as program:
            said = program.stdout.read()
        self.assertEqual(program.returncode, -signal.SIGKILL)
        for pid in said.split():
            self.assertTrue(gone_within(3, int(pid)))
