"""The reports of ab 2.3, wrk 4.1 and h2load 1.52 are understood, and an open loop counts from the
moment intended."""

import math
import unittest
from collections import defaultdict

import programs
from lib import Trouble
from lib.measuring import machine
from lib.generators import ab, h2load, load, wrk

CSV = "".join("%d,%d.5\n" % (percent, percent) for percent in range(100))  # as ab -e writes it
REPORTS = {  # the lines that are read, and some that look like them
    "ab": """\
Time taken for tests:   2.632 seconds
Complete requests:      %(complete)d
Failed requests:        %(failed)d
   (Connect: 0, Receive: %(reset)d, Length: 0, Exceptions: %(exceptions)d)
Non-2xx responses:      %(bad)d
Total transferred:      102016891 bytes
HTML transferred:       89316541 bytes
Time per request:       6.921 [ms] (mean)
  50%%      7
 100%%     15 (longest request)
""",
    "h2load": """\
finished in 527.79ms, 189.47 req/s, 130.26KB/s
requests: 100 total, %(started)d started, %(done)d done, 0 succeeded, 0 failed, %(errored)d errored, %(late)d timeout
status codes: %(heads)d 2xx, %(moved)d 3xx, 0 4xx, %(bad)d 5xx
time for request:       27us      1.86ms        99us       255us    98.00%%
""",
    "wrk": """\
Running 1s test @ http://127.0.0.1:44549/
{"requests":%(all)d,"microseconds":1000000,"bytes":6597184,"connect":0,"read":%(reset)d,"write":0,"status":%(bad)d,\
"timeout":%(late)d,"times":[[1000,%(all)d]]}
"""}


def wrote(tool, **figures):
    """A report with these figures. The others are zero."""
    return REPORTS[tool] % defaultdict(int, figures)


def log_of(**statuses):
    """h2load's, with so many answers of each status."""
    return "".join("1795254205264730\t%s\t66\n" % status[1:] * count for status, count in statuses.items())


class Reports(unittest.TestCase):
    def check(self, found, requests, errors):
        """Good answers, and errors in words."""
        self.assertEqual((found.requests, found.errors_text()), (requests, errors))

    def test_ab_s(self):
        for complete, figures, requests, errors in (
                (38025, {}, 38025, ""), (200, {"reset": 20, "exceptions": 20}, 180, "20 reset"),
                (200, {"reset": 200, "exceptions": 100}, 0, "200 reset"),  # refused
                (200, {"bad": 50}, 150, "50 not 2xx")):
            self.check(ab.parse(wrote("ab", complete=complete, **figures), CSV), requests, errors)

    def test_wrk_s(self):
        for figures, requests, errors in (
                ({}, 1000, ""), ({"reset": 20}, 1000, "20 reset"), ({"late": 8}, 992, "8 time-out"),
                ({"bad": 5}, 995, "5 not 2xx")):
            self.check(wrk.parse(wrote("wrk", all=1000, **figures), 1), requests, errors)

    def test_h2load_s(self):
        for figures, log, errors in (
                ({"done": 100, "bad": 10}, log_of(_200=90, _503=10), "10 not 2xx"),
                ({"done": 100, "moved": 10}, log_of(_200=90, _302=10), "10 not 2xx"),
                ({"done": 90, "errored": 10}, log_of(_200=90), "10 reset"),
                ({"done": 90, "errored": 10, "heads": 100}, log_of(_200=90), "10 reset"),  # cut short
                ({"done": 90, "errored": 10, "late": 10}, log_of(_200=90), "10 time-out")):
            report = wrote("h2load", **{"started": 100, "heads": 90, **figures})
            self.check(h2load.parse(report, h2load.parse_log(log)), 90, errors)
        self.check(h2load.parse(wrote("h2load", errored=40), []), 0, "40 connect")

    def test_a_report_that_is_cut_is_trouble(self):
        for parse in (lambda: ab.parse(wrote("ab").partition("Failed requests")[0], CSV),
                      lambda: wrk.parse(wrote("wrk").partition("{")[0], 1),
                      lambda: h2load.parse(wrote("h2load", done=100), [])):
            with self.assertRaises(Trouble):
                parse()

    def test_times_are_those_of_the_reports(self):
        clean, many = ab.parse(wrote("ab"), CSV), wrk.parse(wrote("wrk", all=1000), 1)
        self.assertEqual(clean.percentiles, {50: 50.5, 90: 90.5, 99: 99.5, 100: 99.5})
        self.assertEqual((clean.seconds, clean.content), (2.632, 89316541))
        self.assertEqual((many.rate, many.mean_ms, many.percentiles[99]), (1000, 1, 1))
        self.assertEqual([h2load.milliseconds(text) for text in ("381us", "6.25ms", "1.50s")], [0.381, 6.25, 1500.0])
        self.assertEqual(ab.mean([1.0] * 100 + [1001.0]), 6.0)
        self.assertEqual(ab.parse_percentiles(CSV.replace("99,99.5", "99,0.000"))[-2:], [98.5, 98.5])

    def test_what_wrk_added_is_taken_back_exactly(self):
        measured = [(10, 500), (11, 300), (19, 5), (20, 5), (21, 5), (60, 3), (61, 2), (105, 7)]
        for even in (1, 7, 10, 20, 200):
            table = dict(measured)
            for value, count in measured:
                for shorter in range(value - even, even, -even):
                    table[shorter] = table.get(shorter, 0) + count
            left = wrk.uncorrected(sorted(table.items()), even)
            self.assertEqual([pair for pair in left if pair[1]], measured)


class Several(unittest.TestCase):
    """One process for each core."""

    def test_loads_are_added_and_their_times_are_one_distribution(self):
        fast, slow = (load.Load(300, {"reset": 1}, seconds, ms, {50: ms, 99: ms}, 10,
                                times=((ms, 300.0),)) for seconds, ms in ((1.0, 2.0), (1.5, 8.0)))
        both = load.together([fast, slow])
        self.assertEqual((both.requests, both.errors, both.seconds, both.mean_ms, both.content),
                         (600, {"reset": 2}, 1.5, 5.0, 20))
        self.assertEqual(both.percentiles, {50: 2.0, 99: 8.0})
        self.assertEqual(load.shares(10, 3), [4, 3, 3])

    def test_a_meter_ends_when_all_have_ended_and_before_anything_is_read(self):
        save_as, seen = programs.folder(self) + "/run", []

        def ended():
            seen.append([machine.read(save_as + kind) for kind in (".txt", "-1.txt")])

        said = load.run("tool", [["sh", "-c", "sleep 0.%d; echo %d" % (number, number)] for number in (1, 2)], (), save_as, 5,
                        meanwhile=seen.extend, ended=ended)
        self.assertEqual((said, len(seen), seen[-1]), (["1\n", "2\n"], 3, said))

    def test_the_first_that_fails_is_trouble(self):
        for script, why in (("echo no; exit 1", "gave up: no"), ("echo; exit 3", "status 3"),
                            ("exec sleep 60", "not done after 0.05 s")):
            with self.subTest(script), self.assertRaisesRegex(Trouble, why):
                load.run("tool", [["true"], ["sh", "-c", script]], (), programs.folder(self) + "/run",
                         0.05 if "sleep" in script else 5)


# ---- the moment intended ------------------------------------------------------------------------


def answers(*pairs):
    return [h2load.Answer(100 + start, 200, ms) for start, ms in pairs]


class Intended(unittest.TestCase):
    def test_new_connections_that_come_late_have_waited(self):
        found = h2load.behind(answers((0.0, 1), (0.010, 1), (0.120, 1), (0.120, 2)), 1, 10)
        self.assertEqual([round(each.ms, 3) for each in found], [1, 1, 101, 92])

    def test_in_time_is_what_was_answered_soon_after_the_moment_intended(self):
        found = h2load.parse(wrote("h2load", started=4, done=4), answers((0.0, 1), (0.25, 50), (0.5, 51), (0.75, 240)), 50)
        self.assertEqual(found.in_time, 2)

    def test_what_was_lost_has_taken_for_ever(self):
        found = h2load.parse(wrote("h2load", started=100, done=98, errored=2), answers(*[(0.0, 1)] * 98))
        self.assertEqual(found.percentiles, {50: 1, 90: 1, 99: math.inf, 99.9: math.inf, 100: math.inf})


if __name__ == "__main__":
    unittest.main()
