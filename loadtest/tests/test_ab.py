"""ab's reports, as ab 2.3 wrote them, are understood. The samples lie in samples/."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from lib import Trouble
from lib.generators import ab


def sample(name):
    with open(os.path.join(HERE, "samples", name), encoding="utf-8") as file:
        return file.read()


def report(name):
    """With the percentiles of a clean run: they have the same form in all."""
    return ab.parse(sample(name + ".txt"), sample("clean.csv"))


class CleanRun(unittest.TestCase):
    def setUp(self):
        self.load = report("clean")

    def test_every_request_brought_its_page(self):
        self.assertEqual(self.load.requests, 38025)
        self.assertEqual((self.load.failed, self.load.errors_text()), (0, ""))
        self.assertEqual(self.load.content, 89316541)

    def test_the_rate_is_ab_s_own(self):
        self.assertAlmostEqual(self.load.rate, 14448.39, delta=5)

    def test_the_percentiles_agree_with_the_rounded_ones_in_the_text(self):
        for percent in (50, 90, 99):
            rounded = [line.split()[1] for line in sample("clean.txt").splitlines()
                       if line.split()[:1] == ["%d%%" % percent]]
            self.assertEqual([str(int(self.load.percentiles[percent] + 0.5))], rounded)

    def test_the_mean_is_in_the_middle(self):
        self.assertAlmostEqual(self.load.mean_ms, self.load.percentiles[50], delta=0.7)

    def test_little_s_law_holds(self):
        self.assertAlmostEqual(self.load.rate * self.load.mean_ms / 1000, 100, delta=2)


class Mean(unittest.TestCase):
    def test_of_what_is_all_alike(self):
        self.assertEqual(ab.mean([7.0] * 101), 7.0)

    def test_of_what_rises_evenly(self):
        self.assertAlmostEqual(ab.mean([float(n) for n in range(101)]), 50.0)

    def test_a_hundredth_that_waits_long_is_felt(self):
        self.assertAlmostEqual(ab.mean([1.0] * 100 + [1001.0]), 1.0 + 500 / 100)


class Command(unittest.TestCase):
    def test_the_number_stands_behind_the_time(self):
        words = ab.command("http://x/", 20, "x.csv", seconds=3)
        self.assertLess(words.index("-t"), words.index("-n"))

    def test_a_counted_run(self):
        words = ab.command("http://x/", 20, "x.csv", requests=500)
        self.assertNotIn("-t", words)
        self.assertEqual(words[words.index("-n") + 1], "500")


class RunWithErrors(unittest.TestCase):
    def test_a_reset_is_one_error_though_ab_counts_two(self):
        resets = report("resets")  # every tenth of 200
        self.assertEqual((resets.requests, resets.failed), (180, 20))
        self.assertEqual(resets.errors_text(), "20 reset")

    def test_another_status_is_an_error(self):
        refusals = report("not_2xx")  # every fourth of 200
        self.assertEqual((refusals.requests, refusals.failed), (150, 50))
        self.assertEqual(refusals.errors_text(), "50 not 2xx")

    def test_a_dead_server_serves_no_page_however_fast(self):
        refused = report("refused")
        self.assertEqual((refused.requests, refused.rate), (0, 0))
        self.assertGreater(refused.failed, 0)

    def test_ab_does_not_notice_empty_answers(self):
        self.assertEqual(report("empty").requests, 200)  # 180 in truth: Redis will tell


class RunWithoutReport(unittest.TestCase):
    def test_a_cut_report_is_trouble(self):
        whole = sample("clean.txt")
        with self.assertRaisesRegex(Trouble, "lacks: failed"):
            ab.parse(whole[:whole.index("Failed requests")], sample("clean.csv"))

    def test_a_cut_file_of_percentiles_is_trouble(self):
        lines = sample("clean.csv").splitlines()
        for kept in (0, 1, 100):
            with self.subTest(kept=kept), self.assertRaises(Trouble):
                ab.parse_percentiles("\n".join(lines[:kept]))

    def test_older_ab_write_no_hundredth_percentile(self):
        lines = sample("clean.csv").splitlines()
        self.assertEqual(lines[-1].split(",")[0], "100")
        self.assertEqual(len(ab.parse_percentiles("\n".join(lines[:-1]))), 100)


if __name__ == "__main__":
    unittest.main()
