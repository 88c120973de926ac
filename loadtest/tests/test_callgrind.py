"""Instructions, part by part: from what callgrind_annotate prints, and alive."""

import os
import unittest

import programs
from lib import subjects
from lib.measuring import callgrind, machine, processes
from lib.subjects import redis

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


class Printed(unittest.TestCase):
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


@programs.needs("valgrind", "ab", subjects.binary_of("epoll"))
class Alive(unittest.TestCase):
    def test_every_part_of_a_page_is_found(self):
        self.addCleanup(processes.end_all)
        folder = programs.folder(self)
        store = redis.start_private(folder, None)

        def open_server(log, under):
            return subjects.open_subject("epoll", None, log, redis=store.where, prefix=under)

        parts = callgrind.per_request(open_server, "new page", os.path.join(folder, "run"),
                                      machine.choose_cores().client, requests=200)
        for part, count in parts.items():
            self.assertGreater(count, 50, part)
