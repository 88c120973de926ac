"""Is each of the seven its own model, and none of the others?"""

import concurrent.futures
import copy
import json
import os
import random
import subprocess
import sys
import tempfile
import types
import unittest

import place
import models
import places
import portrait

SERVERS = os.path.join(places.TOP, os.environ.get("SERVERS", "."))
WITH_WORKERS = {"forking", "preforking", "threading", "prethreading"}
MOST_AS_ANOTHER = 8  # of 25
SEED = str(random.randrange(10000))
THREADS = """for _ in range(int(words["--workers"])):
    threading.Thread(target=%s, daemon=True).start()"""


OUTSIDER = """#!/usr/bin/env python3
import collections, os, select, socket, sys, tempfile, threading
words = dict(zip(sys.argv, sys.argv[1:]))
listener = socket.create_server(("127.0.0.1", 0), backlog=500)
told, waking = socket.socketpair()
handed, clients, own = collections.deque(), {told: None}, threading.local()
watched, polled, command = select.epoll(), select.poll(), tempfile.TemporaryFile()
command.write(b"INCR guestbook:visitors\\r\\n")
command.flush()

def redis():
    if not hasattr(own, "redis"):
        own.redis = socket.socket(socket.AF_UNIX)
        own.redis.connect(words["--redis"][len("unix:"):])
    return own.redis

def answer(client, text):
    path = text.split(b" ")[1:2]
    if path == [b"/guestbook"]:
        if threading.current_thread() is threading.main_thread():
            os.sendfile(redis().fileno(), command.fileno(), 0, 100)  # no call that writes
        else:
            redis().sendall(b"INCR guestbook:visitors\\r\\n")
        redis().recv(100)
    client.sendall(b"HTTP/1.1 %%s\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n" %% (
        b"404 No" if path == [b"/status.json"] else b"200 OK"))
    client.close()

def work_alone():
    while True:
        client, text = listener.accept()[0], b""
        while not text.endswith(b"\\r\\n\\r\\n") and (piece := client.recv(4096)):
            text += piece
        answer(client, text)

def hand_over():
    while True:
        client, done = listener.accept()[0], threading.Event()
        client.recv(1, socket.MSG_PEEK)
        handed.append((client, b"", done))
        waking.send(b"1")
        done.wait()

def hand_over_the_rest():
    while True:
        client, done = listener.accept()[0], threading.Event()
        handed.append((client, client.recv(1), done))
        redis().sendall(b"\\r\\n")  # no command, and Redis says nothing to it
        waking.send(b"1")
        done.wait()

%s
print("outsider: listening on http://127.0.0.1:%%d" %% listener.getsockname()[1], flush=True)
while True:
    for each in select.select(list(clients), [], [])[0]:
        if each is told:
            told.recv(1)
            client, text, done = handed.popleft()
            clients[client] = [text, done]
            continue
        if each is listener:
            client = listener.accept()[0]
            clients[client] = [b"", threading.Event()]
            watched.register(client, 0)
            polled.register(client)
            polled.poll(0)
            continue
        clients[each][0] += each.recv(4096)
        if clients[each][0].endswith(b"\\r\\n\\r\\n"):
            text, done = clients.pop(each)
            answer(each, text)
            done.set()
"""


def paint(path, has_workers):
    """The Portrait of a server; in a process of its own, which ends what it starts."""
    done = subprocess.run([sys.executable, "-B", os.path.join(place.GRADER, "apart.py"), "portrait", path, has_workers],
                          env={**os.environ, "SEED": SEED}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", check=False)
    if done.returncode:
        raise AssertionError("%s: %s" % (path, done.stdout))
    return json.loads(done.stdout, object_hook=lambda each: types.SimpleNamespace(**each))


@unittest.skipIf("build/san-" in SERVERS, "a sanitizer has threads and memory of its own")
class Matrix(unittest.TestCase):
    """They mostly wait: all seven at once."""

    @classmethod
    def setUpClass(cls):
        with concurrent.futures.ThreadPoolExecutor(len(places.MODELS)) as pool:
            cls.seen = dict(zip(places.MODELS, pool.map(
                lambda name: paint(os.path.join(SERVERS, name),
                                   "yes" if name in WITH_WORKERS else "no"), places.MODELS)))
        cls.points = {server: {model: models.points(models.judge(model, seen), 25)
                               for model in models.TRAITS} for server, seen in cls.seen.items()}

    def explain(self, server, model):
        return "seed %s\n" % SEED + "\n".join("%s: %s: %s" % (verdict.holds, verdict.trait.says, verdict.saw)
                         for verdict in models.judge(model, self.seen[server]))

    def test_each_is_its_own_model(self):
        for name in places.MODELS:
            with self.subTest(server=name):
                self.assertEqual(25, self.points[name][name], self.explain(name, name))

    def test_none_is_another(self):
        for server, each in self.points.items():
            for model in set(each) - {server}:
                with self.subTest(server=server, model=model):
                    self.assertLessEqual(each[model], MOST_AS_ANOTHER,
                                         self.explain(server, model))

    def test_a_loop_that_works_for_a_team_is_no_team(self):
        for name in WITH_WORKERS:
            for scene, field, value in (("held", "readers", 1), ("redis", "askers", 1),
                                        ("redis", "strangers", 1)):
                seen = copy.deepcopy(self.seen[name])
                setattr(getattr(seen, scene), field, value)
                with self.subTest(server=name, field=field):
                    self.assertLessEqual(models.points(models.judge(name, seen), 25),
                                         MOST_AS_ANOTHER)

    def missed(self, work, model="prethreading"):
        """The defining traits that a program misses: one with threads that work like that, or a loop."""
        with tempfile.TemporaryDirectory() as folder:
            path = place.script(folder, model, OUTSIDER % (
                THREADS % work if work else "clients[listener] = None"))
            verdicts = models.judge(model, paint(path, "yes" if work else "no"))
        return {each.trait.says: each.saw for each in verdicts
                if each.trait.defines and not each.holds}

    def test_threads_that_hand_their_clients_to_a_loop_are_no_team(self):
        """They accept, and look at a byte, or read it and send Redis an empty line. Nothing else tells them
        from one."""
        for work in ("hand_over", "hand_over_the_rest"):
            with self.subTest(work=work):
                self.assertEqual({models.OWN_READER.says, models.ASKS.says}, set(self.missed(work)))

    def test_a_loop_that_sleeps_in_another_call_is_neither_poll_nor_epoll(self):
        """It sleeps in select(). epoll watches its clients, and poll() names them, and nobody waits there."""
        for model, trait in (("poll", "it sleeps in poll() with all of its clients"),
                             ("epoll", "epoll watches all of its clients")):
            with self.subTest(model=model):
                self.assertEqual({trait}, set(self.missed("", model)))

    def test_an_outsider_s_team_is_a_team(self):
        self.assertEqual({}, self.missed("work_alone"))


class Rule(unittest.TestCase):
    def verdicts(self, *holds):
        """Two that define, and the others."""
        traits = [models.Trait(number < 2, "", None, None, "") for number in range(len(holds))]
        return [models.Verdict(trait, each, "") for trait, each in zip(traits, holds)]

    def test_a_trait_costs_its_share_and_a_defining_one_most(self):
        for points, holds in ((25, (True, True, True, True, True)), (20, (True, True, True, True, False)),
                              (8, (True, False, True, True, True)), (5, (False, False, True, False, False))):
            self.assertEqual(points, models.points(self.verdicts(*holds), 25))

    def test_each_model_is_defined_by_something(self):
        for model, traits in models.TRAITS.items():
            self.assertGreaterEqual(sum(trait.defines for trait in traits), 2, model)

    def test_who_shows_nothing_gets_nothing(self):
        for model in places.MODELS:
            verdicts = models.judge(model, types.SimpleNamespace(trouble="it fell over"))
            self.assertEqual(0, models.points(verdicts, 25), model)
            self.assertIn("it fell over", verdicts[0].saw)


class Record(unittest.TestCase):
    """What strace writes."""

    def test_who_accepts(self):
        text = ("10 accept4(3, NULL, NULL, SOCK_CLOEXEC) = -1 EAGAIN (Resource unavailable)\n"
                "10 accept4(3, NULL, NULL, SOCK_CLOEXEC <unfinished ...>\n"
                "11 accept4(3, NULL, NULL, SOCK_CLOEXEC) = 7\n"
                "10 <... accept4 resumed>)           = 6\n"
                "11 accept(3, NULL, NULL) = 8\n")
        self.assertEqual({10: 1, 11: 2}, dict(portrait.accepts(text)))

    def workers(self, text, begin=0, process_of=lambda thread: 10):
        return portrait.workers(text, begin, "/tmp/redis", process_of)

    def test_who_reads_what_clients_say(self):
        """The second thread accepts and looks, and the first one reads for both."""
        text = ("10 read(3, \"ELF\"..., 832) = 832\n"
                "11 accept4(3, NULL, NULL, SOCK_CLOEXEC) = 7\n"
                "10 accept4(3, NULL, NULL, SOCK_CLOEXEC) = 8\n"
                "11 recvfrom(5, \"+OK\", 64, 0, NULL, NULL) = 3\n"
                "11 recvfrom(7, \"G\", 1, MSG_PEEK, NULL, NULL) = 1\n"
                "10 recvfrom(7, \"GET /\"..., 2048, 0, NULL, NULL) = 40\n"
                "11 recvfrom(8, \"G\", 1, 0, NULL, NULL) = 1\n"
                "10 recvfrom(8, <unfinished ...>\n"
                "12 read(7, 0x7f, 2048) = -1 EAGAIN (Resource temporarily unavailable)\n"
                "10 <... recvfrom resumed>\"ET /\"..., 2048, 0, NULL, NULL) = 39\n")
        self.assertEqual(({10}, set()), self.workers(text))

    def test_who_asks_redis(self):
        """Two children, whose descriptors have the same numbers; and later the first process."""
        text = ('10 accept4(3, NULL, NULL, SOCK_CLOEXEC) = 4\n'
                '11 read(4, "GET /"..., 2048) = 40\n'
                '11 connect(5, {sa_family=AF_UNIX, sun_path="/tmp/redis"}, 110) = 0\n'
                '12 accept4(3, NULL, NULL, SOCK_CLOEXEC) = 5\n'
                '12 write(5, "HTTP/1.1"..., 90) = 90\n'
                '11 write(5, "INCR guestbook:visitors"..., 30) = 30\n'
                '12 connect(6, {sa_family=AF_UNIX, sun_path="/tmp/redis"}, 110) = 0\n'
                '12 write(6, "\\r\\n", 2) = 2\n')
        later = ('10 connect(5, {sa_family=AF_UNIX, sun_path="/tmp/redis"}, 110) = 0\n'
                 '10 sendto(5, "INCR guestbook:visitors"..., 30, 0, NULL, 0) = 30\n')
        self.assertEqual(({11}, {11}), self.workers(text, 0, int))
        self.assertEqual((set(), {10}), self.workers(text + later, len(text), int))

    def test_who_connects(self):
        """The last one asks whether it is connected."""
        text = ('10 socket(AF_UNIX, SOCK_STREAM, 0) = 5\n'
                '10 connect(5, {sa_family=AF_UNIX, sun_path="/tmp/r"}, 110) = 0\n'
                '11 connect(5, {sa_family=AF_UNIX, sun_path="/tmp/r"}, 110 <unfinished ...>\n'
                '10 socket(AF_UNIX, SOCK_STREAM, 0 <unfinished ...>\n'
                '11 <... connect resumed>) = 0\n'
                '10 <... socket resumed>) = 5\n'
                '10 connect(5, {sa_family=AF_UNIX, sun_path="/tmp/r"}, 110 <unfinished ...>\n'
                '10 <... connect resumed>) = 0\n'
                '12 connect(7, {sa_family=AF_INET, sin_port=htons(6379)}, 16) = -1 EINPROGRESS\n'
                '12 connect(7, {sa_family=AF_INET, sin_port=htons(6379)}, 16) = 0\n'
                '12 connect(7, {sa_family=AF_INET, sin_port=htons(6379)}, 16) = -1 EISCONN\n')
        self.assertEqual({10: 2, 11: 1, 12: 1}, dict(portrait.connects(text)))

    def test_who_else_is_asked(self):
        text = ('10 connect(5, {sa_family=AF_UNIX, sun_path="/tmp/redis"}, 110) = 0\n'
                '10 connect(6, {sa_family=AF_UNIX, sun_path="/run/nscd/socket"}, 110) = -1 ENOENT\n'
                '10 connect(6, {sa_family=AF_INET, sin_port=htons(81)}, 16) = 0\n'
                '11 connect(7, {sa_family=AF_INET, sin_port=htons(81)}, 16) = 0\n'
                '11 connect(7, {sa_family=AF_UNSPEC}, 16) = 0\n'
                '11 sendto(7, "\\"AF_INET", 8, 0, NULL, 0) = 8\n'
                '11 sendto(8, "GET", 3, MSG_FASTOPEN, {sa_family=AF_INET, sin_port=htons(82)}, 16) = 3\n')
        self.assertEqual(['"", 3, MSG_FASTOPEN, {sa_family=AF_INET, sin_port=htons(82)}, 16',
                          "{sa_family=AF_INET, sin_port=htons(81)}, 16"],
                         portrait.elsewhere(text, "/tmp/redis"))

    def test_what_is_executed_after_the_program(self):
        text = ('10 execve("/bin/setpriv", ["setpriv"], 0x7f /* 9 vars */) = 0\n'
                '10 execve("./mine", ["./mine"], 0x7f /* 9 vars */) = 0\n'
                '11 execve("/nowhere", ["x"], 0x7f /* 9 vars */) = -1 ENOENT (No such file)\n'
                '11 execve("/bin/epoll", ["epoll"], 0x7f /* 9 vars */) = 0\n')
        self.assertEqual(["/bin/epoll"], portrait.executed(text, "./mine"))

    def test_how_many_are_polled(self):
        text = ("10 poll([{fd=3, events=POLLIN}], 1, 0) = 0 (Timeout)\n"
                "10 poll([{fd=3, events=POLLIN}, {fd=5, events=POLLIN}, ...], 40, 200"
                " <unfinished ...>\n10 ppoll([{fd=3, events=POLLIN}], 2, NULL, NULL, 8) = 1\n")
        self.assertEqual(40, portrait.most_polled(text))
        self.assertEqual(0, portrait.most_polled(""))

    def test_in_which_call_it_sleeps(self):
        text = "10 poll([{fd=3, events=POLLIN}, {fd=5, events=POLLIN}], 2, 0) = 0 (Timeout)\n"
        self.assertEqual(("another call", 0), portrait.sleeps_in(text))
        self.assertEqual(("poll", 2), portrait.sleeps_in(text + text.partition(")")[0]))
        self.assertEqual(("epoll_wait", 0), portrait.sleeps_in(text + "10 epoll_wait(4, "))
