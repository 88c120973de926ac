"""The memory of connections on which nobody speaks: from what the kernel writes, and alive."""

import os
import socket
import threading
import unittest

import programs
from lib import Trouble
from lib.measuring import idle
from lib.subjects import peers

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"


class Server:
    """Answers everybody; gives up a client for each of `patience` that it has not."""

    pid = os.getpid()

    def __init__(self, patience, head=HEAD):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._patience = patience
        self._head = head
        self._clients = []
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
    def test_a_kernel_stack_is_all_of_them_by_all_threads(self):
        self.assertEqual(idle.stack_size("Slab:   9 kB\nKernelStack:        1440 kB\n",
                                         "247.63 135.07 59.94 2/89 28874\n"), 16384)

    def test_they_are_kept_and_counted(self):
        found = idle.measure(lambda: Server(patience=10), "/", 10)
        self.assertEqual(found.connections, 10)
        self.assertEqual(set(found.before), set(idle.FIGURES))
        self.assertGreater(min(found.before.values()), 0)

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
        log = programs.folder(self) + "/log"
        found = idle.measure(lambda: peers.Floor(None, log), "/", 50)
        self.assertEqual(found.connections, 50)
        self.assertLess(found.each("pss"), 1024)
        self.assertEqual(found.each("stacks"), 0)
