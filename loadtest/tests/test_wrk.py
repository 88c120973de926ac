"""wrk's reports, as wrk 4.1.0 wrote them, are understood, and what it added is taken back."""

import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from lib import Trouble
from lib.generators import wrk


def sample(name):
    with open(os.path.join(HERE, "samples", "wrk_" + name), encoding="utf-8") as file:
        return file.read()


def raw(name):
    """What wrk's script printed."""
    return json.loads(sample(name).splitlines()[-1])


def corrected(times, even):
    """What wrk does to its times, as a table from time to count."""
    table = dict(times)
    for time, count in times:
        shorter = time - even
        while shorter > even:
            table[shorter] = table.get(shorter, 0) + count
            shorter -= even
    return sorted(table.items())


class CleanRun(unittest.TestCase):
    def setUp(self):
        self.load = wrk.parse(sample("clean.txt"), clients=1)

    def test_requests_and_length_are_wrk_s_own(self):
        self.assertEqual((self.load.requests, self.load.errors), (9371, {}))
        self.assertAlmostEqual(self.load.rate, 9371 / 1.00265)
        self.assertFalse(self.load.connects)

    def test_as_many_times_as_requests_are_left(self):
        report = raw("clean.txt")
        times = wrk.uncorrected(report["times"], wrk.interval(report, 1))
        self.assertEqual(sum(count for _, count in times), report["requests"])
        self.assertGreater(sum(count for _, count in report["times"]), report["requests"])
        self.assertGreaterEqual(min(count for _, count in times), 0)

    def test_little_s_law_holds(self):
        self.assertAlmostEqual(self.load.rate * self.load.mean_ms / 1000, 1, delta=0.1)

    def test_it_would_not_hold_with_wrk_s_own_mean(self):
        mean_ms = wrk.mean(raw("clean.txt")["times"]) / 1000
        self.assertGreater(self.load.rate * mean_ms / 1000, 1.5)

    def test_percentiles_rise(self):
        rising = [self.load.percentiles[percent] for percent in (50, 90, 99, 100)]
        self.assertEqual(rising, sorted(rising))
        self.assertEqual(rising[-1], raw("clean.txt")["times"][-1][0] / 1000)


class RunWithErrors(unittest.TestCase):
    def test_another_status_is_an_error(self):
        load = wrk.parse(sample("503.txt"), clients=1)  # every tenth
        self.assertEqual(load.errors, {"not 2xx": raw("503.txt")["status"]})
        self.assertAlmostEqual(load.failed / load.requests, 1 / 9, delta=0.001)

    def test_a_reset_is_an_error_and_no_request(self):
        load = wrk.parse(sample("reset.txt"), clients=1)  # every tenth
        self.assertEqual(load.requests, raw("reset.txt")["requests"])
        self.assertEqual(load.errors_text(), "1,277 reset")

    def test_a_late_answer_is_a_time_out_and_has_no_time(self):
        report = raw("late.txt")
        load = wrk.parse(sample("late.txt"), clients=4)
        self.assertEqual(load.errors, {"time-out": 8})
        self.assertEqual(load.requests, report["requests"] - 8)
        times = wrk.uncorrected(report["times"], wrk.interval(report, 4))
        self.assertEqual(sum(count for _, count in times), report["requests"] - 8)

    def test_nothing_answered_is_no_division_by_zero(self):
        text = ('{"requests":0,"microseconds":1000000,"bytes":0,"connect":5,"read":0,"write":2,'
                '"status":0,"timeout":0,"times":[]}')
        load = wrk.parse(text, clients=5)
        self.assertEqual((load.requests, load.mean_ms, load.rate), (0, 0, 0))
        self.assertEqual(load.percentiles, {})
        self.assertEqual(load.errors, {"connect": 5, "reset": 2})


class Correction(unittest.TestCase):
    MEASURED = [(10, 500), (11, 300), (19, 5), (20, 5), (21, 5), (60, 3), (61, 2), (105, 7)]

    def test_what_was_added_is_taken_back_exactly(self):
        for even in (1, 7, 10, 20, 200):
            with self.subTest(even=even):
                left = wrk.uncorrected(corrected(self.MEASURED, even), even)
                self.assertEqual([pair for pair in left if pair[1]], self.MEASURED)

    def test_from_a_thousand_percentiles_nearly(self):
        measured = [(time, 3) for time in range(1000, 90000, 40)]
        even = 20000
        table = corrected(measured, even)
        coarse = [[wrk.percentile(table, (number - 0.5) / 10), 1] for number in range(1, 1001)]
        left = wrk.uncorrected(coarse, even)
        self.assertAlmostEqual(wrk.mean(left), wrk.mean(measured), delta=500)
        self.assertAlmostEqual(wrk.percentile(left, 90), wrk.percentile(measured, 90), delta=1000)

    def test_no_correction_if_not_every_client_had_an_answer(self):
        self.assertIsNone(wrk.interval({"requests": 9, "microseconds": 1000}, 10))
        self.assertEqual(wrk.uncorrected([(5, 9)], None), [(5, 9)])


class RunWithoutReport(unittest.TestCase):
    def test_a_cut_report_is_trouble(self):
        whole = sample("clean.txt")
        with self.assertRaisesRegex(Trouble, "no report"):
            wrk.parse(whole[:whole.index("{")], 1)


class Command(unittest.TestCase):
    def test_time_outs_are_set(self):
        words = wrk.command("http://h/", 100, 5)
        self.assertEqual(words[:5], ["wrk", "-t1", "-c100", "-d5", "--timeout"])

    def test_seconds_are_whole(self):
        self.assertIn("-d1", wrk.command("http://h/", 100, 0.2))
        self.assertIn("-d3", wrk.command("http://h/", 100, 2.6))


if __name__ == "__main__":
    unittest.main()
