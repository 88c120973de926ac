"""What cost makes of its figures, and what the parts of a bar look like."""

import argparse
import types
import unittest

import programs
from lib import cells, rounds
from lib.measuring import calls, idle, machine, meter
from lib.reporting import chart, gnuplot, table
from lib.subjects import servers
from lib.generators.load import Load

cost = programs.load("cost")

FOUND = {"epoll": {"recvfrom": 1.0, "epoll_wait": 0.0712, "brk": 0.001},
         "iterative": {"recvfrom": 2.0, "close": 1.0}}


def cell(user_us=300.0, switches=None, subject="epoll"):
    load = Load(1000, {}, 1.0, 1.0, {50: 1.0, 90: 1.0, 99: 1.0, 100: 1.0}, True)
    core = meter.Core(80.0, 0.0, 30.0)
    reading = meter.Reading(1.0, 1000.0, user_us, switches, None, 1, 1,
                            machine.Cores(core, core, core), {}, {})
    return cells.Cell(cells.Spot(subject, "wrk", 100), 1, load=load, reading=reading)


class SystemCalls(unittest.TestCase):
    def test_a_row_for_each_name_the_most_frequent_first_and_their_sum(self):
        header, rows = cost.calls_by_name(FOUND)
        self.assertEqual(header, ["call", "epoll", "iterative"])
        self.assertEqual(rows, [["recvfrom", "1.00", "2.00"], ["close", "", "1.00"],
                                ["epoll_wait", "0.07", ""], ["all", "1.07", "3.00"]])

    def test_in_a_chart_the_rare_ones_are_together(self):
        many = {"one": {"call%d" % n: 100 - n for n in range(12)}, "other": {"call11": 5}}
        folded = cost.folded(many, cost.by_sum(many))
        self.assertEqual(len(folded["one"]), cost.MOST_NAMES + 1)
        self.assertEqual(sum(folded["one"].values()), sum(many["one"].values()))
        self.assertEqual(folded["other"]["others"] + folded["other"].get("call11", 0), 5)

    def test_kept_by_one_who_keeps_nobody_has_a_note(self):
        run = types.SimpleNamespace(calls={("iterative", "kept page"): calls.PerRequest(FOUND[
            "iterative"], 100)})
        notes = table.Notes()
        self.assertEqual(cost.total_text(run, "iterative", "kept page", notes), "3.00 (1)")
        self.assertEqual(cost.total_text(run, "epoll", "kept page", notes), "-")


class Processor(unittest.TestCase):
    def test_the_user_s_share_is_of_the_clean_rounds(self):
        spot = rounds.Spot([cell(100.0), cell(200.0), cell(900.0)])
        self.assertAlmostEqual(cost.user_share(spot), 0.2)
        self.assertIsNone(cost.user_share(rounds.Spot([cell(None)])))

    def test_switches_as_the_kernel_counted_them(self):
        self.assertEqual(cost.switches(cell(switches=meter.Switches(3000, 500)), None), 3.5)
        self.assertIsNone(cost.switches(cell(subject="floor"), None))

    def test_or_else_as_the_server_says_at_its_end(self):
        said = servers.farewell(
            "forking: listening on http://127.0.0.1:36551\nforking: 1200 requests on 302 "
            "connections; CPU 0.21 s user, 0.13 s system; peak memory 2072 KiB; context switches "
            "43248 voluntary, 1301 involuntary\n")
        self.assertEqual(said, servers.Farewell(1200, 44549))
        self.assertIsNone(servers.farewell("forking: listening on http://127.0.0.1:36551\n"))


class Memory(unittest.TestCase):
    def setUp(self):
        zero = dict.fromkeys(idle.FIGURES, 1 << 20)
        some = dict(zero, pss=(1 << 20) + 1024 * 10 * 600)
        self.run_ = types.SimpleNamespace(
            options=types.SimpleNamespace(idle=[100, 600, 1000]),
            idle={("epoll", 600): [idle.Idle(600, zero, some)]})

    def test_a_row_of_kib_a_connection(self):
        self.assertEqual(cost.memory_row(self.run_, "epoll", 600, table.Notes()),
                         ["epoll", "600", "10.0", "0.0", "0.0", "10.0", "1.0", "2.0"])

    def test_who_cannot_hold_so_many_has_one_row_that_says_so(self):
        notes = table.Notes()
        self.assertIsNone(cost.memory_row(self.run_, "preforking", 100, notes))  # not measured
        self.assertEqual(cost.memory_row(self.run_, "preforking", 600, notes)[:3],
                         ["preforking", "600 (1)", "-"])
        self.assertIsNone(cost.memory_row(self.run_, "preforking", 1000, notes))
        self.assertIn("100 workers", notes.numbered()[0][1])


@unittest.skipUnless(gnuplot.available(), "needs gnuplot")
class Stacked(unittest.TestCase):
    def test_names_parts_and_sums_are_written(self):
        svg = chart.stacked("t", "A title", chart.Axis("calls"),
                            {"": {"poll": {"read": 30, "write": 12}, "epoll": {"read": 3}}})
        for text in ("A title", "poll", "epoll", "read", "write", ">42", "calls"):
            self.assertIn(text, svg)

    def test_a_part_has_its_colour_also_where_the_one_before_it_is_nothing(self):
        for before in (1, 0):
            svg = chart.stacked("t", "T", chart.Axis("x"), {"": {"one": {"a": before, "b": 1}}})
            self.assertIn("fill = '%s'" % chart.PARTS[1], svg)
            self.assertEqual("fill = '%s'" % chart.PARTS[0] in svg, before == 1)


if __name__ == "__main__":
    unittest.main()
