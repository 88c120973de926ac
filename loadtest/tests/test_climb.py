"""A load that rises: how high, in which steps, what was held, and the figures of the pictures."""

import unittest

import programs
from lib import climb
from lib.generators import h2load

WAY = climb.Way("epoll")


def report(total=1000, answers=(), errored=0, timeout=0, statuses=None, started=None):
    return h2load.Report(
        total=total, started=total if started is None else started,
        errored=errored, timeout=timeout,
        statuses={2: len(answers)} if statuses is None else statuses, seconds=1.0,
        connect_ms=0.1, answers=list(answers))


def step(offered, times=(1.0,) * 100, began=100.0, **more):
    """One second of `offered`, whose replies took so long, asked for at even intervals."""
    made = climb.Step(WAY, offered, 1.0, began=began)
    answers = [h2load.Answer(began + number / len(times), 200, ms)
               for number, ms in enumerate(times)]
    made.take(report(total=offered, answers=answers, **more))
    return made


class Held(unittest.TestCase):
    def test_without_errors_and_99_of_100_in_time(self):
        self.assertIsNone(step(100).why_not)
        self.assertIsNone(step(100, [1.0] * 99 + [5000.0]).why_not)
        self.assertIsNone(step(100, [49.9] * 100).why_not)

    def test_late_is_50_ms(self):
        self.assertEqual(step(100, [50.0] * 100).why_not, "p99 of 50 ms")
        self.assertEqual(step(100, [1.0] * 98 + [70.0] * 2).why_not, "p99 of 70 ms")

    def test_one_error_is_enough(self):
        self.assertEqual(step(101, errored=1).why_not, "1 reset")
        self.assertEqual(step(101, errored=1, timeout=1).why_not, "1 time-out")
        self.assertEqual(step(101, statuses={2: 100, 5: 1}).why_not, "1 not 2xx")

    def test_neither_is_nothing_nor_what_is_wrong(self):
        self.assertEqual(step(100, times=()).why_not, "nothing was answered")
        self.assertEqual(climb.Step(WAY, 100, 1.0).why_not, "it was not offered")
        wrong = step(100)
        wrong.wrong.append("unequal")
        self.assertEqual(wrong.why_not, "unequal")

    def test_only_good_answers_stay(self):
        made = climb.Step(WAY, 2, 1.0)
        made.take(report(2, [h2load.Answer(1.0, 200, 3.0), h2load.Answer(1.5, 503, 9.0)],
                         statuses={2: 1, 5: 1}))
        self.assertEqual((list(made.starts), list(made.times)), ([1.0], [3.0]))
        self.assertEqual(made.report.answers, [])
        self.assertEqual(made.load.requests, 1)


class Raw(unittest.TestCase):
    def test_the_99th_percentile_of_a_thousand_is_not_the_999th(self):
        ramp = programs.load("ramp").Ramp
        row = dict(zip(ramp.columns, ramp.raw(step(1000, [1.0] * 980 + [20.0] * 18 + [40.0] * 2))))
        self.assertEqual((row["p99_ms"], row["max_ms"]), ("20.000", "40.000"))


class Knee(unittest.TestCase):
    def test_it_is_the_highest_that_is_held(self):
        late = [60.0] * 100
        steps = [step(100), step(200, late), step(300), step(400, late), step(500, late)]
        self.assertEqual(climb.top(steps).offered, 300)
        self.assertEqual(climb.broke(steps).offered, 400)

    def test_there_may_be_none(self):
        steps = [step(200, [60.0] * 100), step(100, [60.0] * 100)]
        self.assertIsNone(climb.top(steps))
        self.assertEqual(climb.broke(steps).offered, 100)

    def test_a_climb_may_end_before_it(self):
        self.assertIsNone(climb.broke([step(100), step(200)]))


class Range(unittest.TestCase):
    def highest(self, limit, **range_):
        """Where to go if more than `limit` is too much; and the loads that were tried."""
        tried = []

        def breaks(load):
            tried.append(load)
            return load > limit

        return climb.highest(breaks, **range_), tried

    def test_doubles_until_it_breaks_and_halves_the_gap_twice(self):
        top, tried = self.highest(3000)
        self.assertEqual(tried, [100, 200, 400, 800, 1600, 3200, 2400, 2800])
        self.assertEqual(top, 4800)  # 3200 broke

    def test_a_slow_server_breaks_at_once(self):
        top, tried = self.highest(7)
        self.assertEqual(tried, [100, 50, 25, 12])
        self.assertEqual(top, 20)

    def test_what_cannot_be_broken_is_climbed_to_the_end(self):
        self.assertEqual(self.highest(10 ** 9, first=100, most=500), (500, [100, 200, 400, 500]))

    def test_steps_are_even_and_different(self):
        self.assertEqual(climb.heights(1000, 4000, 4), [1000, 2000, 3000, 4000])
        self.assertEqual(climb.heights(100, 300, 9), [100, 200, 300])
        self.assertEqual(climb.heights(700, 700, 1), [700])

    def test_h2load_spreads_every_step_evenly(self):
        for load in [0.2, 7, 33, 99, 100, 149, 1234, 25600]:
            with self.subTest(load=load):
                connections, period_ms = h2load.pace(climb.even(load))
                self.assertTrue(period_ms == h2load.LEAST_PERIOD_MS or connections == 1)


class Pictures(unittest.TestCase):
    def test_what_was_offered_is_level_and_has_gaps(self):
        steps = [step(100, began=100.0), step(200, began=103.0)]
        self.assertEqual(climb.offered_over_time(steps), [
            (0.0, 100), (1.0, 100), (1.0, None), (3.0, 200), (4.0, 200), (4.0, None)])

    def test_replies_count_when_they_are_complete(self):
        steps = [step(2, [100.0, 1500.0])]  # asked at 0 and 0.5 s, complete at 0.1 and 2 s
        steps += [step(2, [0.0, 250.0], began=103.0)]
        self.assertEqual(climb.replies_over_time(steps, 0.5), [
            (0.25, 2.0), (0.75, 0.0), (1.25, 0.0), (1.75, 0.0), (1.75, None),
            (3.25, 2.0), (3.75, 2.0), (3.75, None)])

    def test_times_count_when_they_were_asked_for(self):
        steps = [step(4, [1.0, 3.0, 20.0, 40.0]), step(2, [7.0, 7.0], began=102.0)]
        self.assertEqual(climb.times_over_time(steps)[:3], [(0.0, 1.0), (0.25, 3.0), (0.5, 20.0)])
        self.assertEqual(climb.medians_over_time(steps, 0.375), [
            (0.1875, 2.0), (0.5625, 20.0), (0.5625, None), (2.1875, 7.0), (2.1875, None)])

    def test_nothing_answered_is_nothing_drawn(self):
        steps = [step(100, times=())]
        self.assertEqual(climb.replies_over_time(steps, 0.5), [])
        self.assertEqual(climb.medians_over_time(steps, 0.5), [])
        self.assertEqual(climb.bins(climb.all_times(steps)), [])

    def test_every_reply_is_in_the_bin_it_belongs_to(self):
        times = [0.0, 0.5, 1.0, 1.2, 9.99, 10.0, 999.0]
        found = climb.bins(times)
        self.assertEqual(sum(number for _, _, number in found), len(times))
        self.assertAlmostEqual(found[2][0], 1.0)
        self.assertEqual(found[2][2], 2)
        for low, high, number in found:
            self.assertEqual(number, sum(low <= max(ms, 0.001) < high for ms in times))

    def test_what_became_of_the_requests_in_percent(self):
        self.assertEqual(climb.outcomes(step(200, errored=80, timeout=30,
                                             statuses={2: 100, 5: 20})),
                         {"2xx": 50.0, "5xx": 10.0, "reset": 25.0, "time-out": 15.0})
        self.assertEqual(climb.outcomes(climb.Step(WAY, 100, 1.0)), {})


class WhoWasFull(unittest.TestCase):
    def test_as_a_sentence(self):
        for server, other, text in (
                (97, 30, "A (97 %) was full; B (30 %) loafed"),
                (97, 60, "A (97 %) was full"),
                (97, 75, "A (97 %) and B (75 %) were full"),
                (20, 49.9, "none was full: late requests had waited, not worked; A (20 %) and "
                 "B (50 %) loafed"),
                (74.9, 50, "none was full: late requests had waited, not worked"),
                (None, 20, "none whose core is known here was full; B (20 %) loafed"),
                (None, 80, "B (80 %) was full"),
                (None, None, "none whose core is known here was full")):
            with self.subTest(server=server, other=other):
                self.assertEqual(climb.who_was_full({"A": server, "B": other}), text)


if __name__ == "__main__":
    unittest.main()
