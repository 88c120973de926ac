"""The order of the turns, and what several rounds come to."""

import os
import sys
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib import cells, kept, rounds, run
from lib.cells import Spot

NAMES = ["iterative", "forking", "poll", "epoll", "floor"]
SPOTS = [Spot(name, "ab", clients) for clients in (20, 100) for name in NAMES]


class Hopeless(unittest.TestCase):
    def test_where_a_generator_gave_up_it_is_not_sent_again(self):
        good, bad = SPOTS[:2]

        def measure(cell, _run):
            if cell.spot == bad:
                cell.wrong.append("ab gave up")
            else:
                cell.load = SimpleNamespace(rate=1.0)

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(cells, "measure", measure):
            it = object.__new__(run.Run)
            vars(it).update(folder=folder, cells=[], seconds=1.0, planned=0, asked={},
                            per_client=2, most_seconds=5,
                            kept=kept.Kept(None, None),
                            experiment=SimpleNamespace(columns=[], raw=lambda cell: []))
            it.measure_cells([(number, spot) for number in (1, 2, 3) for spot in (good, bad)])
        self.assertEqual([(cell.round, cell.spot) for cell in it.cells],
                         [(1, good), (1, bad), (2, good), (3, good)])
        self.assertEqual(it.planned, 4)


class Canary(unittest.TestCase):
    def run_of(self, *rates):
        """A run whose floor made these rates, round by round, at 20 clients and at 100."""
        it = object.__new__(run.Run)
        it.cells = [SimpleNamespace(spot=spot, load=SimpleNamespace(rate=rate, failed=0), wrong=[])
                    for each in rates for spot, rate in zip(SPOTS[4::5], each)]
        return it

    def test_the_drift_is_that_of_most_of_its_cells(self):
        self.assertEqual(self.run_of((100, 200), (110, 260), (100, 200)).drift(), (20, 30))
        self.assertEqual(self.run_of((100, 200)).drift(), ())

    def test_a_noisy_hour_is_in_the_caption(self):
        self.assertEqual(self.run_of((100, 200), (110, 220)).caption("Pages"), "Pages")
        self.assertEqual(self.run_of((100, 200), (120, 240)).caption("Pages"),
                         "Pages, in a noisy hour: the floor drifted by 18 %")


class Order(unittest.TestCase):
    def test_each_spot_has_one_turn_a_round(self):
        turns = rounds.order(SPOTS, 3, 7)
        self.assertEqual(len(turns), 3 * len(SPOTS))
        for number in (1, 2, 3):
            self.assertEqual({spot for turn, spot in turns if turn == number}, set(SPOTS))

    def test_rounds_follow_one_another(self):
        numbers = [number for number, _ in rounds.order(SPOTS, 3, 7)]
        self.assertEqual(numbers, sorted(numbers))

    def test_only_the_subjects_are_shuffled(self):
        for number, spot in enumerate(rounds.order(SPOTS, 1, 7)):
            self.assertEqual(spot[1].clients, 20 if number < len(NAMES) else 100)

    def test_a_seed_means_an_order(self):
        self.assertEqual(rounds.order(SPOTS, 3, 7), rounds.order(SPOTS, 3, 7))
        orders = {tuple(rounds.order(SPOTS, 1, seed)) for seed in range(20)}
        self.assertGreater(len(orders), 10)

    def test_the_rounds_of_a_run_differ(self):
        turns = rounds.order(SPOTS, 6, 7)
        size = len(SPOTS)
        orders = {tuple(spot for _, spot in turns[at:at + size])
                  for at in range(0, len(turns), size)}
        self.assertGreater(len(orders), 3)


def cell(rate, wrong=(), failed=0, bound="server-bound"):
    load = SimpleNamespace(rate=rate, failed=failed, percentiles={99: 1000.0 / rate})
    return SimpleNamespace(spot=SPOTS[0], load=load, wrong=list(wrong), remarks=[], micros=50.0,
                           reading=SimpleNamespace(verdict=lambda: bound, peak_pss=2 << 20))


class Rounds(unittest.TestCase):
    def test_the_median_and_what_stands_beside_it(self):
        spot = rounds.Spot([cell(300.0), cell(100.0), cell(110.0)])
        self.assertEqual((spot.rate.median, spot.rate.low, spot.rate.high), (110.0, 100.0, 300.0))
        self.assertEqual(spot.rate.mean, 170.0)
        self.assertAlmostEqual(spot.rate.relative, 200 / 110)
        self.assertEqual(spot.percentile(99).median, 1000 / 110)
        self.assertEqual(spot.pss_mib.median, 2.0)

    def test_a_round_with_errors_is_not_averaged_into_the_clean_ones(self):
        spot = rounds.Spot([cell(100.0), cell(900.0, ["3 reset"], failed=3), cell(110.0)])
        self.assertEqual((spot.rate.low, spot.rate.high), (100.0, 110.0))
        self.assertEqual((spot.failed, spot.wrong), (3, ["3 reset"]))

    def test_no_clean_round_means_no_figure(self):
        dead = SimpleNamespace(spot=SPOTS[0], load=None, wrong=["it did not start"], remarks=[])
        spot = rounds.Spot([dead, dead])
        self.assertIsNone(spot.rate)
        self.assertEqual((spot.bound, spot.wrong), ("", ["it did not start"]))

    def test_whose_limit_it_is_most_rounds_say(self):
        spot = rounds.Spot([cell(1, bound="server"), cell(1, bound="mixed"),
                            cell(1, bound="mixed")])
        self.assertEqual(spot.bound, "mixed")

    def test_cells_are_gathered_by_their_spot(self):
        cells = [cell(1.0), cell(2.0)]
        self.assertEqual(list(rounds.by_spot(cells)), [SPOTS[0]])
        self.assertEqual(rounds.by_spot(cells)[SPOTS[0]].cells, cells)


if __name__ == "__main__":
    unittest.main()
