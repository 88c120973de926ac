"""Swim lanes, and which of the seven a server is: from lines as strace writes them, and alive."""

import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import programs
import calls
import redis
import top
from lib.measuring import machine
from lib.seeing import lanes, picture, traits, xray
from lib.seeing.lanes import ARRIVAL, BYTES, NAP, OTHERS, REDIS, ROOM, SEVERAL, UNKNOWN
from lib.subjects import companions, peers

WHERE = "unix:/tmp/redis.sock"
COMPANIONS = {"node": "7", "asyncio": "7", "gunicorn-sync": "3", "gunicorn-gthread": "35", "php": "373", "puma": "375",
              "go": "74", "java": "5", "erlang": "74"}  # the chapters that are named, in their order
SCENE = traits.Scene(since=1, begin=2, moment=5, words="sent a line", held=2, answered=2)
FORK = "7 %s clone(child_stack=NULL, flags=SIGCHLD) = %d <0.01>"
THREAD = "7 %s clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}) = %d <0.01>"
LISTEN = "7 0.1 listen(3, 9) = 0 <0.01>"
LOOP = [LISTEN, "7 0.2 epoll_create1(0) = 9 <0.01>", "7 0.3 epoll_ctl(9, EPOLL_CTL_ADD, 3, {}) = 0 <0.01>"]
ASKS = ['%d 1.1 connect(4, {sun_path="/tmp/redis.sock"}, 9) = 0 <0.1>', '%d 1.5 read(4, "", 9) = 1 <0.01>']


def accept(tid, time, client):
    return "%d %s accept4(3, NULL, NULL, 0) = %d <0.01>" % (tid, time, client)


def recv(tid, client, begin=4.0, seconds=2.0, text="GET"):
    return '%d %s recvfrom(%d, "%s", 9, 0) = 3 <%s>' % (tid, begin, client, text, seconds)


def add(tid, client, time=3.0):
    return "%d %s epoll_ctl(9, EPOLL_CTL_ADD, %d, {}) = 0 <0.01>" % (tid, time, client)


def wait(tid):
    return "%d 4.0 epoll_wait(9, [], 9, -1) = 1 <2.0>" % tid


def asks(tid):
    return [line % tid for line in ASKS]


def watched(*lines, where=WHERE):
    return lanes.build(*calls.read(lines), where)


ACCEPTED, HOST = accept(7, 1.0, 5), "Host: client-%s"
WAITS = {  # each kind of waiting, for the calls one after the other
    "what was accepted is a client": (
        [ACCEPTED, recv(7, 5, 2.0), '7 5.0 write(5, "x", 1) = 1 <0.1>'], [ARRIVAL, BYTES, ROOM]),
    "what was closed is unknown": (
        [ACCEPTED, "7 2.0 close(5) = 0 <0.1>", '7 3.0 read(5, "", 9) = 0 <0.1>'], [ARRIVAL, None, UNKNOWN]),
    "and so is a call that nobody knows": (["7 1.0 io_uring_enter(4, 1, 1, 0) = 1 <0.1>"], [UNKNOWN]),
    "what was connected to Redis is Redis": (asks(7), [REDIS, REDIS]),
    "other threads and processes": (
        ["7 1.0 futex(0x1, FUTEX_WAIT_PRIVATE, 2, NULL) = 0 <0.1>", "7 2.0 wait4(-1, NULL, 0, NULL) = 9 <0.1>",
         "7 3.0 pipe2([3, 4], 0) = 0 <0.1>", '7 4.0 read(3, "", 1) = 1 <0.1>'], [OTHERS, OTHERS, None, OTHERS]),
    "who sleeps for a time": (
        ["7 1.0 nanosleep({tv_sec=0, tv_nsec=20000}, NULL) = 0 <0.1>", "7 4.0 sched_yield() = 0 <0.1>",
         "7 6.0 pselect6(0, NULL, NULL, NULL, {tv_sec=1, tv_nsec=0}, NULL) = 0 <1.0>"], [NAP, NAP, NAP]),
    "a call that is asked not to wait does not": (
        [ACCEPTED, "7 2.0 recvfrom(5, 0x1, 1, MSG_PEEK|MSG_DONTWAIT) = -1 EAGAIN (x) <0.1>",
         "7 3.0 wait4(-1, NULL, WNOHANG, NULL) = 0 <0.1>", "7 5.0 poll([{fd=5, events=POLLIN}], 1, 0) = 0 (Timeout) <0.1>",
         "7 6.0 fcntl(5, F_SETFL, O_RDWR|O_NONBLOCK) = 0 <0.1>", '7 7.0 read(5, "", 1) = 0 <0.1>'],
        [ARRIVAL, None, None, None, None, None]),
    "poll waits for what it names": (
        [LISTEN, "7 0.5 poll([{fd=3, events=POLLIN}], 1, -1) = 1 <0.1>", ACCEPTED, recv(7, 5, 2.0),
         "7 5.0 poll([{fd=3, events=POLLIN}, {fd=5, events=POLLIN}], 2, -1) = 1 <0.1>"],
        [None, ARRIVAL, ARRIVAL, BYTES, SEVERAL]),
    "epoll waits for what it was given": (
        [*LOOP, ACCEPTED, add(7, 5), wait(7)], [None, None, None, ARRIVAL, None, SEVERAL]),
    "a child has what its parent had": (
        [ACCEPTED, FORK % (2.0, 8), "7 3.0 close(5) = 0 <0.1>", recv(8, 5)], [ARRIVAL, None, None, BYTES]),
    "threads share what they have": (
        [THREAD % (0.5, 8), ACCEPTED, recv(8, 5)], [None, ARRIVAL, BYTES])}


class Lines(unittest.TestCase):
    def test_what_a_call_waits_for(self):
        for what, (lines, kinds) in WAITS.items():
            with self.subTest(what):
                self.assertEqual([bar.kind for lane in watched(*lines).lanes for bar in lane.bars], kinds)

    def test_a_thread_serves_nobody_any_more_whom_another_has_closed(self):
        seen = watched(LISTEN, THREAD % ("0.2", 8), THREAD % ("0.3", 9), accept(7, 1.0, 5), recv(8, 5, 1.1, 0.1, HOST % "A"),
                       "9 1.5 close(5) = 0 <0.01>", accept(7, 2.0, 5), recv(8, 5, 2.1, 0.1, HOST % "B"),
                       recv(8, 6, 3.0), accept(7, 4.0, 7), recv(9, 7, 4.1, 0.1, HOST % "C"), recv(8, 6, 5.0))
        for part, served in ((seen, ["A", "B", "B", "B"]), (seen.between(3.5, 6), ["", ""])):  # B came before that time
            bars = next(lane.bars for lane in part.lanes if lane.tid == 8)
            self.assertEqual(["".join(each.name for each in bar.serves) for bar in bars], served)

    def test_two_of_the_seven_at_once(self):
        """Two clients, 5 and 6, have sent half a request at second 5. The server's first process is 7."""
        loop = [*LOOP, accept(7, 2.1, 5), accept(7, 2.2, 6), add(7, 5), add(7, 6), wait(7), THREAD % (0.4, 8)]
        of_7 = [LISTEN]
        for pid in (8, 9):
            of_7 += [FORK % (0.01 * pid + 0.2, pid), "%d 0.5 epoll_create1(0) = 9 <0.01>" % pid, add(pid, 3, 0.6),
                     accept(pid, 2.1, 5), add(pid, 5), wait(pid)]
        for answer, lines in (
                ("3 of 5", [LISTEN, FORK % (0.2, 8), (THREAD % (0.3, 9)).replace("7", "8", 1), accept(8, 2.1, 5),
                            accept(9, 2.2, 6), recv(8, 5), recv(9, 6)]),
                ("5 with an acceptor", [LISTEN, THREAD % (0.2, 8), THREAD % (0.3, 9), accept(7, 2.1, 5), accept(7, 2.2, 6),
                                        recv(8, 5), recv(9, 6)]),
                ("3 of 7", of_7),
                ("7 in front of 5", [*loop, *asks(8)]),
                ("7 below 4", [*loop, recv(8, 5, 3.0, 0.01)]),
                (None, [LISTEN, "7 2.1 io_uring_enter(4, 1, 1, 0) = 1 <5.0>"])):
            with self.subTest(answer):
                seen = watched(*lines)
                verdict = traits.judge(seen, {lane.pid for lane in seen.lanes}, SCENE)
                self.assertEqual(verdict.answer, answer, verdict.evidence)

    def test_the_companions_page_says_the_same_as_we_do(self):
        text = machine.read(os.path.join(machine.TOP, "loadtest/companions/README.md"))
        found = {name: "".join(re.findall(r"\d", says)) for name, says in re.findall(
            r"^\| \[([\w-]+)\]\(.*\| ([^|]*) \|$", text, re.MULTILINE)}
        self.assertEqual(found, COMPANIONS)


class Pictures(unittest.TestCase):
    def test_of_one_that_asks_redis_and_one_that_does_not(self):
        hears = '7 1.25 recvfrom(5, "GET / HTTP/1.1\\r\\nHost: client-A\\r\\n", 9, 0) = 30 <0.05>'
        answers = ["7 1.9 sendmsg(5, {}, 0) = 9 <0.01>", "7 1.95 close(5) = 0 <0.01>"]
        guests = [xray.Guest("A", 1.0, 1.92, "200")]
        bare, asked = (xray.Shot(name, guests, watched(LISTEN, ACCEPTED, hears, *more, *answers), 1.0, 0.92, 0.9)
                       for name, more in (('<my "own">', []), ("two", asks(7))))
        plan = xray.Plan(clients=1)
        for moving in (False, True):
            svg = picture.draw([bare, asked], plan, moving)
            xml.etree.ElementTree.fromstring(svg)
            self.assertEqual(svg.count('class="answer"'), 2 + 1)  # and the legend
            self.assertIn("1 client at once, Redis 10 ms away", svg)
            self.assertIn("waits for Redis", svg)
        self.assertNotIn("Redis", picture.draw([bare], plan))


@programs.needs("strace", "ss", redis.SERVER, top.path_of("epoll"))
class Alive(unittest.TestCase):
    def which(self, server, chapters, url="/"):
        """The chapters that the first line names, in their order."""
        done = programs.run("which", "--into", self.folder, "--server", server, "--url", url,
                            stderr=subprocess.PIPE, timeout=90)
        first = (done.stdout or done.stderr).splitlines()[0]
        self.assertEqual((done.returncode, re.findall(r"hapter (\d)", first)), (int(not chapters), [*chapters]),
                         done.stdout + done.stderr)

    def setUp(self):
        self.folder = programs.folder(self)
        os.chmod(self.folder, 0o755)

    def test_the_seven_and_the_companions(self):
        """PHP's nginx is one process beside its master. Erlang's and Go's runtimes hide a loop."""
        for name, chapters in [*zip(top.BOOK, "1234567"), *COMPANIONS.items()]:
            with self.subTest(name):
                if name in COMPANIONS and companions.missing(name):
                    self.skipTest("%s: %s" % (name, companions.missing(name)))
                self.which(name, chapters, "/guestbook")

    def test_servers_of_others(self):
        accepts = "%s -c 'import socket\ns = socket.create_server((\"127.0.0.1\", {port}))\nwhile True: %s'"
        self.which("cd %s; exec %s --port {port} --save ''" % (self.folder, redis.SERVER), "7")
        self.which("cd public; exec %s -m http.server {port}" % sys.executable, "4")
        self.which(accepts % (sys.executable, "s.accept()[0].close()"), "")
        if not peers.missing("nginx"):
            nginx = peers.Peer("nginx", os.path.join(machine.TOP, "public"), None, os.path.join(self.folder, "log"))
            self.which(nginx._line, "37", "/index.html")

    def test_xray_draws_one_of_ones_own(self):
        done = programs.run("xray", "--into", self.folder, "--clients", "2", "--server", "%s '%s/another.py' {port} {redis_port}; true"
                            % (sys.executable, programs.HERE), timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        svg = machine.read(os.path.join(self.folder, "python3.svg"))
        self.assertEqual(svg.count('class="answer"'), 2 + 1, svg)
        self.assertIn('<rect class="redis"', svg)
        self.assertIn(">main thread<", svg)  # and not "child 1", of a shell


if __name__ == "__main__":
    unittest.main()
