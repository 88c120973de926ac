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

    def test_a_name_that_another_ends_with_is_another(self):
        self.assertEqual(meter.kib("SecPageTables:  7 kB\nPageTables:  9 kB\n", "PageTables"), 9216)
        self.assertIsNone(meter.kib("SecPageTables:  7 kB\n", "PageTables"))

    def test_a_kernel_stack_is_all_of_them_by_all_threads(self):
        self.assertEqual(idle.stack_size(sample("meminfo"), sample("loadavg")), 16384)

    def test_two_threads_more_or_less_do_not_matter_for_it(self):
        for threads in (85, 93):
            self.assertEqual(idle.stack_size("KernelStack:  1440 kB\n",
                                             "1.0 1.0 1.0 2/%d 28874\n" % threads), 16384)


class Figures(unittest.TestCase):
    def test_what_has_grown_by_the_connections_that_were_kept(self):
        found = idle.Idle(50, {"pss": 1000}, {"pss": 6000})
        self.assertEqual(found.each("pss"), 100)

    def test_which_servers_hold_no_more_than_they_are(self):
        self.assertEqual(idle.most("iterative"), 1)
        self.assertEqual(idle.most("preforking@v1.0"), 100)
        self.assertIsNone(idle.most("epoll"))


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

    def test_one_of_ten_given_up_is_not_counted(self):
        self.assertEqual(idle.measure(lambda: Server(patience=9), "/", 10).connections, 9)

    def test_more_of_them_given_up_is_trouble(self):
        with self.assertRaisesRegex(Trouble, "of 10 idle connections it kept 8"):
            idle.measure(lambda: Server(patience=8), "/", 10)

    def test_no_200_or_no_length_is_trouble(self):
        for head, why in ((b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\n", "503"),
                          (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", "its connection")):
            with self.subTest(head=head), self.assertRaisesRegex(Trouble, why):
                idle.measure(lambda head=head: Server(0, head), "/", 1)

    def test_an_answer_that_breaks_off_is_trouble(self):
        head = HEAD.replace(b"5", b"6")
        with self.assertRaisesRegex(Trouble, "does not answer"):
            idle.measure(lambda: Server(-idle.FIRST, head), "/", 1)

    @unittest.skipUnless(os.access(peers.FLOOR, os.X_OK), "needs the floor")
    def test_the_floor_needs_nothing_for_one(self):
        with tempfile.TemporaryDirectory() as folder:
            found = idle.measure(lambda: peers.Floor(None, os.path.join(folder, "log")), "/", 50)
        self.assertEqual(found.connections, 50)
        self.assertLess(found.each("pss"), 1024)
        self.assertEqual(found.each("stacks"), 0)


if __name__ == "__main__":
    unittest.main()
