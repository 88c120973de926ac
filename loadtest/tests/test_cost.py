"""What cost counts, from what strace, callgrind_annotate and the kernel write, and alive: there the system
calls of a request, which repeat as speeds do not, are within the budgets. And what cost makes of it."""

import os
import types
import unittest
from collections import Counter

import programs
from lib import Trouble, subjects
from lib.measuring import callgrind, calls, idle, machine, processes
from lib.reporting import table
from lib.subjects import peers, redis, servers

cost = programs.load("cost")
tearDownModule = processes.end_all

FILE, NO_REDIS = "/index.html", "unix:/not/there"
READS = 3 + 3  # of a client, and of Redis' replies
AGAIN = "-1 EAGAIN (Resource temporarily unavailable)"


def made(requests, **counts):
    return Counter({calls.REQUEST: requests, **counts})


class SystemCalls(unittest.TestCase):
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


PRINTED = """\
33,316,724 (100.0%)  PROGRAM TOTALS (calculated)
26,557,508 (100.0%)  PROGRAM TOTALS
11,338,871 (42.70%)  common/guestbook.c:guestbook_render [/src/epoll]
11,320,171 (42.63%)  /src/common/template.c:template_render
 8,683,396 (32.70%)  common/template.c:template_render [/src/epoll]
 4,059,488 (15.29%)  common/http.c:http_parse [/src/epoll]
 2,636,775 ( 9.93%)  common/text.h:template_render
 1,874,099 ( 7.06%)  ???:freeReplyObject [/usr/lib/libhiredis.so.0.14]
 1,196,697 ( 4.51%)  ???:freeReplyObject'2 [/usr/lib/libhiredis.so.0.14]
"""


class Instructions(unittest.TestCase):
    def test_a_function_counts_with_all_that_it_calls(self):
        self.assertEqual(callgrind.parse(PRINTED), {
            callgrind.ALL: 26557508, "template_render": 11320171, "http_parse": 4059488,
            "freeReplyObject": 1874099})

    def test_the_longer_run_s_surplus_by_its_requests(self):
        short = {callgrind.ALL: 10000, "http_parse": 1000, "board_enter": 100, "board_leave": 100}
        long = {callgrind.ALL: 50000, "http_parse": 5000, "template_render": 2000, "board_enter": 300,
                "board_leave": 500}
        found = callgrind.difference((100, short), (300, long))
        self.assertEqual({name: count for name, count in found.items() if count}, {
            callgrind.PARTS["http_parse"]: 20, callgrind.PARTS["template_render"]: 10,
            callgrind.PARTS["board"]: 3, callgrind.REST: 167})


class IdleConnections(unittest.TestCase):
    def test_a_kernel_stack_is_all_of_them_by_all_threads(self):
        self.assertEqual(idle.stack_size("Slab:   9 kB\nKernelStack:        1440 kB\n",
                                         "247.63 135.07 59.94 2/89 28874\n"), 16384)

    def measured(self, name, path=FILE, connections=10):
        log = programs.folder(self) + "/log"
        return idle.measure(lambda: servers.Server(servers.path_of(name), NO_REDIS, None, log), path, connections)

    @programs.needs(servers.path_of("epoll"))
    def test_they_are_kept_and_counted_or_it_is_trouble(self):
        found = self.measured("epoll")
        self.assertEqual(found.connections, 10)
        self.assertEqual(set(found.before), set(idle.FIGURES))
        self.assertGreater(min(found.before.values()), 0)
        with self.assertRaisesRegex(Trouble, "of 10 idle connections it kept [01]$"):
            self.measured("iterative")
        with self.assertRaisesRegex(Trouble, "an answer was 404"):
            self.measured("epoll", "/not-there")

    @programs.needs(peers.FLOOR)
    def test_the_floor_needs_nothing_for_one(self):
        log = programs.folder(self) + "/log"
        found = idle.measure(lambda: peers.Floor(None, log), "/", 50)
        self.assertEqual(found.connections, 50)
        self.assertLess(found.each("pss"), 1024)
        self.assertEqual(found.each("stacks"), 0)


FOUND = {"epoll": {"recvfrom": 1.0, "epoll_wait": 0.0712, "brk": 0.001},
         "iterative": {"recvfrom": 2.0, "close": 1.0}}


class Tables(unittest.TestCase):
    def test_a_row_for_each_name_the_most_frequent_first_and_their_sum(self):
        self.assertEqual(cost.by_name(FOUND), (["call", "epoll", "iterative"], [
            ["recvfrom", "1.00", "2.00"], ["close", "", "1.00"], ["epoll_wait", "0.07", ""],
            ["all", "1.07", "3.00"]]))

    def test_kept_by_one_who_keeps_nobody_has_a_note(self):
        run = types.SimpleNamespace(calls={("iterative", "kept page"): calls.PerRequest(
            FOUND["iterative"], 100)})
        notes = table.Notes()
        self.assertEqual(cost.total_text(run, "iterative", "kept page", notes), "3.00 (1)")
        self.assertEqual(cost.total_text(run, "epoll", "kept page", notes), "-")

    def test_memory_in_kib_a_connection_and_who_cannot_hold_so_many(self):
        zero = dict.fromkeys(idle.FIGURES, 1 << 20)
        some = dict(zero, pss=(1 << 20) + 1024 * 10 * 600)
        run = types.SimpleNamespace(options=types.SimpleNamespace(idle=[100, 600, 1000]),
                                    idle={("epoll", 600): [idle.Idle(600, zero, some)]})
        notes = table.Notes()
        for server, number, row in (
                ("epoll", 600, ["epoll", "600", "10.0", "0.0", "0.0", "10.0", "1.0", "2.0"]),
                ("preforking", 600, ["preforking", "600 (1)", *"-----"]), ("preforking", 100, None),
                ("gunicorn-sync", 100, ["gunicorn-sync", "100 (2)", *"-----"]),
                ("preforking", 1000, None)):
            found = cost.memory_row(run, server, number, notes)
            self.assertEqual(found and found[:len(row)], row and (row if server == "epoll" else row[:7]))
        self.assertIn("100 workers", notes.numbered()[0][1])


@programs.needs("strace", "ab", redis.SERVER, subjects.binary_of("epoll"))
class Alive(unittest.TestCase):
    """The figures are those of the servers as they are: they change if a server does."""

    @classmethod
    def setUpClass(cls):
        cls.folder = programs.folder(cls)
        cls.addClassCleanup(processes.end_all)
        cls.redis = redis.start_private(cls.folder, None)
        cls.redis.seed()

    def opens(self, name):
        return lambda log, under: subjects.open_subject(name, machine.choose_cores().server, log,
                                                        redis=self.redis.where, prefix=under)

    def calls_of(self, name, kind, clients=calls.FEW_AT_ONCE, requests=300):
        """{call: how often a request} of one of the seven, or of the floor."""
        client = machine.choose_cores().client
        with calls.Traced(self.opens(name), os.path.join(self.folder, name), client) as server:
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

    @programs.needs("valgrind")
    def test_every_part_of_a_page_takes_instructions(self):
        parts = callgrind.per_request(self.opens("epoll"), "new page", os.path.join(self.folder, "run"),
                                      machine.choose_cores().client, requests=200)
        for part, count in parts.items():
            self.assertGreater(count, 50, part)
