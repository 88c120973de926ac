"""Which of the seven a server is: from lines as strace writes them, and alive."""

import os
import re
import subprocess
import sys
import unittest

import programs
from lib.measuring import machine
from lib.seeing import lanes, trace, traits
from lib.subjects import companions, peers, redis, servers

WHERE = "unix:/tmp/redis.sock"
COMPANIONS = {"node": "7", "asyncio": "7", "gunicorn-sync": "3", "gunicorn-gthread": "35", "php": "373", "puma": "375",
              "go": "74", "java": "5", "erlang": "74"}  # the chapters that are named, in their order
SCENE = traits.Scene(since=1, begin=2, moment=5, words="sent a line", held=2, answered=2)
REDIS = '%d 1.1 connect(4, {sun_path="/tmp/redis.sock"}, 9) = 0 <0.1>'
FORK = "7 %s clone(child_stack=NULL, flags=SIGCHLD) = %d <0.01>"
THREAD = "7 %s clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}) = %d <0.01>"
LISTEN = "7 0.1 listen(3, 9) = 0 <0.01>"
LOOP = [LISTEN, "7 0.2 epoll_create1(0) = 9 <0.01>", "7 0.3 epoll_ctl(9, EPOLL_CTL_ADD, 3, {}) = 0 <0.01>"]


def accept(tid, time, client):
    return "%d %s accept4(3, NULL, NULL, 0) = %d <0.01>" % (tid, time, client)


def recv(tid, client, begin=4.0, seconds=2.0):
    return '%d %s recvfrom(%d, "GET", 9, 0) = 3 <%s>' % (tid, begin, client, seconds)


def add(tid, client):
    return "%d 3.0 epoll_ctl(9, EPOLL_CTL_ADD, %d, {}) = 0 <0.01>" % (tid, client)


def wait(tid, instance=9):
    return "%d 4.0 epoll_wait(%d, [], 9, -1) = 1 <2.0>" % (tid, instance)


def judged(*lines, scene=SCENE, own=None):
    watched = lanes.build(*trace.read(lines), WHERE)
    return traits.judge(watched, own or {lane.pid for lane in watched.lanes}, scene)


class Lines(unittest.TestCase):
    """Two clients, 5 and 6, have sent half a request at second 5. The server's first process is 7."""

    def check(self, answer, *lines, says=(), **options):
        verdict = judged(*lines, **options)
        self.assertEqual(verdict.answer, answer, verdict.evidence)
        for words in says:
            self.assertIn(words, verdict.evidence)
        return verdict

    def test_1_one_client_is_waited_for_and_the_other_is_not_accepted(self):
        self.check("1", LISTEN, accept(7, 2.1, 5), recv(7, 5), says=[
            "2 clients sent a line, and no more. The server accepted 1.",
            "In recvfrom, for one of them: 1 process."])

    def test_3_a_single_process_whose_parent_listens(self):
        self.check("3", LISTEN, FORK % (0.2, 8), accept(8, 2.1, 5), recv(8, 5))

    def test_a_parent_that_does_not_listen_has_only_started_the_server(self):
        self.check("1", FORK % (0.05, 8), LISTEN.replace("7", "8", 1), accept(8, 2.1, 5), recv(8, 5))

    def test_4_threads_that_come_and_end_with_their_clients(self):
        lines = [LISTEN, accept(7, 2.1, 5), THREAD % (2.2, 8), accept(7, 2.4, 6), THREAD % (2.5, 9),
                 recv(8, 5), recv(9, 6)]
        self.check("4", *lines, "8 7.0 +++ exited with 0 +++", "9 7.0 +++ exited with 0 +++")
        self.check("5", *lines)  # a pool that grows

    def test_3_of_5(self):
        self.check("3 of 5", LISTEN, FORK % (0.2, 8), (THREAD % (0.3, 9)).replace("7", "8", 1),
                   accept(8, 2.1, 5), accept(9, 2.2, 6), recv(8, 5), recv(9, 6))

    def test_3_of_5_though_one_of_the_processes_got_a_single_client(self):
        self.check("3 of 5", LISTEN, FORK % (0.2, 8), FORK % (0.25, 9), (THREAD % (0.3, 10)).replace("7", "9", 1),
                   accept(8, 2.1, 5), accept(9, 2.2, 5), accept(10, 2.3, 6), recv(8, 5), recv(9, 5), recv(10, 6),
                   says=["The processes differ."])

    def test_6_one_call_that_names_all_clients(self):
        call = "7 4.0 %s = 1 <2.0>"
        for polled in ("poll([{fd=3, events=POLLIN}, {fd=5, events=POLLIN}, {fd=6, events=POLLIN}], 3, -1)",
                       "pselect6(7, [3 5 6], NULL, NULL, NULL, NULL)"):
            self.check("6", LISTEN, accept(7, 2.1, 5), accept(7, 2.2, 6), call % polled)

    def test_7_one_call_for_all_and_threads_that_do_nothing(self):
        verdict = self.check(
            "7", *LOOP, THREAD % (0.4, 8), accept(7, 2.1, 5), add(7, 5), accept(7, 2.2, 6), add(7, 6),
            wait(7), "8 0.5 futex(0x1, FUTEX_WAIT_PRIVATE, 2, NULL) = 0 <9.0>",
            says=["In epoll_wait, for all of them at once: 1 thread.",
                  "In futex, for none of them: 1 thread."])
        self.assertEqual(str(verdict), "Chapter 7, an event loop in epoll.")

    def test_7_though_the_descriptors_were_named_to_epoll_by_io_uring(self):
        self.check("7", LISTEN, accept(7, 2.1, 5), accept(7, 2.2, 6), recv(7, 5, 3.0, 0.01),
                   recv(7, 6, 3.1, 0.01), wait(7))

    def test_3_of_7(self):
        lines = [LISTEN]
        for pid, client in ((8, 5), (9, 5)):
            lines += [FORK % (0.01 * pid + 0.2, pid), "%d 0.5 epoll_create1(0) = 9 <0.01>" % pid,
                      "%d 0.6 epoll_ctl(9, EPOLL_CTL_ADD, 3, {}) = 0 <0.01>" % pid,
                      accept(pid, 2.1, client), add(pid, client), wait(pid)]
        verdict = self.check("3 of 7", *lines)
        self.assertEqual(str(verdict), "Chapter 3, processes made beforehand. Each of them is chapter 7, "
                         "an event loop in epoll.")
        self.check("3 of 7 in front of 3", *lines, REDIS % 10, '10 1.5 read(4, "", 9) = 1 <0.01>',
                   own={7, 8, 9}, says=["Behind it, waited for Redis: 1 process."])
        self.check("3 of 7 in front of 3", *lines, FORK % (0.4, 10), "10 0.5 listen(11, 9) = 0 <0.01>",
                   "10 1.0 accept4(11, NULL, NULL, 0) = 12 <0.01>", REDIS % 10, '10 1.5 read(4, "", 9) = 1 <0.01>')

    def test_a_client_that_another_process_has_accepted(self):
        handed = "%d 2.%d %smsg(4, {msg_control=[{cmsg_type=SCM_RIGHTS, cmsg_data=[%d]}]}, 0) = 1 <0.01>"
        lines = [LISTEN]
        for pid in (8, 9):
            lines += [FORK % (0.01 * pid, pid), accept(7, 2 + pid / 100, pid), handed % (7, pid, "send", pid),
                      handed % (pid, pid, "recv", 20), recv(pid, 20)]
        self.check("3", *lines)

    def test_7_in_front_of_5_whose_threads_ask_redis(self):
        loop = [*LOOP, THREAD % (0.4, 8), accept(7, 2.1, 5), add(7, 5), accept(7, 2.2, 6), add(7, 6),
                wait(7)]
        self.check("7 in front of 5", *loop, REDIS % 8, '8 1.5 read(4, "", 9) = 1 <0.01>',
                   says=["Waited for Redis alone: 1 thread."])
        self.check("7", *loop, REDIS % 7, '7 1.5 read(4, "", 9) = 1 <0.01>')  # and nobody is served

    def test_7_below_4_where_others_read(self):
        self.check("7 below 4", *LOOP, THREAD % (0.4, 8), accept(7, 2.1, 5), add(7, 5),
                   accept(7, 2.2, 6), add(7, 6), wait(7), recv(8, 5, 3.0, 0.01),
                   says=["Read what another had waited for: 1 thread."])

    def test_loops_with_one_client_each_leave_a_doubt(self):
        lines = [LISTEN, THREAD % (0.2, 8)]
        for tid, client, instance in ((7, 5, 20), (8, 6, 21)):
            lines += ["%d 0.5 epoll_create1(0) = %d <0.01>" % (tid, instance),
                      accept(7, 2 + tid / 100, client),
                      "%d 3.0 epoll_ctl(%d, EPOLL_CTL_ADD, %d, {}) = 0 <0.01>" % (tid, instance, client),
                      wait(tid, instance=instance)]
        self.assertTrue(judged(*lines).in_doubt)
        lines += [accept(7, 3.1, 10), "7 3.2 epoll_ctl(20, EPOLL_CTL_ADD, 10, {}) = 0 <0.01>",
                  accept(7, 3.3, 11), "7 3.4 epoll_ctl(21, EPOLL_CTL_ADD, 11, {}) = 0 <0.01>"]
        self.assertFalse(self.check("5 of 7", *lines).in_doubt)

    def test_clients_that_no_call_waits_for_are_told(self):
        self.check("1", LISTEN, accept(7, 2.1, 5), accept(7, 2.2, 6), recv(7, 5),
                   says=["In no call that was seen: 1 of them, perhaps in a queue."])

    def test_nothing_is_named_without_an_answer_or_a_call_that_waits(self):
        one = [LISTEN, accept(7, 2.1, 5), recv(7, 5)]
        verdict = self.check(None, *one, scene=SCENE._replace(answered=0))
        self.assertEqual(str(verdict), "None of the seven can be named.")
        self.check(None, LISTEN, "7 2.1 io_uring_enter(4, 1, 1, 0) = 1 <5.0>")


class Page(unittest.TestCase):
    def test_the_companions_page_says_the_same(self):
        text = machine.read(os.path.join(machine.TOP, "loadtest/companions/README.md"))
        found = {name: "".join(re.findall(r"\d", says)) for name, says in re.findall(
            r"^\| \[([\w-]+)\]\(.*\| ([^|]*) \|$", text, re.MULTILINE)}
        self.assertEqual(found, COMPANIONS)


@programs.needs("strace", "ss", redis.SERVER, servers.path_of("epoll"))
class Alive(unittest.TestCase):
    def setUp(self):
        self.folder = programs.folder(self)
        os.chmod(self.folder, 0o755)

    def which(self, server, url="/"):
        """Its status, and the first line of what it printed."""
        done = programs.run("which", "--into", os.path.join(self.folder, "results"), "--server", server, "--url",
                            url, stderr=subprocess.PIPE, timeout=90)
        return done.returncode, (done.stdout or done.stderr).splitlines()[0], done.stdout

    def check(self, chapters, server, **options):
        """The chapters that the first line names, in their order."""
        status, first, said = self.which(server, **options)
        self.assertEqual((status, re.findall(r"hapter (\d)", first)), (0, chapters), first + said)

    def test_the_seven(self):
        for number, name in enumerate(servers.NAMES, 1):
            with self.subTest(name):
                self.check([str(number)], name, url="/guestbook")

    def test_nginx_and_lighttpd(self):
        for name, command, chapters in (("nginx", "nginx -p . -c own", ["3", "7"]),
                                        ("lighttpd", "lighttpd -D -f own", ["7"])):
            with self.subTest(name):
                if peers.missing(name):
                    self.skipTest(peers.missing(name))
                root = os.path.join(machine.TOP, "public")
                with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                    file.write(peers.filled(name, peers.placeholders("@PORT@", root, self.folder)))
                self.check(chapters, "cd %s; PATH=$PATH:/usr/sbin; sed s/@PORT@/{port}/ %s >own; exec %s" % (
                    self.folder, name, command), url="/index.html")

    def test_the_companions(self):
        """PHP's nginx is one process beside its master. Erlang's and Go's runtimes hide a loop."""
        for name, chapters in COMPANIONS.items():
            with self.subTest(name):
                if companions.missing(name):
                    self.skipTest("%s: %s" % (name, companions.missing(name)))
                self.check([*chapters], name, url="/guestbook")

    def test_redis(self):
        self.check(["7"], "cd %s; exec %s --port {port} --save ''" % (self.folder, redis.SERVER))

    def test_a_server_that_answers_before_it_has_heard_all(self):
        self.check(["1"], "%s -c 'import socket\ns = socket.create_server((\"127.0.0.1\", {port}))\nwhile True:\n"
                   " c = s.accept()[0]\n c.recv(999)\n c.send(b\"HTTP/1.0 200 OK\\r\\n\\r\\n\")\n c.close()'"
                   % sys.executable)

    def test_pythons_threads(self):
        self.check(["4"], "cd public; exec %s -m http.server {port}" % sys.executable)

    def test_a_server_that_answers_nobody(self):
        status, first, said = self.which(
            "%s -c 'import socket\ns = socket.create_server((\"127.0.0.1\", {port}))\n"
            "while True: s.accept()[0].close()'" % sys.executable)
        self.assertEqual((status, first.partition(": ")[2]), (1, "None of the seven can be named."), said)
