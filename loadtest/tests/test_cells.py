"""What makes a cell right, what is said of it otherwise, and how it is written down."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib import Trouble, ab, cells, machine, redis, work


def report(complete=1000, failed=0, non_2xx=0, **kinds):
    return ab.Report(complete=complete, failed=failed, kinds=kinds, non_2xx=non_2xx, page_bytes=1,
                     seconds=1.0, rate=1000.0, percentiles=[float(n) for n in range(100)])


def counts(incr=1000, get=1000, lrange=1000, visitors=1000):
    return redis.Counts(incr, get, lrange, visitors)


class EqualWork(unittest.TestCase):
    def test_three_calls_and_a_visitor_for_each_page(self):
        self.assertIsNone(work.unequal(1000, counts()))

    def test_one_call_more_or_less_is_noticed_whichever(self):
        for name in redis.Counts._fields:
            for wrong in (999, 1001):
                with self.subTest(name=name, wrong=wrong):
                    self.assertIsNotNone(work.unequal(1000, counts(**{name: wrong})))

    def test_the_note_says_what_was_counted(self):
        self.assertEqual(work.unequal(1000, counts(get=2000)),
                         "for 1,000 pages Redis counted 1,000 INCR, 2,000 GET, 1,000 LRANGE "
                         "and 1,000 visitors")


class Notes(unittest.TestCase):
    def test_a_right_cell_has_none(self):
        self.assertEqual(cells.what_is_wrong(report(), 1000, counts()), [])

    def test_errors_are_named_by_kind(self):
        fewer = counts(990, 990, 990, 990)
        self.assertEqual(
            cells.what_is_wrong(report(failed=4, receive=4, non_2xx=6), 1000, fewer),
            ["10 of 1,000 requests failed: 4 receive, 6 not 2xx"])

    def test_a_run_cut_short_is_noticed(self):
        self.assertEqual(cells.what_is_wrong(report(), 2000, counts()),
                         ["ab completed 1,000 requests of 2,000"])


class RedisStatistics(unittest.TestCase):
    INFO = ("# Commandstats\r\n"
            "cmdstat_get:calls=5000,usec=497,usec_per_call=0.10,rejected_calls=0,failed_calls=0\r\n"
            "cmdstat_config|set:calls=1,usec=10,usec_per_call=10.00\r\n"
            "cmdstat_getrange:calls=7,usec=7,usec_per_call=1.00\r\n")

    def test_calls_by_command(self):
        self.assertEqual(redis.command_calls(self.INFO),
                         {"get": 5000, "config|set": 1, "getrange": 7})

    def test_nothing_asked_yet(self):
        self.assertEqual(redis.command_calls("# Commandstats"), {})

    def test_an_error_instead_is_trouble(self):
        with self.assertRaisesRegex(Trouble, "NOPERM"):
            redis.command_calls("NOPERM this user has no permissions")


class RawFigures(unittest.TestCase):
    def test_as_many_as_columns_measured_or_not(self):
        measured = cells.Cell("epoll", 20, 1000, report(), counts(), machine.Cores(56.0, 99.0))
        missing = cells.Cell("epoll", 20, notes=["the server did not start: status 1"])
        for cell in (measured, missing):
            self.assertEqual(len(cells.raw(cell)), len(cells.COLUMNS))

    def test_they_stand_below_their_names(self):
        cell = cells.Cell("epoll", 20, 1000, report(non_2xx=1), counts(get=5), notes=["a", "b\tc"])
        row = dict(zip(cells.COLUMNS, cells.raw(cell)))
        self.assertEqual((row["p99_ms"], row["get"], row["non_2xx"]), (99.0, 5, 1))
        self.assertEqual((row["server_core_busy"], row["notes"]), ("", "a; b c"))


class WhoWasBusy(unittest.TestCase):
    def limited_by_client(self, server, client):
        return cells.Cell("epoll", 20, busy=machine.Cores(server, client)).limited_by_client

    def test_a_full_client_beside_a_server_with_time_to_spare(self):
        self.assertTrue(self.limited_by_client(56.0, 99.0))
        self.assertFalse(self.limited_by_client(98.0, 99.0))
        self.assertFalse(self.limited_by_client(40.0, 60.0))  # both wait: chapter 1

    def test_unknown_is_not_claimed(self):
        self.assertFalse(self.limited_by_client(None, None))


class Limits(unittest.TestCase):
    def test_levels_that_descriptors_forbid(self):
        self.assertIsNone(machine.why_not(500, 1024))
        self.assertIn("1,024 descriptors", machine.why_not(1000, 1024))

    def test_levels_that_ab_refuses(self):
        self.assertIn("ab", machine.why_not(20001, 1 << 20))


if __name__ == "__main__":
    unittest.main()
