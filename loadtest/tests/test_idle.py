"""The memory of connections on which nobody speaks: from what the kernel writes, and alive."""

import os
import socket
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib import Trouble
from lib.measuring import idle, meter
from lib.subjects import peers

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples", "idle")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"


def sample(name):
    with open(os.path.join(SAMPLES, name), encoding="ascii") as file:
        return file.read()


class Kernel(unittest.TestCase):
    def test_a_figure_of_a_file_of_names_and_figures(self):
        self.assertEqual(meter.kib(sample("meminfo"), "Slab"), 279156 * 1024)
        self.assertEqual(meter.kib(sample("status"), "VmPTE"), 44 * 1024)

    def test_a_kernel_stack_is_all_of_them_by_all_threads(self):
        self.assertEqual(idle.stack_size(sample("meminfo"), sample("loadavg")), 16384)


class Server:
    """Answers everybody; gives up a client for each of `patience` that it has not."""

    def __init__(self, patience, head=HEAD):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._patience = patience
        self._head = head
        self._clients = []
        self.pid = os.getpid()
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *exception):
        self._listener.shutdown(socket.SHUT_RDWR)
        for each in [self._listener, *self._clients]:
            each.close()

    def must_live(self):
        pass

    def _serve(self):
        try:
            while True:
                client = self._listener.accept()[0]
                client.recv(2048)
                client.sendall(self._head + b"hello")
                self._clients.append(client)
                if len(self._clients) > idle.FIRST + self._patience:
                    client.close()
        except OSError:
            pass


class Holding(unittest.TestCase):
    def test_they_are_kept_and_counted(self):
        found = idle.measure(lambda: Server(patience=10), "/", 10)
        self.assertEqual(found.connections, 10)
        self.assertEqual(set(found.before), set(idle.FIGURES))

    def test_more_of_them_given_up_is_trouble(self):
        with self.assertRaisesRegex(Trouble, "of 10 idle connections it kept 8"):
            idle.measure(lambda: Server(patience=8), "/", 10)

    def test_no_200_or_no_length_is_trouble(self):
        for head, why in ((b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\n", "503"),
                          (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", "its connection")):
            with self.subTest(head=head), self.assertRaisesRegex(Trouble, why):
                idle.measure(lambda head=head: Server(0, head), "/", 1)

    @unittest.skipUnless(os.access(peers.FLOOR, os.X_OK), "needs the floor")
    def test_the_floor_needs_nothing_for_one(self):
        with tempfile.TemporaryDirectory() as folder:
            found = idle.measure(lambda: peers.Floor(None, os.path.join(folder, "log")), "/", 50)
        self.assertEqual(found.connections, 50)
        self.assertLess(found.each("pss"), 1024)
        self.assertEqual(found.each("stacks"), 0)
