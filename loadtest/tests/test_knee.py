"""The search for the highest rate that is served."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib import knee


def searched(is_good, first=1000, most=64000, close=0.1):
    """The Search, run to its end, and the rates it offered."""
    search, offered = knee.Search(first, most, close), []
    while search.next_rate() is not None:
        offered.append(search.next_rate())
        search.tell(offered[-1], is_good(offered[-1], offered.count(offered[-1])))
        assert len(offered) < 50, offered
    return search, offered


class Knee(unittest.TestCase):
    def test_it_doubles_then_halves_what_is_between(self):
        search, offered = searched(lambda rate, _: rate <= 9999)
        self.assertEqual(offered, [1000, 2000, 4000, 8000, 16000, 16000, 32000, 12000, 12000,
                                   10000, 10000, 9000, 9500])
        self.assertEqual((search.knee, search.ceiling), (9500, 10000))

    def test_it_is_within_what_was_asked_for_wherever_it_lies(self):
        for limit in (130, 999, 1001, 5555, 33333, 63999):
            with self.subTest(limit=limit):
                search, _ = searched(lambda rate, _: rate <= limit)
                self.assertLessEqual(search.knee, limit)
                self.assertGreaterEqual(search.knee, limit / 1.2)

    def test_one_hiccup_is_forgiven(self):
        search, offered = searched(lambda rate, time: rate <= 8000 and (rate, time) != (4000, 1))
        self.assertEqual(search.knee, 8000)
        self.assertEqual(offered.count(4000), 2)

    def test_what_serves_everything_ends_at_the_most_there_is(self):
        search, offered = searched(lambda *_: True, most=5000)
        self.assertEqual(offered, [1000, 2000, 4000, 5000])
        self.assertEqual(search.knee, 5000)

    def test_what_serves_nothing_has_no_knee(self):
        search, offered = searched(lambda *_: False)
        self.assertIsNone(search.knee)
        self.assertEqual(offered, [1000, 1000, 2000, 500, 500, 250, 250, 125, 125])

    def test_a_rate_below_one_that_was_served_is_not_too_much(self):
        search, offered = searched(lambda rate, _: rate <= 30000 and rate != 4000)
        self.assertEqual(offered[:7], [1000, 2000, 4000, 4000, 8000, 16000, 32000])
        self.assertEqual(search.knee, 30000)

    def test_with_one_try_a_failure_is_believed(self):
        search, offered = knee.Search(1000, 64000, 0.1, tries=1), []
        while search.next_rate() is not None:
            offered.append(search.next_rate())
            search.tell(offered[-1], offered[-1] < 4000)
        self.assertEqual(offered[:4], [1000, 2000, 4000, 3000])

    def test_of_rates_given_each_counts_at_once(self):
        search = knee.Search(100, 400, 0.1, tries=1)
        for rate, is_good in ((100, True), (200, True), (400, False)):
            search.tell(rate, is_good)
        self.assertEqual((search.knee, search.ceiling), (200, 400))

    def test_rates_are_round(self):
        self.assertEqual([knee.round_down(rate) for rate in (7.9, 99, 157, 1559, 23999)],
                         [7, 99, 155, 1550, 23500])
