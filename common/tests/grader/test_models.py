"""Is each of the seven its own model, and none of the others?"""

import concurrent.futures
import copy
import json
import os
import random
import subprocess
import sys
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


def paint(name):
    """The Portrait of one of the seven; in a process of its own, which ends what it starts."""
    command = [sys.executable, "-B", os.path.join(place.GRADER, "apart.py"), "portrait",
               os.path.join(SERVERS, name), "yes" if name in WITH_WORKERS else "no", SEED]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", check=False)
    if done.returncode:
        raise AssertionError("%s: %s" % (name, done.stdout))
    return json.loads(done.stdout, object_hook=lambda each: types.SimpleNamespace(**each))


@unittest.skipIf("build/san-" in SERVERS, "a sanitizer has threads and memory of its own")
class Matrix(unittest.TestCase):
    """They mostly wait: all seven at once."""

    @classmethod
    def setUpClass(cls):
        with concurrent.futures.ThreadPoolExecutor(len(places.MODELS)) as pool:
            cls.seen = dict(zip(places.MODELS, pool.map(paint, places.MODELS)))
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


    def test_a_loop_that_reads_for_a_team_is_no_team(self):
        for name in WITH_WORKERS:
            seen = copy.deepcopy(self.seen[name])
            seen.held.readers = 1
            with self.subTest(server=name):
                self.assertLessEqual(models.points(models.judge(name, seen), 25), MOST_AS_ANOTHER)


class Rule(unittest.TestCase):
    def verdicts(self, *holds):
        """Two that define, and the others."""
        traits = [models.Trait(number < 2, "", None, None, "") for number in range(len(holds))]
        return [models.Verdict(trait, each, "") for trait, each in zip(traits, holds)]

    def test_all_is_all(self):
        self.assertEqual(25, models.points(self.verdicts(True, True, True, True, True), 25))

    def test_a_trait_that_goes_along_costs_its_share(self):
        self.assertEqual(20, models.points(self.verdicts(True, True, True, True, False), 25))

    def test_a_defining_one_costs_most(self):
        self.assertEqual(8, models.points(self.verdicts(True, False, True, True, True), 25))
        self.assertEqual(5, models.points(self.verdicts(False, False, True, False, False), 25))

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

    def test_who_reads_what_clients_say(self):
        """The second thread accepts, and the first one reads for both."""
        text = ("10 read(3, \"ELF\"..., 832) = 832\n"
                "11 accept4(3, NULL, NULL, SOCK_CLOEXEC) = 7\n"
                "10 accept4(3, NULL, NULL, SOCK_CLOEXEC) = 8\n"
                "11 recvfrom(5, \"+OK\", 64, 0, NULL, NULL) = 3\n"
                "10 recvfrom(7, \"GET /\"..., 2048, 0, NULL, NULL) = 30\n"
                "10 recvfrom(8, <unfinished ...>\n"
                "12 read(7, 0x7f, 2048) = -1 EAGAIN (Resource temporarily unavailable)\n"
                "10 <... recvfrom resumed>\"GET /\"..., 2048, 0, NULL, NULL) = 30\n")
        self.assertEqual({10}, portrait.readers(text))

    def test_who_connects(self):
        text = ('10 socket(AF_UNIX, SOCK_STREAM, 0) = 5\n'
                '10 connect(5, {sa_family=AF_UNIX, sun_path="/tmp/r"}, 110) = 0\n'
                '11 connect(5, {sa_family=AF_UNIX, sun_path="/tmp/r"}, 110 <unfinished ...>\n'
                '10 socket(AF_UNIX, SOCK_STREAM, 0 <unfinished ...>\n'
                '11 <... connect resumed>) = 0\n'
                '10 <... socket resumed>) = 5\n'
                '10 connect(5, {sa_family=AF_UNIX, sun_path="/tmp/r"}, 110 <unfinished ...>\n'
                '10 <... connect resumed>) = 0\n')
        self.assertEqual({10: 2, 11: 1}, dict(portrait.connects(text)))

    def test_who_else_is_asked(self):
        text = ('10 connect(5, {sa_family=AF_UNIX, sun_path="/tmp/redis"}, 110) = 0\n'
                '10 connect(6, {sa_family=AF_UNIX, sun_path="/run/nscd/socket"}, 110) = -1 ENOENT\n'
                '10 connect(6, {sa_family=AF_INET, sin_port=htons(81)}, 16) = 0\n'
                '11 connect(7, {sa_family=AF_INET, sin_port=htons(81)}, 16) = 0\n'
                '11 connect(7, {sa_family=AF_UNSPEC}, 16) = 0\n')
        self.assertEqual(["{sa_family=AF_INET, sin_port=htons(81)}, 16"],
                         portrait.elsewhere(text, "/tmp/redis"))

    def test_what_is_executed_after_the_program(self):
        text = ('10 execve("./mine", ["./mine"], 0x7f /* 9 vars */) = 0\n'
                '11 execve("/nowhere", ["x"], 0x7f /* 9 vars */) = -1 ENOENT (No such file)\n'
                '11 execve("/bin/epoll", ["epoll"], 0x7f /* 9 vars */) = 0\n')
        self.assertEqual(["/bin/epoll"], portrait.executed(text))

    def test_who_asks_whether_it_is_connected_does_not_connect_again(self):
        text = ('10 connect(5, {sa_family=AF_INET, sin_port=htons(6379)}, 16) = -1 EINPROGRESS\n'
                '10 connect(5, {sa_family=AF_INET, sin_port=htons(6379)}, 16) = 0\n'
                '10 connect(5, {sa_family=AF_INET, sin_port=htons(6379)}, 16) = -1 EISCONN\n')
        self.assertEqual({10: 1}, dict(portrait.connects(text)))

    def test_how_many_are_polled(self):
        text = ("10 poll([{fd=3, events=POLLIN}], 1, 0) = 0 (Timeout)\n"
                "10 poll([{fd=3, events=POLLIN}, {fd=5, events=POLLIN}, ...], 40, 200"
                " <unfinished ...>\n10 ppoll([{fd=3, events=POLLIN}], 2, NULL, NULL, 8) = 1\n")
        self.assertEqual(40, portrait.most_polled(text))
        self.assertEqual(0, portrait.most_polled(""))


if __name__ == "__main__":
    unittest.main()
