"""h2load's summaries and logs, as h2load 1.52.0 wrote them, are understood."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from lib import Trouble
from lib.generators import h2load


def sample(name):
    with open(os.path.join(HERE, "samples", "h2load_" + name), encoding="utf-8") as file:
        return file.read()


def report(name, *statuses):
    """Of a recorded summary, and the log that belongs to it: a line for each that was answered."""
    log = "".join("1795254205264730\t%d\t66\n" % status for status in statuses)
    return h2load.parse(sample(name + ".txt"), log)


class CleanRun(unittest.TestCase):
    def setUp(self):
        self.report = h2load.parse(sample("clean.txt"), sample("clean.tsv"))  # 200 connections a second for half a second

    def test_every_request_was_answered(self):
        self.assertEqual((self.report.total, self.report.started), (100, 100))
        self.assertEqual((self.report.errored, self.report.statuses), (0, {2: 100}))
        self.assertEqual((self.report.seconds, self.report.connect_ms), (0.52779, 0.075))

    def test_the_answers_are_those_of_the_log(self):
        self.assertEqual(len(self.report.answers), 100)
        first = self.report.answers[0]
        self.assertAlmostEqual(first.start_s, 1795254205.26473, places=6)
        self.assertEqual((first.status, first.ms), (200, 0.066))

    def test_they_began_evenly(self):
        starts = sorted(answer.start_s for answer in self.report.answers)
        self.assertAlmostEqual(starts[-1] - starts[0], 0.49, delta=0.05)
        self.assertLess(max(later - earlier for earlier, later in zip(starts, starts[1:])), 0.06)

    def test_as_a_load(self):
        load = self.report.load()
        self.assertEqual((load.requests, load.errors, load.connects), (100, {}, False))
        times = sorted(answer.ms for answer in self.report.answers)
        self.assertEqual((load.percentiles[50], load.percentiles[99], load.percentiles[100]),
                         (times[49], times[98], times[99]))


class RunWithErrors(unittest.TestCase):
    GOOD = [200] * 90
    LOGGED = {"503": [*GOOD, *[503] * 10], "302": [*GOOD, *[302] * 10], "reset": GOOD,
              "short": GOOD, "timeout": GOOD, "refused": []}

    def test_each_by_its_kind(self):
        for name, requests, errors in [("503", 90, {"not 2xx": 10}), ("302", 90, {"not 2xx": 10}),
                                       ("reset", 90, {"reset": 10}), ("short", 90, {"reset": 10}),
                                       ("timeout", 90, {"time-out": 10}),
                                       ("refused", 0, {"connect": 40})]:
            with self.subTest(name=name):
                found = report(name, *self.LOGGED[name])
                load = found.load()
                self.assertEqual((load.requests, load.errors), (requests, errors))
                self.assertEqual(load.requests + load.failed, found.total)

    def test_nothing_answered_has_no_times(self):
        load = report("refused").load()
        self.assertEqual((load.mean_ms, load.percentiles, load.rate), (0.0, {}, 0.0))


class RunWithoutSummary(unittest.TestCase):
    def test_a_cut_summary_is_trouble(self):
        whole = sample("clean.txt")
        for cut in ("finished in", "status codes", "time for connect"):
            with self.subTest(cut=cut), self.assertRaisesRegex(Trouble, "no summary"):
                h2load.parse(whole[:whole.index(cut)], sample("clean.tsv"))

    def test_a_cut_log_is_trouble(self):
        lines = sample("clean.tsv").splitlines()
        with self.assertRaisesRegex(Trouble, "counted 100 answers, and logged 99"):
            h2load.parse(sample("clean.txt"), "\n".join(lines[:-1]))


class Figures(unittest.TestCase):
    def test_times_in_all_units(self):
        self.assertEqual([h2load.milliseconds(text) for text in ("381us", "6.25ms", "1.50s")],
                         [0.381, 6.25, 1500.0])
        with self.assertRaises(Trouble):
            h2load.milliseconds("7")

    def test_percentiles_are_times_that_occurred(self):
        times = [float(number) for number in range(1, 201)]
        self.assertEqual(h2load.percentiles(times, (0, 50, 99, 99.9, 100)),
                         {0: 1.0, 50: 100.0, 99: 198.0, 99.9: 200.0, 100: 200.0})
        self.assertEqual(h2load.percentiles([3.0], (50, 99)), {50: 3.0, 99: 3.0})

    def test_any_whole_rate_has_a_period(self):
        self.assertEqual(h2load.pace(100), (1, 10))
        self.assertEqual(h2load.pace(250), (3, 12))
        for rate in (1, 7, 33, 100, 333, 1001, 12345):
            connections, period_ms = h2load.pace(rate)
            self.assertEqual(connections * 1000, rate * period_ms)
            self.assertGreaterEqual(period_ms, 10)

    def test_half_a_connection_a_second_has_none(self):
        with self.assertRaises(Trouble):
            h2load.pace(0.5)


class Command(unittest.TestCase):
    def test_new_connections_one_for_each_request(self):
        self.assertEqual(h2load.command("http://h/", 100, 5, "log", 200),
                         ["h2load", "--h1", "-n", "100", "--log-file=log", "-N", "5000ms",
                          "-c", "100", "-r", "2", "--rate-period=10ms", "http://h/"])


if __name__ == "__main__":
    unittest.main()
