"""Instructions, part by part: from what callgrind wrote, and alive."""

import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib import Trouble, callgrind, machine, processes, redis, subjects
from lib.callgrind import Edge, Function

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples", "callgrind")

HTTP = "/src/common/http.c"
PARSE, FIELDS = Function("epoll", HTTP, "http_parse"), Function("epoll", HTTP, "take_fields")
HEAD = Function("epoll", "/src/common/http_head.c", "http_format_head")
TEXT = Function("epoll", "/src/common/text.c", "span_is")
CONN = Function("epoll", "/src/common/conn.c", "conn_advance")
MAIN = Function("epoll", "/src/07_epoll/main.c", "main")
COPY, FORMAT = Function("libc.so.6", "", "memcpy"), Function("libc.so.6", "", "vfprintf")
HIREDIS = Function("libhiredis.so.0.14", "???", "sdscatlen")
START = Function("libc.so.6", "", "(below main)")

# A function of a.c calls twice: from its own line one of a.c; and from code of b.h that was
# compiled into it, one of b.h. Files are named only where they change.
INLINED = """\
positions: line
events: Ir
summary: 100

ob=(1) /bin/prog
fl=(1) /src/a.c
fn=(1) outer
10 5
cfn=(2) helper
calls=3 20
* 30
fi=(2) /src/b.h
+4 7
cfn=(3) from_header
calls=1 5
* 50
fe=(1)
-4 8

fn=(2)
20 30
"""


def sample(name):
    """Three functions' parts of a longer file, whole and as they were."""
    with open(os.path.join(SAMPLES, name), encoding="utf-8") as file:
        return callgrind.parse(file.read())


def profile(own, edges=()):
    result = callgrind.Profile()
    result.own.update(own)
    result.inclusive.update({Edge(*pair): cost for pair, cost in edges})
    return result


class Format(unittest.TestCase):
    def test_own_instructions_are_without_those_of_calls(self):
        found = sample("epoll-200.out")
        send = Function("libhiredis.so.0.14", "???", "redisAsyncCommandArgv")
        self.assertEqual(found.own[send], 9000 + 600 + 4800 + 1800 + 600 + 5400)
        self.assertEqual(sum(cost for edge, cost in found.inclusive.items()
                             if edge.caller == send), 1433427 + 424346 + 72170)

    def test_a_called_function_is_where_it_is_not_where_its_caller_is(self):
        callee = Function("libc.so.6",
                          "./string/../sysdeps/x86_64/multiarch/memmove-vec-unaligned-erms.S",
                          "__memcpy_avx_unaligned_erms")
        caller = Function("libhiredis.so.0.14", "???", "sdscatlen")
        self.assertEqual(sample("epoll-200.out").inclusive[Edge(caller, callee)], 56502)

    def test_inlined_code_is_of_the_function_it_is_in_but_calls_from_its_own_file(self):
        found = callgrind.parse(INLINED)
        outer = Function("prog", "/src/a.c", "outer")
        helper = Function("prog", "/src/a.c", "helper")
        header = Function("prog", "/src/b.h", "from_header")
        self.assertEqual(found.own, {outer: 5 + 7 + 8, helper: 30})
        self.assertEqual(found.inclusive, {Edge(outer, helper): 30, Edge(outer, header): 50})

    def test_a_recursive_function_is_one(self):
        found = callgrind.parse(INLINED.replace("helper", "outer'2"))
        self.assertEqual(found.own, {Function("prog", "/src/a.c", "outer"): 50})

    def test_what_is_no_profile_is_trouble(self):
        for text in ("", "version: 1\n", "==1== Callgrind\n"):
            with self.subTest(text=text), self.assertRaises(Trouble):
                callgrind.parse(text)


class Parts(unittest.TestCase):
    def test_a_function_belongs_to_its_file_and_hiredis_to_itself(self):
        for function, part in ((PARSE, "parser"), (FIELDS, "http"), (HEAD, "http"), (MAIN, "main"),
                               (CONN, "conn"), (HIREDIS, "hiredis"), (COPY, None), (TEXT, None),
                               (START, None)):
            with self.subTest(function=function):
                self.assertEqual(callgrind.part_of(function), part)

    def test_the_c_library_works_for_its_caller(self):
        parts = callgrind.by_part(profile(
            {CONN: 10, HIREDIS: 5, COPY: 7, FORMAT: 2},
            [((CONN, FORMAT), 6), ((FORMAT, COPY), 4), ((HIREDIS, COPY), 3)]))
        self.assertEqual(parts, {"conn": 16, "hiredis": 8, None: 0})

    def test_the_parser_is_all_that_it_calls_and_no_more_of_its_file(self):
        parts = callgrind.by_part(profile(
            {PARSE: 10, FIELDS: 20, HEAD: 40, COPY: 5},
            [((PARSE, FIELDS), 25), ((FIELDS, COPY), 5), ((CONN, HEAD), 40), ((CONN, PARSE), 35)]))
        self.assertEqual(parts, {"parser": 35, "http": 40, None: 0})

    def test_what_starts_main_is_not_charged_with_it(self):
        parts = callgrind.by_part(profile({START: 3, MAIN: 50}, [((START, MAIN), 50)]))
        self.assertEqual(parts, {"main": 50, None: 3})

    def test_the_longer_run_s_surplus_by_its_requests(self):
        parts = callgrind.difference((100, profile({CONN: 1000, HEAD: 50})),
                                     (300, profile({CONN: 5000, HEAD: 50})))
        self.assertEqual(parts, {"conn": 20.0})

    def test_two_runs_of_the_same_length_say_nothing(self):
        with self.assertRaises(Trouble):
            callgrind.difference((100, profile({CONN: 1})), (100, profile({CONN: 2})))

    def test_recorded_a_request_is_parsed_by_the_same_instructions_each_time(self):
        parts = callgrind.difference((200, sample("epoll-200.out")),
                                     (1200, sample("epoll-1200.out")))
        self.assertEqual(round(parts["parser"]), 2544)


@unittest.skipUnless(shutil.which("valgrind") and shutil.which("ab")
                     and os.access(subjects.binary_of("epoll"), os.X_OK),
                     "needs valgrind, ab and epoll")
class Alive(unittest.TestCase):
    def test_a_file_needs_no_redis_and_each_request_is_parsed(self):
        self.addCleanup(processes.end_all)
        with tempfile.TemporaryDirectory() as folder:
            store = redis.start_private(folder, None)

            def open_server(log, under):
                return subjects.open_subject("epoll", None, log, redis=store.where, prefix=under)

            parts = callgrind.per_request(open_server, "kept file", os.path.join(folder, "run"),
                                          machine.choose_cores().client, requests=200)
        self.assertLess(parts.get("hiredis", 0), 50)  # it connects, once
        for part in ("parser", "http", "files", "conn", "main"):
            self.assertGreater(parts[part], 10, part)


if __name__ == "__main__":
    unittest.main()
