"""What cost counts, alive: the system calls of a request, which repeat as speeds do not, are within the budgets."""

import os
import unittest

import programs
import processes
import redis
import servers
import top
from lib import Trouble
from lib.measuring import calls, idle, machine

tearDownModule = processes.end_all

FILE, NO_REDIS = "/index.html", "unix:/not/there"
# The most calls that a request may cost. For a loop that is one read, one write and its share of a
# round. A new client adds accept and close, each with a check whether there is more, and the
# question whether the client has the response. A server that waits makes three commands to Redis
# and their replies, and looks at that connection first. With accept, read, write, a check whether
# the client said more, the same question and close, that is thirteen calls. 04 adds the nine calls
# by which the C library creates a thread and ends it, and the thread's number for the board. 02
# adds a process, its end, its own connection to Redis for the page, its score for the day when memory ends,
# and the three calls by which fork(3) keeps signals out since glibc 2.41. A kept file takes a read, a
# write, and a check for waiting clients where that is not known. Ticks are half a call in all.
BUDGETS = {
    "kept file": {name: {"maker": 2.5, "loop": 2.5}.get(row["kind"], 3.5) for name, row in top.ROWS.items()},
    "kept page": dict.fromkeys(top.of_kind("loop"), 2.4),
    "new page": {**{name: 9 if row["kind"] == "loop" else 14 for name, row in top.ROWS.items()},
                 "threading": 14 + 10.5, "forking": 14 + 15.5},
}
KEPT_AT_ONCE = {"iterative": 1, **dict.fromkeys(top.of_kind("loop"), 100)}  # clients share a loop's rounds
FEW_AT_ONCE = 10


class IdleConnections(unittest.TestCase):
    def measured(self, name, path=FILE, connections=10):
        log = programs.folder(self) + "/log"
        return idle.measure(lambda: servers.Server(top.path_of(name), NO_REDIS, log), path, connections)

    @programs.needs(top.path_of("epoll"))
    def test_they_are_kept_and_counted_or_it_is_trouble(self):
        found = self.measured("epoll")
        self.assertEqual(found.connections, 10)
        self.assertEqual(set(found.before), set(idle.FIGURES))
        self.assertGreater(min(found.before.values()), 0)
        with self.assertRaisesRegex(Trouble, "of 10 idle connections it kept [01]$"):
            self.measured("iterative")
        with self.assertRaisesRegex(Trouble, "an answer was 404"):
            self.measured("epoll", "/not-there")


def load_of(kind, server):
    """The load under which a budget has to be kept, as (clients, requests)."""
    return (KEPT_AT_ONCE.get(server, FEW_AT_ONCE), calls.REQUESTS) if calls.KINDS[kind].kept else (FEW_AT_ONCE, 300)


@programs.needs("strace", "ab", redis.SERVER, top.path_of("epoll"))
class Alive(unittest.TestCase):
    """The figures are those of the servers as they are: they change if a server does."""

    @classmethod
    def setUpClass(cls):
        cls.folder = programs.folder(cls)
        cls.addClassCleanup(processes.end_all)
        cls.redis = redis.start_private(cls.folder)
        cls.redis.seed()

    def calls_of(self, name, kind, clients=FEW_AT_ONCE, requests=300):
        """{call: how often a request} of one of the seven, or of the floor."""
        cores = machine.choose_cores()
        workers = ["--workers", str(clients)] if name in top.of_kind("pool") else []
        return calls.per_request(
            lambda log, under: servers.Server(top.path_of(name), self.redis.where, log, workers, under, cores.server),
            os.path.join(self.folder, name), cores.client, kind, clients, requests).calls

    def test_the_budgets(self):
        for kind, budgets in BUDGETS.items():
            for name, most in budgets.items():
                with self.subTest(kind=kind, server=name):
                    found = self.calls_of(name, kind, *load_of(kind, name))
                    self.assertLessEqual(sum(found.values()), most, found)


if __name__ == "__main__":
    unittest.main()
