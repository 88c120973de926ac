"""What a request costs in system calls, which repeat as speeds do not, is within the budgets."""

import os
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

from lib import subjects
from lib.measuring import calls, processes
from lib.subjects import redis
from traced import calls_of

READS = 3 + 3  # of a client, and of Redis' replies


@unittest.skipUnless(shutil.which("strace") and shutil.which("ab") and shutil.which(redis.SERVER)
                     and os.access(subjects.binary_of("epoll"), os.X_OK),
                     "needs strace, ab, redis-server and the servers")
class Budgets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.addClassCleanup(processes.end_all)
        cls.redis = redis.start_private(folder.name, None)
        cls.redis.seed()

    def hold(self, kind):
        for name, most in calls.BUDGETS[kind].items():
            with self.subTest(server=name):
                found = calls_of(name, kind, self.redis, *calls.budget_load(kind, name))
                self.assertLessEqual(sum(found.values()), most, found)
                often = {call for call, count in found.items() if count >= 0.2}
                self.assertLessEqual(often, set(calls.WHY), "a call without a reason")
                reads = found.get("recvfrom", 0) + found.get("read", 0)
                self.assertLessEqual(reads, READS + 0.05, found)

    def test_a_kept_file(self):
        self.hold("kept file")

    def test_a_kept_page(self):
        self.hold("kept page")

    def test_a_page_over_a_new_connection(self):
        self.hold("new page")

    def test_the_floor_naps_where_clients_come_and_go_and_only_there(self):
        for kind, naps in ("new page", True), ("kept page", False):
            found = calls_of("floor", kind, self.redis, calls.FEW_AT_ONCE, 300)
            self.assertEqual("clock_nanosleep" in found, naps, found)
