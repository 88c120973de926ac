"""httperf's reports, as httperf 0.9.0 wrote them, are understood."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from lib import Trouble
from lib.generators import httperf


def sample(name):
    with open(os.path.join(HERE, "samples", "httperf_" + name), encoding="utf-8") as file:
        return file.read()


def report(name):
    return httperf.parse(sample(name + ".txt"))


class CleanRun(unittest.TestCase):
    def setUp(self):
        self.report = report("clean")  # 200 connections a second for 6 s

    def test_every_connection_had_its_reply(self):
        self.assertEqual((self.report.connections, self.report.requests, self.report.replies),
                         (1200, 1200, 1200))
        self.assertEqual((self.report.statuses, self.report.errors), ({2: 1200}, {}))
        self.assertIsNone(self.report.void)

    def test_rates(self):
        self.assertEqual(self.report.connection_rate, 200.1)
        self.assertAlmostEqual(self.report.reply_rate, 1200 / 5.997)
        self.assertEqual((self.report.reply_rate_min, self.report.reply_rate_mean,
                          self.report.reply_rate_max, self.report.samples),
                         (200.0, 200.0, 200.0, 1))

    def test_times(self):
        self.assertEqual((self.report.connection_ms_mean, self.report.connection_ms_max,
                          self.report.connection_ms_median, self.report.connect_ms),
                         (0.9, 37.1, 0.5, 0.2))
        self.assertEqual(self.report.most_at_once, 13)

    def test_as_a_load(self):
        load = self.report.load()
        self.assertEqual((load.requests, load.errors, load.mean_ms, load.connects),
                         (1200, {}, 0.9, True))
        self.assertEqual(load.percentiles, {50: 0.5, 100: 37.1})


class RunWithErrors(unittest.TestCase):
    def test_each_by_its_kind(self):
        for name, errors, text in [("reset", {"connreset": 20}, "20 reset"),
                                   ("timeout", {"client-timo": 20}, "20 time-out"),
                                   ("refused", {"connrefused": 100}, "100 connect"),
                                   ("503", {}, "20 not 2xx")]:
            with self.subTest(name=name):
                self.assertEqual(report(name).errors, errors)
                self.assertEqual(report(name).load().errors_text(), text)

    def test_only_2xx_count_as_requests(self):
        self.assertEqual(report("503").statuses, {2: 180, 5: 20})
        self.assertEqual(report("503").load().requests, 180)
        self.assertEqual(report("refused").load().requests, 0)

    def test_out_of_descriptors_the_row_is_void(self):
        self.assertEqual(report("full").void, "1,981 fd-unavail")
        self.assertEqual(report("full").load().errors, {"connect": 1981})
        self.assertIsNone(report("reset").void)


class RunWithoutReport(unittest.TestCase):
    def test_a_cut_report_is_trouble(self):
        whole = sample("clean.txt")
        with self.assertRaisesRegex(Trouble, "lacks: Reply rate"):
            httperf.parse(whole[:whole.index("Reply rate")])
        with self.assertRaisesRegex(Trouble, "lacks"):
            httperf.parse(whole[:whole.index("Errors: fd-unavail")])


class Command(unittest.TestCase):
    def test_the_address_is_taken_apart(self):
        self.assertEqual(httperf.command("http://127.0.0.1:81/a/b", 250, 500, 5),
                         ["httperf", "--server", "127.0.0.1", "--port", "81",
                          "--uri", "/a/b", "--rate", "250", "--num-conns", "500",
                          "--timeout", "5"])


if __name__ == "__main__":
    unittest.main()
