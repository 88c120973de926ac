"""Swim lanes: from lines as strace writes them, and alive; and what is said when there is none."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import programs
from lib.measuring import machine, processes
from lib.seeing import lanes, picture, trace, xray
from lib.seeing.lanes import ARRIVAL, BYTES, NAP, OTHERS, REDIS, ROOM, SEVERAL, UNKNOWN
from lib.subjects import peers, redis, servers

WHERE = "unix:/tmp/redis.sock"
ACCEPT = "accept4(3, NULL, NULL, SOCK_CLOEXEC) = %d"
HEARS = 'recvfrom(%d, "GET /guestbook HTTP/1.1\\r\\nHost: client-%s\\r\\n\\r\\n", 2048, 0, NULL, NULL) = 46'
MEETS = 'connect(9, {sa_family=AF_UNIX, sun_path="/tmp/redis.sock"}, 110) = 0'
ASKS, LEARNS = 'write(9, "*2\\r\\n$4\\r\\nINCR", 39) = 39', 'read(9, ":1\\r\\n", 16384) = 4'
ANSWERS = "sendmsg(%d, {msg_name=NULL}, MSG_NOSIGNAL) = 2016"
CLOSES = "close(%d) = 0"
FORKS = "clone(child_stack=NULL, flags=SIGCHLD) = %d"
SLEEPS = "epoll_wait(4, [{events=EPOLLIN}], 256, -1) = 1"


def calls(tid, time, *words):
    """The lines of a thread that makes them one after the other. Redis takes 10 ms, all else next to nothing."""
    lines = []
    for each in words:
        seconds = 0.01 if each in (LEARNS, SLEEPS) else 0.00002
        lines.append("%d %.5f %s <%.5f>" % (tid, time, each, seconds))
        time += seconds
    return lines


def page(client, name):
    """What a worker calls that reads a request, asks Redis, and answers."""
    return [HEARS % (client, name), MEETS, *3 * [ASKS, LEARNS], ANSWERS % client, CLOSES % client]


# Two clients, A and B, at one process, at one that makes others, and at a loop, with Redis 10 ms away.
LISTENS = "7 0.9 listen(3, 4096) = 0 <0.1>"
IDLE = "%d 1.1 " + ACCEPT + " <0.0999>"
SAMPLES = {
    "iterative": [LISTENS, IDLE % (7, 5), *calls(7, 1.2, *page(5, "A"), ACCEPT % 5, *page(5, "B")),
                  "7 1.3 accept4(3, NULL, NULL, SOCK_CLOEXEC) = -1 EINTR (Interrupted system call) <0.03>"],
    "forking": [LISTENS, IDLE % (7, 5), *calls(7, 1.2, FORKS % 8, CLOSES % 5),
                *calls(8, 1.20005, *page(5, "A")), "8 1.2303 +++ exited with 0 +++",
                *calls(7, 1.202, ACCEPT % 5, FORKS % 9, CLOSES % 5), "7 1.203 accept4(3,  <unfinished ...>",
                *calls(9, 1.20205, *page(5, "B")), "9 1.2323 +++ exited with 0 +++"],
    "epoll": [LISTENS, *calls(7, 1.0, "epoll_create1(EPOLL_CLOEXEC) = 4", "epoll_ctl(4, EPOLL_CTL_ADD, 3, {}) = 0"),
              "7 1.1 " + SLEEPS + " <0.0999>",
              *calls(7, 1.2, ACCEPT % 5, HEARS % (5, "A"), ACCEPT % 6, HEARS % (6, "B"), MEETS,
                     "epoll_ctl(4, EPOLL_CTL_ADD, 9, {}) = 0",
                     *3 * [ASKS, SLEEPS, 'read(9, ":1\\r\\n:2\\r\\n", 65536) = 8'],
                     ANSWERS % 5, ANSWERS % 6, CLOSES % 5, CLOSES % 6, SLEEPS)]}
NAMES = list(SAMPLES)


def watched(*lines, where=WHERE):
    return lanes.build(*trace.read(lines), where)


def sample(name):
    return watched(*SAMPLES[name])


def shot_of(name):
    """As if the clients had connected when they were accepted, and left when they were answered."""
    seen = sample(name)
    guests = []
    for client in seen.clients:
        end = max(bar.end for lane in seen.lanes for bar in lane.bars if client in bar.serves)
        guests.append(xray.Guest(client.name, False, [xray.Span(client.accepted, end, "200")]))
    return xray.Shot(name, guests, seen, xray.first(guests), xray.total(guests), 0.031)


def kinds(*lines, **options):
    """Of the calls of the thread whose first call is the first."""
    return [bar.kind for bar in watched(*lines, **options).lanes[0].bars]


class Lines(unittest.TestCase):
    def test_what_is_known_of_a_call(self):
        """Also of one in two halves, of one that was cut off in its first line, and of half a line."""
        for lines, known in (
                (['7 10.250000 recvfrom(7, "a) = 3 <1", 2048, 0) = 98 <0.500000>'],
                 [trace.Call(7, "recvfrom", '7, "a) = 3 <1", 2048, 0', 98, None, 10.25, 10.75)]),
                (["7 1.000000 accept4(6,  <unfinished ...>", "8 1.250000 close(7)        = 0 <0.125000>",
                  "7 1.500000 <... accept4 resumed>NULL, NULL, 0) = 7 <0.500000>"],
                 [trace.Call(7, "accept4", "6, NULL, NULL, 0", 7, None, 1.0, 1.5),
                  trace.Call(8, "close", "7", 0, None, 1.25, 1.375)]),
                (["7 1.0 read(8,  <unfinished ...>) = ?"], [trace.Call(7, "read", "8, ", None, None, 1.0, None)]),
                (["7 1.0 accept4(6, NULL, NULL, 0) = -1 EAGAIN (Try again) <0.25>"],
                 [trace.Call(7, "accept4", "6, NULL, NULL, 0", -1, "EAGAIN", 1.0, 1.25, "(Try again)")]),
                (["7 1.000000 clos", "", "7 2.0"], [])):
            self.assertEqual(trace.read(lines), (known, {}))

    def test_a_thread_that_dies_in_a_call_ends_it(self):
        for last in ([], ["7 2.000000 <... futex resumed>) = ?"],
                     ["7 2.000000 <... futex resumed> <unfinished ...>) = ?"]):
            calls, ends = trace.read(["7 1.000000 futex(0x5, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>",
                                      *last, "7 2.500000 +++ killed by SIGKILL +++"])
            self.assertEqual([(call.name, call.result, call.end) for call in calls], [("futex", None, 2.5)])
            self.assertEqual(ends, {7: trace.End(2.5, "killed by SIGKILL")})


class Kinds(unittest.TestCase):
    ACCEPTED = "7 1.0 accept4(3, NULL, NULL, 0) = 5 <0.1>"
    CASES = {
        "what was accepted is a client": (
            [ACCEPTED, '7 2.0 recvfrom(5, "", 9, 0) = 0 <0.1>', '7 3.0 write(5, "x", 1) = 1 <0.1>'],
            [ARRIVAL, BYTES, ROOM]),
        "a descriptor that was closed is unknown": (
            [ACCEPTED, "7 2.0 close(5) = 0 <0.1>", '7 3.0 read(5, "", 9) = 0 <0.1>'], [ARRIVAL, None, UNKNOWN]),
        "and so is a call that nobody knows": (["7 1.0 io_uring_enter(4, 1, 1, 0) = 1 <0.1>"], [UNKNOWN]),
        "other threads and processes": (
            ["7 1.0 futex(0x1, FUTEX_WAIT_PRIVATE, 2, NULL) = 0 <0.1>", "7 2.0 wait4(-1, NULL, 0, NULL) = 9 <0.1>",
             "7 3.0 pipe2([3, 4], 0) = 0 <0.1>", '7 4.0 read(3, "", 1) = 1 <0.1>',
             "7 5.0 poll([{fd=3, events=POLLIN}], 1, 9) = 0 <0.1>"], [OTHERS, OTHERS, None, OTHERS, OTHERS]),
        "who sleeps for a time": (
            ["7 1.0 nanosleep({tv_sec=0, tv_nsec=20000}, NULL) = 0 <0.1>",
             "7 2.0 clock_nanosleep(CLOCK_REALTIME, 0, {tv_sec=1, tv_nsec=0}, NULL) = 0 <1.0>",
             "7 4.0 sched_yield() = 0 <0.1>", "7 5.0 madvise(0x7f, 4096, MADV_FREE) = 0 <0.1>",
             "7 6.0 pselect6(0, NULL, NULL, NULL, {tv_sec=1, tv_nsec=0}, NULL) = 0 <1.0>"], [NAP, NAP, NAP, None, NAP])}

    def test_what_a_call_waits_for(self):
        for what, (lines, found) in self.CASES.items():
            with self.subTest(what):
                self.assertEqual(kinds(*lines), found)
        for name in ("nanosleep", "clock_nanosleep", "sched_yield"):
            self.assertTrue(re.fullmatch(trace.TRACED, name), name)

    def test_what_was_connected_to_redis_is_redis(self):
        for where, address in ((WHERE, 'sun_path="/tmp/redis.sock"'), ("localhost:63", "sin_port=htons(63)"),
                               ("unix:/a b/c", 'sun_path="/a b/c"')):
            self.assertEqual(kinds("7 1.0 connect(4, {%s}, 9) = 0 <0.1>" % address,
                                   '7 2.0 read(4, "", 9) = 0 <0.1>', where=where), [REDIS, REDIS])

    def test_a_call_that_is_asked_not_to_wait_does_not(self):
        self.assertEqual(set(kinds(
            self.ACCEPTED, "7 2.0 recvfrom(5, 0x1, 1, MSG_PEEK|MSG_DONTWAIT) = -1 EAGAIN (x) <0.1>",
            "7 3.0 wait4(-1, NULL, WNOHANG, NULL) = 0 <0.1>", "7 4.0 futex(0x1, FUTEX_WAKE, 1) = 0 <0.1>",
            "7 5.0 poll([{fd=5, events=POLLIN}], 1, 0) = 0 (Timeout) <0.1>",
            "7 6.0 fcntl(5, F_SETFL, O_RDWR|O_NONBLOCK) = 0 <0.1>", '7 7.0 read(5, "", 1) = 0 <0.1>')[1:]),
            {None})
        for number, kind in ((1, None), (0, BYTES)):  # Python's way
            self.assertEqual(kinds(self.ACCEPTED, "7 6.0 ioctl(5, FIONBIO, [%d]) = 0 <0.1>" % number,
                                   '7 7.0 read(5, "", 1) = 0 <0.1>')[-1], kind)

    def test_poll_waits_for_what_it_names(self):
        seen = watched("7 1.0 listen(3, 9) = 0 <0.1>",
                       "7 2.0 poll([{fd=3, events=POLLIN}], 1, -1) = 1 <0.1>",
                       "7 3.0 accept4(3, NULL, NULL, 0) = 5 <0.1>",
                       '7 4.0 recvfrom(5, "GET / HTTP/1.1\\r\\nHost: client-A", 9, 0) = 30 <0.1>',
                       "7 5.0 poll([{fd=3, events=POLLIN}, {fd=5, events=POLLIN}], 2, -1) = 1 <0.1>")
        self.assertEqual([bar.kind for bar in seen.lanes[0].bars][1::3], [ARRIVAL, SEVERAL])
        self.assertIn("client A, the listener", lanes.awaited(seen.lanes[0].bars[-1]))

    def test_epoll_waits_for_what_it_was_given(self):
        seen = watched(self.ACCEPTED, "7 2.0 epoll_create1(0) = 4 <0.1>",
                       "7 3.0 epoll_ctl(4, EPOLL_CTL_ADD, 5, {events=EPOLLIN}) = 0 <0.1>",
                       "7 4.0 epoll_wait(4, [], 9, 100) = 0 <0.1>",
                       "7 5.0 epoll_ctl(4, EPOLL_CTL_ADD, 3, {events=EPOLLIN}) = 0 <0.1>",
                       "7 6.0 epoll_wait(4, [], 9, 100) = 0 <0.1>")
        self.assertEqual([bar.kind for bar in seen.lanes[0].bars][3::2], [BYTES, SEVERAL])

    def test_a_child_has_what_its_parent_had(self):
        seen = watched(self.ACCEPTED, "7 2.0 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
                       '8 2.1 read(5, "", 1) = 0 <0.1>', "7 2.2 <... clone resumed>) = 8 <0.2>",
                       "7 3.0 close(5) = 0 <0.1>", '8 4.0 read(5, "", 1) = 0 <0.1>')
        self.assertEqual([(lane.name, lane.pid) for lane in seen.lanes], [("parent", 7), ("child 1", 8)])
        self.assertEqual([bar.kind for bar in seen.lanes[1].bars], [BYTES, BYTES])

    def test_threads_share_what_they_have(self):
        seen = watched("7 1.0 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}) = 8 <0.1>",
                       "7 2.0 accept4(3, NULL, NULL, 0) = 5 <0.1>", '8 4.0 read(5, "", 1) = 0 <0.1>')
        self.assertEqual([(lane.name, lane.pid) for lane in seen.lanes], [("main thread", 7), ("thread 1", 7)])
        self.assertEqual(seen.lanes[1].bars[0].kind, BYTES)


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shots = list(map(shot_of, NAMES))
        cls.plan = xray.Plan(clients=2)

    def test_the_table_counts_processes_and_threads(self):
        header, rows = programs.load("xray").totals(list(map(shot_of, NAMES)))
        self.assertEqual(header[-2:], ["processes", "threads"])
        self.assertEqual([row[-2:] for row in rows], [["1", "1"], ["3", "3"], ["1", "1"]])

    def test_a_part_of_it_is_cut_and_named_anew(self):
        seen = sample("forking")
        part = seen.between(seen.clients[1].accepted + 0.005, seen.clients[1].accepted + 0.006)
        self.assertEqual([lane.name for lane in part.lanes], ["parent", "child 1", "child 2"])
        for lane in part.lanes:
            self.assertEqual(len(lane.bars), 1)
            self.assertAlmostEqual(lane.bars[0].end - lane.bars[0].start, 0.001, 5)

    def test_are_well_formed_and_have_every_server(self):
        for svg in (picture.draw(self.shots, self.plan), picture.draw(self.shots, self.plan, moving=True),
                    *(picture.draw([shot], self.plan) for shot in self.shots)):
            xml.etree.ElementTree.fromstring(svg)
        svg = picture.draw(self.shots, self.plan)
        for shot in self.shots:
            self.assertRegex(svg, r">%s<tspan[^>]*>\d+ ms" % shot.name)
        self.assertEqual(svg.count('class="answer"'), 2 * len(self.shots) + 1)  # and the legend

    def test_break_a_long_title_into_lines(self):
        plan = xray.Plan(clients=16, delay=30, work=10, kept=True, slow=True, crash=True)
        titles = re.findall(r'<text class="name" x="16[^>]*>([^<]*)</text>', picture.draw(self.shots, plan))
        self.assertEqual(" ".join(titles), str(plan))
        self.assertLessEqual(max(map(len, titles)), picture.TITLE_LETTERS)

    def test_share_one_scale(self):
        ends = {svg_x: None for svg_x in re.findall(r'<circle class="answer" cx="([\d.]+)"',
                                                    picture.draw(self.shots, self.plan))}
        iterative, others = max(map(float, ends)), sorted(map(float, ends))[1:-2]
        self.assertTrue(all(x < (iterative + picture.LEFT) * 0.65 for x in others), ends)

    def test_say_what_cannot_be_seen_and_what_tracing_cost(self):
        svg = picture.draw(self.shots, self.plan)
        for words in ("running, or ready to run", "a trace of calls cannot", "(untraced: 31 ms)"):
            self.assertIn(words, svg)

    def test_draw_the_unknown_as_unknown(self):
        seen = watched("7 1.0 accept4(3, NULL, NULL, 0) = 5 <0.1>",
                       "7 1.2 io_uring_enter(4, 1, 1, 0) = 1 <0.5>")
        guests = [xray.Guest("A", False, [xray.Span(1.1, 1.8, "200")])]
        svg = picture.draw([xray.Shot("it", guests, seen, 1.1, 0.7, None)], self.plan)
        self.assertRegex(svg, r'<rect class="unknown"[^>]*><title>io_uring_enter\(4, 1, 1, 0\) = 1\n')
        self.assertIn("in a call of another kind", svg)

    def test_count_threads_that_had_nothing_to_do_if_there_are_many(self):
        guests = [xray.Guest("A", False, [xray.Span(1.1, 1.8, "200")])]
        for idle, drawn in ((2, True), (3, False)):
            seen = watched("7 0.1 listen(3, 9) = 0 <0.1>", "7 1.0 accept4(3, NULL, NULL, 0) = 5 <0.1>",
                           '7 1.2 recvfrom(5, "", 9, 0) = 1 <0.5>',
                           *("%d 0.5 futex(0x1, FUTEX_WAIT_PRIVATE, 2, NULL) = 0 <2.0>" % (8 + at)
                             for at in range(idle)))
            shot = xray.Shot("it", guests, seen, 1.1, 0.7, None)
            for text in (picture.draw([shot], self.plan), "\n".join(picture.in_letters(shot))):
                self.assertEqual("child %d" % idle in text, drawn)
                self.assertEqual("and 3 more, which" in text, not drawn)

    def test_have_a_letter_for_each_slice_of_the_time_in_a_terminal(self):
        for name, letter in (("iterative", "R"), ("epoll", r"\*")):
            row = picture.in_letters(shot_of(name))[0]
            self.assertRegex(row, "^ +process  [#R]{0,3}%s{10}\\S+$" % letter)
            self.assertEqual(len(row), 20 + 2 + picture.COLUMNS)
        first, second = picture.in_letters(shot_of("forking"))[1:3]
        self.assertRegex(first, r"^ +child 1  #*R{40,}\S* +$")  # it ended before the second
        self.assertRegex(second, r"^ +child 2   +#*R{40,}\S*$")

    def test_move_once_for_five_seconds_and_not_for_those_who_want_none(self):
        svg = picture.draw(self.shots, self.plan, moving=True)
        self.assertIn("animation: pass 5s linear;", svg)
        self.assertNotIn("infinite", svg)
        self.assertIn("prefers-reduced-motion: reduce", svg)

    def test_a_moving_one_shows_its_end_where_nothing_moves_and_fits_on_a_screen(self):
        svg = picture.draw(self.shots, self.plan, moving=True)
        self.assertIn("transform: translateX(%dpx);" % (picture.RIGHT - picture.LEFT + 4), svg)
        self.assertLessEqual(int(re.search(r' height="(\d+)"', svg)[1]), 480)

    def test_a_name_is_text(self):
        shot = self.shots[0]._replace(name='<my "own" & server>')
        xml.etree.ElementTree.fromstring(picture.draw([shot], self.plan))
        self.assertIn('<my \\"own\\" & server>: process', picture.trace_events([shot]))

    def test_trace_events_name_all_and_begin_at_zero(self):
        events = json.loads(picture.trace_events(self.shots))["traceEvents"]
        named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
        calls = [event for event in events if event["ph"] == "X"]
        self.assertEqual({(event["pid"], event["tid"]) for event in calls}, named)
        self.assertTrue(all(event["ts"] >= 0 and event["dur"] >= 0 for event in calls))
        names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
        for name in ("epoll: process", "forking: child 2", "iterative: clients"):
            self.assertIn(name, names)


@programs.needs("strace", "ss", redis.SERVER, servers.path_of("preforking"))
class Alive(unittest.TestCase):
    """The least of it: a look, a Redis, a server that is nobody's."""

    @classmethod
    def setUpClass(cls):
        cls.folder = programs.folder(cls)

    def program(self, text):
        path = os.path.join(self.folder, "my server")
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o700)
        return shlex.quote(path)

    def run_xray(self, server, **environment):
        """Its status; and its last line, or one of the pictures."""
        environment = {"QUICK": "1", "CLIENTS": "2", "SERVER": server, **environment}
        into = os.path.join(self.folder, "results")
        done = programs.run("xray", "--into", into, stderr=subprocess.PIPE, timeout=60,
                            env={**os.environ, **environment})
        if done.returncode:
            return done.returncode, done.stderr.strip().splitlines()[-1]
        path = os.path.join(into, peers.name_of(server) + ".svg")
        with open(path, encoding="utf-8") as file:
            return 0, file.read()

    def test_the_graders_picture(self):
        store = redis.start_private(self.folder, None)
        self.addCleanup(processes.end_all)
        svg = xray.lanes_svg(os.path.join(machine.SERVERS, "preforking"), store, self.folder)
        self.assertEqual(svg.count('class="answer"'), 4 + 1)
        self.assertGreaterEqual(svg.count('<rect class="redis"'), 4 * 3)

    def test_a_server_of_ones_own(self):
        self.program("exec %s '%s/another.py' \"$*\"\n" % (sys.executable, programs.HERE))
        begin = "cd %s && './my server'" % shlex.quote(self.folder)
        for line, asks in ((begin, True), (begin + " {port} {redis_port}; true", True),
                           (begin + " #", False)):
            with self.subTest(line=line):
                status, svg = self.run_xray(line)
                self.assertEqual((status, svg.count('class="answer"')), (0, 2 + 1), svg)
                self.assertEqual('<rect class="redis"' in svg, asks)
                self.assertIn(">main thread<", svg)  # and not "child 1", of a shell

    def test_a_worker_that_is_killed_takes_only_its_client_along(self):
        _, svg = self.run_xray("forking", CRASH="1", DELAY="30")
        self.assertIn("1 of 2 answered", svg)
        self.assertEqual(svg.count('<path class="bad"'), 2)  # the client, and the child

    def test_a_silent_client_holds_up_the_only_process(self):
        _, svg = self.run_xray("iterative", SLOW="1")
        self.assertIn("1 of 2 answered", svg)
        self.assertRegex(svg, r"waits for a client\u2019s bytes \(client A\)\n[1-3]\d\d ms")

    def test_a_kept_connection_is_asked_twice(self):
        _, svg = self.run_xray("epoll", KEPT="1")
        self.assertEqual(svg.count('class="answer"'), 4 + 1)

    def test_one_line_says_what_to_do(self):
        bin_ = os.path.join(self.folder, "bin")
        os.mkdir(bin_)
        os.symlink(sys.executable, os.path.join(bin_, "python3"))
        for tool in ("ss", redis.SERVER, redis.CLI):
            os.symlink(shutil.which(tool), os.path.join(bin_, tool))
        _, last = self.run_xray("epoll", PATH=bin_)
        self.assertRegex(last, "^xray: missing: strace. `make deps` brings it$")
        with open(os.path.join(bin_, "strace"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho 'strace: ptrace: Operation not permitted' >&2; exit 1\n")
        os.chmod(os.path.join(bin_, "strace"), 0o700)
        _, last = self.run_xray("epoll", PATH=bin_)
        self.assertRegex(last, "^xray: .*not permitted. In a container: .*--cap-add=SYS_PTRACE$")
        for text, work, words in (("", "", "nothing did not start: .*not found$"),
                                  ("echo no such luck >&2; exit 1\n", "", "no such luck; .*{port}"),
                                  ("exit 0\n", "5", "has no option --work")):
            status, last = self.run_xray(self.program(text) if text else "nothing", WORK=work)
            self.assertEqual(status, 1)
            self.assertRegex(last, "^xray: .*" + words)
