"""What makes a cell right, what is said of it otherwise, and how it is written down."""

import contextlib
import os
import sys
import unittest
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib import Trouble, cells
from lib.measuring import machine, meter
from lib.subjects import redis
from lib.generators.load import Load

SPOT = cells.Spot("epoll", "ab", 20)


def load(requests=1000, seconds=1.0, mean_ms=20.0, content=None, **errors):
    return Load(requests=requests, errors=errors, seconds=seconds, mean_ms=mean_ms,
                percentiles={50: 19.0, 90: 30.0, 99: 99.0, 100: 120.0}, connects=True,
                content=content)


def counts(incr=1000, get=1000, lrange=1000, visitors=1000):
    return redis.Counts(incr, get, lrange, visitors)


def reading(kernel=None):
    cores = machine.Cores(meter.Core(80.0, 0.0, 40.0), *[meter.Core(90.0, 0.0, 40.0)] * 2)
    return meter.Reading(seconds=1.0, cpu_us=500000.0, cpu_user_us=200000.0, switches=None,
                         peak_pss=4 << 20, processes=1, threads=1, cores=cores,
                         kernel=kernel or {})


def judged(the_load, the_counts=None, asked=1000, spot=SPOT, kernel=None, size=None):
    cell = cells.Cell(spot, 1, asked=asked, load=the_load, counts=the_counts or counts(),
                      reading=reading(kernel))
    cells.judge(cell, asks_redis=True, size=size)
    return cell


class EqualWork(unittest.TestCase):
    def test_three_calls_and_a_visitor_for_each_page(self):
        self.assertIsNone(redis.unequal(1000, counts()))

    def test_one_call_more_or_less_is_noticed_whichever(self):
        for name in redis.Counts._fields:
            for wrong in (999, 1001):
                with self.subTest(name=name, wrong=wrong):
                    self.assertIsNotNone(redis.unequal(1000, counts(**{name: wrong})))

    def test_what_is_in_flight_when_time_is_up_may_have_been_counted(self):
        self.assertIsNone(redis.unequal(1000, counts(1020, 1007, 1000, 1020), in_flight=20))
        self.assertIsNotNone(redis.unequal(1000, counts(incr=1021), in_flight=20))
        self.assertIsNotNone(redis.unequal(1000, counts(get=999), in_flight=20))

    def test_the_note_says_what_was_counted(self):
        self.assertEqual(redis.unequal(1000, counts(get=2000)),
                         "for 1,000 pages Redis counted 1,000 INCR, 2,000 GET, 1,000 LRANGE "
                         "and 1,000 visitors")


class Verdict(unittest.TestCase):
    def test_a_right_cell_has_nothing_said_of_it(self):
        cell = judged(load())
        self.assertEqual((cell.wrong, cell.remarks), ([], []))

    def test_errors_are_named_by_kind(self):
        fewer = counts(990, 990, 990, 990)
        cell = judged(load(requests=990, mean_ms=20.2, reset=4, **{"not 2xx": 6}), fewer)
        self.assertEqual(cell.wrong, ["10 requests failed: 4 reset, 6 not 2xx"])

    def test_a_run_cut_short_is_noticed(self):
        self.assertEqual(judged(load(), asked=2000).wrong,
                         ["ab completed 1,000 requests of 2,000"])

    def test_unequal_work_is_wrong_and_ab_s_count_is_exact(self):
        self.assertEqual(len(judged(load(), counts(incr=1001)).wrong), 1)

    def test_a_timed_run_may_leave_as_many_in_flight_as_there_are_clients(self):
        wrk = cells.Spot("epoll", "wrk", 20)
        self.assertEqual(judged(load(), counts(1020, 1020, 1001, 1020), 0, wrk).wrong, [])
        self.assertEqual(len(judged(load(), counts(1021), 0, wrk).wrong), 1)

    def test_an_answer_that_is_cut_short_or_empty_is_noticed_by_what_came_in_all(self):
        self.assertEqual(judged(load(content=50000), size=50).wrong, [])
        for content in (0, 49999, 50001):
            self.assertEqual(judged(load(content=content), size=50).wrong,
                             ["%s bytes came in 1,000 answers of 50" % format(content, ",")])
        timed = judged(load(content=50999), asked=0, size=50)  # 20 clients were still reading
        self.assertEqual(timed.wrong, [])

    def test_clients_that_did_not_wait_are_suspect(self):
        cell = judged(load(mean_ms=17.0))  # 17 of 20 were waiting
        self.assertEqual(cell.wrong, [])
        self.assertIn("Little's law", cell.remarks[0])
        self.assertAlmostEqual(cell.off, 0.15)

    def test_what_the_kernel_refused_is_said(self):
        cell = judged(load(), kernel={"ListenOverflows": 19143, "TCPTimeouts": 0})
        self.assertEqual(cell.remarks, ["the kernel counted 19,143 ListenOverflows"])

    def test_it_stands_beside_what_went_wrong(self):
        cell = judged(load(990, reset=10), kernel={"ListenOverflows": 12})
        self.assertEqual(cell.wrong[-1], "the kernel counted 12 ListenOverflows")
        self.assertEqual(cell.remarks, [])


class EnoughRequests(unittest.TestCase):
    """A server that answers so many requests a second, whoever asks."""

    def measured(self, spot, rate, must_live=None):
        self.asked = []

        def ab(_spot, _server, _run, _save_as, clients=20, requests=None, seconds=9999):
            done = min(requests, round(rate * seconds))
            self.asked.append((requests, done))
            return load(done, done / rate, 1000 * clients / rate)

        def wrk(_url, _clients, seconds, *_, **__):
            self.asked.append((seconds, seconds * rate))
            return load(seconds * rate, seconds, 1000 * spot.clients / rate)

        run = SimpleNamespace(
            per_client=20, most_seconds=30, seconds=1.0, warmup_seconds=0.2, asked={},
            hosts=mock.MagicMock(), redis=mock.Mock(), counts_since=mock.Mock(), commands={},
            path_of=lambda subject: "", asks_redis=lambda spot: False,
            experiment=SimpleNamespace(size=lambda run: None),
            meter=lambda *_: contextlib.nullcontext(SimpleNamespace(reading=reading())))
        run.redis.settle = lambda: self.asked.append("settled")
        cell = cells.Cell(spot, 1)
        with mock.patch.object(cells, "_ab", ab), mock.patch.object(cells.wrk, "run", wrk):
            cells._load(cell, mock.Mock(url="", must_live=must_live or mock.Mock()), run, "")
        return cell

    def test_a_second_s_worth(self):
        self.assertEqual(self.measured(SPOT, 5000).asked, 5000)

    def test_but_twenty_for_each_client(self):
        cell = self.measured(cells.Spot("epoll", "ab", 500), 5000)
        self.assertEqual((cell.asked, cell.load.seconds, cell.wrong), (10000, 2.0, []))

    def test_who_is_too_slow_for_that_has_half_a_minute_and_a_remark(self):
        cell = self.measured(cells.Spot("iterative", "ab", 500), 7)
        self.assertEqual((self.asked, cell.asked), ([(20, 20), (10000, 210)], 0))
        self.assertEqual((cell.wrong, cell.remarks), ([], [
            "it ended by the clock, with fewer than 20 requests for each client"]))

    def test_wrk_is_asked_once_more_for_as_long_as_it_takes(self):
        self.measured(cells.Spot("epoll", "wrk", 500), 20000)
        self.assertEqual(self.asked[1:], [(1, 20000)])
        self.measured(cells.Spot("iterative", "wrk", 500), 5000)
        self.assertEqual(self.asked[1:], [(1, 5000), "settled", (3, 15000)])
        self.assertEqual(len(self.measured(cells.Spot("iterative", "wrk", 500), 7).remarks), 1)
        self.assertEqual(self.asked[1:], [(1, 7), "settled", (30, 210)])

    def test_a_server_that_ends_as_its_clients_leave_is_noticed(self):
        with self.assertRaisesRegex(Trouble, "broken pipe"):
            self.measured(SPOT, 5000, mock.Mock(side_effect=Trouble("broken pipe")))

    def test_a_server_that_has_died_is_a_better_reason_than_who_could_not_reach_it(self):
        dead = mock.Mock(must_live=mock.Mock(side_effect=Trouble("broken pipe")))
        with self.assertRaisesRegex(Trouble, "broken pipe"):
            cells._alive(dead, mock.Mock(side_effect=Trouble("wrk gave up")))


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


class Settling(unittest.TestCase):
    def test_waits_as_long_as_pages_are_still_made(self):
        looks = [redis.Counts(get=n, incr=pages, lrange=pages, visitors=pages)
                 for n, pages in enumerate([1, 4, 9, 9, 9])]
        store = redis.Redis("unix:/not/there")
        with mock.patch.object(store, "counts", lambda: looks.pop(0)):
            store.settle()
        self.assertEqual(len(looks), 1)


class RawFigures(unittest.TestCase):
    def test_as_many_as_columns_measured_or_not(self):
        missing = cells.Cell(SPOT, 1, wrong=["the server did not start: status 1"])
        for cell in (judged(load()), missing):
            self.assertEqual(len(cells.raw(cell)), len(cells.COLUMNS))

    def test_they_stand_below_their_names(self):
        cell = judged(load(), counts(get=5))
        cell.wrong = ["a", "b\tc"]
        row = dict(zip(cells.COLUMNS, cells.raw(cell)))
        self.assertEqual((row["p99_ms"], row["get"], row["wrong"]), ("99.000", "5", "a; b c"))
        self.assertEqual((row["server_cpu_us"], row["verdict"]), ("500000.0", "server-bound"))
        self.assertEqual((row["backlog"], row["server_core_busy"]), ("", "80.0"))


class Spots(unittest.TestCase):
    def test_they_say_what_they_are(self):
        self.assertEqual(str(SPOT), "epoll, 20 clients, ab")
        self.assertEqual(str(cells.Spot("poll", "ab", 2000, 10, cells.Dials(50, 0.1, 2))),
                         "poll, 2,000 clients, ab, backlog 10, Redis 50 ms away, "
                         "0.1 ms of work a page, 2 cores")


class Limits(unittest.TestCase):
    def test_levels_that_descriptors_forbid(self):
        self.assertIsNone(machine.why_not(500, 1024))
        self.assertIn("1,024 descriptors", machine.why_not(1000, 1024))

    def test_levels_that_ab_refuses(self):
        self.assertIn("ab", machine.why_not(20001, 1 << 20))


if __name__ == "__main__":
    unittest.main()
