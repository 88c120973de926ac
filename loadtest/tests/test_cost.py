"""What cost makes of its figures."""

import types
import unittest

import programs
from lib.measuring import calls, idle
from lib.reporting import table

cost = programs.load("cost")

FOUND = {"epoll": {"recvfrom": 1.0, "epoll_wait": 0.0712, "brk": 0.001},
         "iterative": {"recvfrom": 2.0, "close": 1.0}}


class Tables(unittest.TestCase):
    def test_a_row_for_each_name_the_most_frequent_first_and_their_sum(self):
        self.assertEqual(cost.by_name(FOUND), (["call", "epoll", "iterative"], [
            ["recvfrom", "1.00", "2.00"], ["close", "", "1.00"], ["epoll_wait", "0.07", ""],
            ["all", "1.07", "3.00"]]))

    def test_kept_by_one_who_keeps_nobody_has_a_note(self):
        run = types.SimpleNamespace(calls={("iterative", "kept page"): calls.PerRequest(
            FOUND["iterative"], 100)})
        notes = table.Notes()
        self.assertEqual(cost.total_text(run, "iterative", "kept page", notes), "3.00 (1)")
        self.assertEqual(cost.total_text(run, "epoll", "kept page", notes), "-")

    def test_memory_in_kib_a_connection_and_who_cannot_hold_so_many(self):
        zero = dict.fromkeys(idle.FIGURES, 1 << 20)
        some = dict(zero, pss=(1 << 20) + 1024 * 10 * 600)
        run = types.SimpleNamespace(options=types.SimpleNamespace(idle=[100, 600, 1000]),
                                    idle={("epoll", 600): [idle.Idle(600, zero, some)]})
        notes = table.Notes()
        for server, number, row in (
                ("epoll", 600, ["epoll", "600", "10.0", "0.0", "0.0", "10.0", "1.0", "2.0"]),
                ("preforking", 600, ["preforking", "600 (1)", *"-----"]), ("preforking", 100, None),
                ("gunicorn-sync", 100, ["gunicorn-sync", "100 (2)", *"-----"]),
                ("preforking", 1000, None)):
            found = cost.memory_row(run, server, number, notes)
            self.assertEqual(found and found[:len(row)], row and (row if server == "epoll" else row[:7]))
        self.assertIn("100 workers", notes.numbered()[0][1])
