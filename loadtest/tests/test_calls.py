"""System calls: from what strace wrote, and alive, where what a request costs, which repeats as speeds do
not, is within the budgets."""

import os
import unittest
from collections import Counter

import programs
from lib import subjects
from lib.measuring import calls, machine, processes
from lib.subjects import redis

READS = 3 + 3  # of a client, and of Redis' replies
AGAIN = "-1 EAGAIN (Resource temporarily unavailable)"


def made(requests, **counts):
    return Counter({calls.REQUEST: requests, **counts})


class Lines(unittest.TestCase):
    def check(self, lines, requests=0, **counts):
        with self.subTest(lines=lines):
            self.assertEqual(+calls.count("\n".join("7 " + line for line in lines)), +made(requests, **counts))

    def test_a_call_counts_once_when_it_returns(self):
        self.check(["close(0x6)                        = 0 <0.000004>"], close=1)
        self.check(["close(0x6 <unfinished ...>"])
        self.check(["<... close resumed>)  = 0 <0.000101>"], close=1)

    def test_a_request_is_what_is_received_and_begins_with_get(self):
        self.check(['recvfrom(7, "GET "..., 2048, 0, NULL, NULL) = 92 <0.000034>', 'recvfrom(7,  <unfinished ...>',
                    '<... recvfrom resumed>"GET "..., 2048, 0, NULL, NULL) = 92 <0.000041>',
                    'recvfrom(7, "", 2048, 0, NULL, NULL) = 0 <0.000002>',
                    'write(0x9, 0x557abcde00e3, 0x4e)  = 0x4e <0.000005>'], 2, recvfrom=3, write=1)

    def test_who_slept_until_its_time_was_up_was_not_asked_for_anything(self):
        for line in ("accept4(0x5, 0, 0, 0x80000) = %s <0.202830>" % AGAIN,
                     "<... accept4 resumed>)            = %s <0.203055>" % AGAIN,
                     "recvfrom(7, 0x7f57, 2048, 0, NULL, NULL) = %s <0.200013>" % AGAIN,
                     "poll(0x7ffd, 0x2, 0xc8) = 0 (Timeout) <0.200100>",
                     "epoll_wait(0x5, 0x7ffc, 0x100, 0xc8) = 0 <0.200100>"):
            self.check([line])

    def test_one_that_found_nothing_at_once_is_a_call_like_others(self):
        self.check(["accept4(0x7, 0, 0, 0x80800) = %s <0.000007>" % AGAIN,
                    "poll(0x7ffd45b8, 0x1, 0) = 0 (Timeout) <0.000003>"], accept4=1, poll=1)

    def test_what_is_in_both_cancels_out(self):
        found = calls.difference(made(200, accept4=100, recvfrom=300),
                                 made(700, accept4=100, recvfrom=800, write=1000))
        self.assertEqual(found.calls, {"recvfrom": 1.0, "write": 2.0})
        self.assertEqual((found.requests, found.total), (500, 3.0))


@programs.needs("strace", "ab", redis.SERVER, subjects.binary_of("epoll"))
class Alive(unittest.TestCase):
    """The figures are those of the servers as they are: they change if a server does."""

    @classmethod
    def setUpClass(cls):
        cls.folder = programs.folder(cls)
        cls.addClassCleanup(processes.end_all)
        cls.redis = redis.start_private(cls.folder, None)
        cls.redis.seed()

    def calls_of(self, name, kind, clients=calls.FEW_AT_ONCE, requests=300):
        """{call: how often a request} of one of the seven, or of the floor."""
        cores = machine.choose_cores()

        def open_server(log, under):
            return subjects.open_subject(name, cores.server, log, redis=self.redis.where, prefix=under)

        with calls.Traced(open_server, os.path.join(self.folder, name), cores.client) as server:
            return server.per_request(kind, clients, requests).calls

    def test_the_budgets(self):
        for kind, budgets in calls.BUDGETS.items():
            for name, most in budgets.items():
                with self.subTest(kind=kind, server=name):
                    found = self.calls_of(name, kind, *calls.budget_load(kind, name))
                    self.assertLessEqual(sum(found.values()), most, found)
                    often = {call for call, count in found.items() if count >= 0.2}
                    self.assertLessEqual(often, set(calls.WHY), "a call without a reason")
                    reads = found.get("recvfrom", 0) + found.get("read", 0)
                    self.assertLessEqual(reads, READS + 0.05, found)

    def test_the_floor_naps_where_clients_come_and_go_and_only_there(self):
        for kind, naps in ("new page", True), ("kept page", False):
            found = self.calls_of("floor", kind)
            self.assertEqual("clock_nanosleep" in found, naps, found)

    def test_a_page_is_three_questions_to_redis_and_one_answer_to_the_client(self):
        """The client's request is read with recv(2), and so is the check whether Redis has closed the
        connection."""
        found = self.calls_of("prethreading", "kept page")
        for name, count in (("write", 3), ("read", 3), ("recvfrom", 2), ("sendmsg", 1)):
            self.assertAlmostEqual(found.get(name, 0), count, delta=0.05, msg=name)
