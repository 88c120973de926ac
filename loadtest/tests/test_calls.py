"""System calls: from what strace wrote, and alive."""

import os
import shutil
import sys
import tempfile
import unittest
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

from lib import subjects
from lib.measuring import calls, processes
from lib.subjects import redis
from traced import calls_of

SAMPLES = os.path.join(HERE, "samples", "calls")


def count(*lines):
    """Requests, and calls by name."""
    counted = calls.count("\n".join(lines))
    return counted.pop(calls.REQUEST, 0), counted


def made(requests, **counts):
    return Counter({calls.REQUEST: requests, **counts})


def sample(name):
    """A record of three requests by ab, cut out of a longer one: it begins and ends somewhere."""
    with open(os.path.join(SAMPLES, name + ".strace"), encoding="ascii") as file:
        return count(file.read())


class Lines(unittest.TestCase):
    def test_a_call_counts_once_when_it_returns(self):
        self.assertEqual(count("7 close(0x6)                        = 0 <0.000004>")[1],
                         {"close": 1})
        self.assertEqual(count("7 close(0x6 <unfinished ...>")[1], {})
        self.assertEqual(count("7 <... close resumed>)  = 0 <0.000101>")[1], {"close": 1})

    def test_a_request_is_what_is_received_and_begins_with_get(self):
        requests, found = count(
            '7 recvfrom(7, "GET "..., 2048, 0, NULL, NULL) = 92 <0.000034>',
            '7 recvfrom(7,  <unfinished ...>',
            '7 <... recvfrom resumed>"GET "..., 2048, 0, NULL, NULL) = 92 <0.000041>',
            '7 recvfrom(7, "", 2048, 0, NULL, NULL) = 0 <0.000002>',
            '7 write(0x9, 0x557abcde00e3, 0x4e)  = 0x4e <0.000005>')
        self.assertEqual((requests, found), (2, {"recvfrom": 3, "write": 1}))


class Ticks(unittest.TestCase):
    def test_who_slept_until_its_time_was_up_was_not_asked_for_anything(self):
        again = "-1 EAGAIN (Resource temporarily unavailable)"
        for line in ("accept4(0x5, 0, 0, 0x80000) = %s <0.202830>" % again,
                     "<... accept4 resumed>)            = %s <0.203055>" % again,
                     "recvfrom(7, 0x7f57, 2048, 0, NULL, NULL) = %s <0.200013>" % again,
                     "poll(0x7ffd, 0x2, 0xc8) = 0 (Timeout) <0.200100>",
                     "epoll_wait(0x5, 0x7ffc, 0x100, 0xc8) = 0 <0.200100>"):
            with self.subTest(line=line):
                self.assertEqual(count("7 " + line), (0, {}))

    def test_one_that_found_nothing_at_once_is_a_call_like_others(self):
        found = count("7 accept4(0x7, 0, 0, 0x80800) = -1 EAGAIN (Resource) <0.000007>",
                      "7 poll(0x7ffd45b8, 0x1, 0) = 0 (Timeout) <0.000003>")
        self.assertEqual(found, (0, {"accept4": 1, "poll": 1}))


class Recorded(unittest.TestCase):
    def test_a_loop(self):
        self.assertEqual(sample("epoll"), (3, {
            "accept4": 5, "close": 4, "connect": 1, "epoll_ctl": 2, "epoll_wait": 8, "fcntl": 2,
            "getsockopt": 1, "lseek": 1, "newfstatat": 3, "openat": 1, "read": 8, "recvfrom": 6,
            "sendmsg": 3, "socket": 1, "write": 6}))


class Difference(unittest.TestCase):
    def test_what_is_in_both_cancels_out(self):
        found = calls.difference(made(200, accept4=100, recvfrom=300),
                                 made(700, accept4=100, recvfrom=800, write=1000))
        self.assertEqual(found.calls, {"recvfrom": 1.0, "write": 2.0})
        self.assertEqual((found.requests, found.total), (500, 3.0))


@unittest.skipUnless(shutil.which("strace") and shutil.which("ab") and shutil.which(redis.SERVER)
                     and os.access(subjects.binary_of("prethreading"), os.X_OK),
                     "needs strace, ab, redis-server and the servers")
class Alive(unittest.TestCase):
    """The figures are those of the servers as they are: they change if a server does."""

    def per_request(self, name, kind):
        self.addCleanup(processes.end_all)
        with tempfile.TemporaryDirectory() as folder:
            store = redis.start_private(folder, None)
            store.seed()
            return calls_of(name, kind, store, 10, 300)

    def test_a_page_is_three_questions_to_redis_and_one_answer_to_the_client(self):
        found = self.per_request("prethreading", "kept page")
        # The client's request is read with recv(2), and so is the check whether Redis has closed
        # the connection.
        for name, count in (("write", 3), ("read", 3), ("recvfrom", 2), ("sendmsg", 1)):
            self.assertAlmostEqual(found.get(name, 0), count, delta=0.05, msg=name)
