"""What cost counts, alive: the system calls of a request, which repeat as speeds do not, are within the budgets."""

import unittest

import programs
import processes
import redis
import servers
import top
from lib import Trouble
from lib.measuring import calls, idle, machine

tearDownModule = processes.end_all

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


@programs.needs("strace", "ab", redis.SERVER, top.path_of("epoll"))
class Alive(unittest.TestCase):
    """The figures are those of the servers as they are: they change if a server does."""

    def setUp(self):
        self.folder = programs.folder(self)
        self.redis = redis.start_private(self.folder)

    def test_the_budgets(self):
        self.redis.seed()
        cores = machine.choose_cores()
        for kind, name, most in ((kind, *each) for kind, budgets in BUDGETS.items() for each in budgets.items()):
            clients, requests = (KEPT_AT_ONCE.get(name, FEW_AT_ONCE), calls.REQUESTS) if calls.KINDS[kind].kept else (
                FEW_AT_ONCE, 300)
            workers = ["--workers", str(clients)] if name in top.of_kind("pool") else []

            def server(log, under, name=name, workers=workers):
                return servers.Server(top.path_of(name), self.redis.where, log, workers, under, cores.server)

            with self.subTest(kind=kind, server=name):
                found = calls.per_request(server, self.folder + "/" + name, cores.client, kind, clients, requests).calls
                self.assertLessEqual(sum(found.values()), most, found)

    def test_clients_that_are_not_kept_are_trouble(self):
        with self.assertRaisesRegex(Trouble, "of 10 idle connections it kept [01]$"):
            idle.measure(lambda: servers.Server(top.path_of("iterative"), self.redis.where, self.folder + "/log"),
                         "/index.html", 10)


if __name__ == "__main__":
    unittest.main()
