"""What tables say, from rows of cells.tsv: again by hand; and what may not be said."""

import itertools
import math
import os
import statistics
import unittest
import xml.etree.ElementTree

import programs
import simulate
from lib import cells, rows
from lib.reporting import chart, report, table

RESULTS = os.path.join(programs.LOADTEST, "results")
latency, sweep, compare, cost = map(programs.load, ("latency", "sweep", "compare", "cost"))
NOISE = [1.0, 1.2, 0.9, 1.1, 0.8, 1.05, 0.95]


def row(number, subject, rate, cpu=100, **more):
    return {**dict.fromkeys(cells.COLUMNS, ""), "round": str(number), "subject": subject, "generator": "wrk",
            "path": "/guestbook", "clients": "100", "idle": "0", "work_ms": "0", "cores": "1", "requests": "1000",
            "failed": "0", "requests_per_second": str(rate), "server_cpu_us": str(1000 * cpu),
            "p99_ms": "1", "tries": "1", "little_off": "0.01", **busy(99, 60), **more}


def busy(server, client, redis=None, used=(20, 10), others=0):
    """Percent of each core; Redis is on that of the client, unless it has its own."""
    return dict(zip(("server_core_busy", "client_core_busy", "redis_core_busy", "client_percent", "redis_percent",
                     "others_percent"), map(str, (server, client, client if redis is None else redis, *used, others))))


FULL_CLIENT = busy(60, 99)


def cells_of(run):
    """Of a stored run."""
    return rows.judged(programs.cells(os.path.join(RESULTS, run)))


def rounds(subject, rate=1000, number=7, **more):
    return [row(each + 1, subject, rate * NOISE[each], 10 * NOISE[each], **more) for each in range(number)]


class Figures(unittest.TestCase):
    def test_the_stored_table_is_computed_again_from_its_cells(self):
        """By other few lines."""
        known = cells_of("compare")
        for kind in ("ab", "wrk"):
            own = [each for each in known if each["generator"] == kind]
            for figure, column in ((rows.RATE, None), (rows.MICROS, "server_cpu_us")):
                header, lines = rows.table(own, "clients", figure)
                self.assertEqual(header[1:4], ["20 clients", "100 clients", "500 clients"])
                for name, *texts in lines:
                    for clients, text in zip((20, 100, 500), texts):
                        values = sorted(float(each[column]) / int(each["requests"]) if column else float(
                            each["requests_per_second"]) for each in own if (each["subject"], each["clients"]) == (
                                name, str(clients)))
                        self.assertEqual(len(values), 7)
                        form = table.count if not column else table.two_digits
                        self.assertTrue(text.endswith("%s [%s-%s]" % (form(statistics.median(values)), form(
                            values[0]), form(values[-1]))), text)

    def test_so_are_the_ratios_of_the_ladder_each_within_its_round(self):
        known = {(each["server_steps"], each["kind"], each["round"]): float(each["cpu_us"])
                 for each in programs.cells(os.path.join(RESULTS, "ladder"))}
        last = max(int(number) for _, _, number in known)
        ratios = sorted(known["prethreading queue", "new", str(each)] / known["prethreading", "new", str(each)] for each in range(1, last + 1))
        with open(os.path.join(RESULTS, "ladder", "table.md"), encoding="utf-8") as file:
            shown = [line.split(" | ") for line in file.read().partition("Times the figure")[2].splitlines()
                     if line.startswith("| prethreading queue ")]
        self.assertEqual(shown[0][2].strip(), "%.2f [%.2f-%.2f]" % (statistics.median(ratios), *rows.interval(ratios)))

    def test_what_redis_paid_for_a_page(self):
        """A tenth of a core for two seconds, and 4,000 pages."""
        own = row(1, "epoll", 2000, redis_percent="10.0000", metered_seconds="2.0000", requests="4000", incr="4000")
        self.assertAlmostEqual(rows.REDIS.of(own), 50)
        self.assertIsNone(rows.REDIS.of({**own, "incr": "0"}))  # as of the floor, which asks for nothing

    def test_a_lost_request_has_taken_for_ever(self):
        for failed, percent, known in ((0, 99, True), (10, 99, True), (11, 99, False), (11, 50, True), (1500, 50, False)):
            self.assertEqual(rows.percentile(percent)({**row(1, "a", 1), "failed": str(failed), "p50_ms": "1"}) is not None,
                             known, (failed, percent))

    def test_an_interval_has_the_median_in_93_of_100_cases_or_there_is_none(self):
        for number in range(1, 40):
            ends = rows.interval(range(1, number + 1))
            if number < rows.FEWEST:
                self.assertIsNone(ends)
            else:  # each figure is above the median with a chance of one half
                inside = sum(math.comb(number, each) for each in range(ends[0], ends[1])) / 2 ** number
                self.assertGreaterEqual(inside, rows.SURE)
                self.assertEqual(ends[0] + ends[1], number + 1)

    def test_the_interval_of_a_ratio_leaves_the_truth_out_in_few_cases(self):
        """Two servers are alike: each sign of their differences is as likely as the other."""
        for number in range(rows.FEWEST, 10):
            found = [rows.ratio([math.exp(sign * at) for at, sign in enumerate(signs, 1)])
                     for signs in itertools.product((1, -1), repeat=number)]
            self.assertLess(sum(not low <= 1 <= high for _, low, high in found), 0.07 * len(found))
        self.assertAlmostEqual(rows.ratio([1.0] * 8 + [5.0])[0], 1)  # one that is far off hardly moves it

    def test_what_cannot_be_told_from_the_best_shares_its_place(self):
        mixed = [each for at, factor in enumerate(reversed(NOISE)) for each in (
            row(at + 1, "poll", 2000 * factor, 10 * factor), row(at + 1, "epoll", 2000 * NOISE[at], 10 * NOISE[at]),
            row(at + 1, "forking", 1000 * NOISE[at], 20 * NOISE[at]))]

        def tied(own, figure):
            return {line[0] for line in rows.table(own, "clients", figure)[1] if line[1].startswith("= ")}

        for figure in (rows.RATE, rows.MICROS):
            self.assertEqual(tied(mixed, figure), {"poll", "epoll"})
            self.assertEqual(tied(mixed[:4 * 3], figure), set())  # four rounds
            self.assertEqual(tied([{**each, "unranked": "drifted"} for each in mixed], figure), set())
        self.assertEqual(tied([{**each, **FULL_CLIENT} for each in mixed], rows.RATE), set())
        alone = {"epoll": rows.Spot(rounds("epoll", **FULL_CLIENT)), "poll": rows.Spot(rounds("poll", 900))}
        self.assertEqual(rows.ratios(alone, rows.RATE), {"poll": [1.0] * 7})  # one at least has no ratio
        self.assertEqual(rows.ratio_table(mixed, "clients", rows.MICROS)[1][0], ["forking", "2.00 [1.78-2.25]"])


class Verdicts(unittest.TestCase):
    def test_who_was_full(self):
        for own, words, is_least in ((busy(99, 98), "both", True), (busy(99, 60), "server", False),
                                     (busy(60, 99), "client", True), (busy(60, 99, used=(40, 55)), "Redis", True),
                                     (busy(99, 90), "server ~client", False), (busy(84, 84), "nobody", False),
                                     (busy(99, 90, 99), "both ~client", True), (busy(30, 20, 97), "Redis", True),
                                     (busy(90, 90), "~server ~client", False), (busy(99, 60, others=15), "others, server", True),
                                     (busy("", ""), "unpinned", False)):
            spot = rows.Spot(rounds("epoll", **own))
            self.assertEqual((spot.whose(), spot.is_least), (words, is_least), own)

    def test_a_mark_that_hangs_on_one_round_is_none(self):
        for number in range(1, 4):
            own = [{**each, **(FULL_CLIENT if at < number else {})} for at, each in enumerate(rounds("epoll"))]
            self.assertFalse(rows.Spot(own).text(rows.RATE).startswith("≥"))
        self.assertTrue(rows.Spot([*own[:3], {**own[3], **FULL_CLIENT}, *own[4:]]).text(rows.RATE).startswith("≥"))

    def test_what_cannot_be_judged_is_not_ranked(self):
        steady = [row(each, "floor", 1000, 10) for each in range(1, 8)]
        for own, reason in ((rounds("epoll") + steady, ""), (rounds("epoll"), "neither a floor nor a canary"),
                            (rounds("epoll", canary_us="9"), ""), (rounds("epoll", number=4) + steady[:4], "it takes 5 rounds"),
                            (rounds("epoll", **busy("", "")) + steady, "nothing was pinned"),
                            (steady[:5] + [row(6, "floor", 1000, 13), row(7, "floor", 1000, 12)], "floor's CPU"),
                            (steady[:5] + [row(6, "floor", 1300, 10), row(7, "floor", 1200, 10)], "floor's pages"),
                            ([{**each, "canary_us": "800" if each["round"] in "34" else "1000"} for each in steady], "the canary drifted by 20 %"),
                            (steady[:6] + [row(7, "floor", 1400, 14)], "")):
            found = rows.judged(own)
            self.assertIn(reason, found[0]["unranked"])
            self.assertEqual(bool(found[0]["unranked"]), bool(reason), reason)
            self.assertEqual("Nothing may be ranked" in rows.sentence(found), bool(reason))

    def test_cells_that_were_slow_together_do_not_count(self):
        own = rounds("epoll", canary_us="1000") + rounds("poll", canary_us="1000")
        for each in (own[2], own[9]):
            each["canary_us"] = "1300"
        found = rows.judged(own)
        self.assertEqual([at for at, each in enumerate(found) if not rows.counts(each)], [2, 9])
        self.assertIn("2 of 14 cells do not count, 2 for slowness", rows.sentence(found))
        self.assertFalse(rows.slow(None, 1000) or rows.slow(1300, None) or rows.slow(1100, 1000))

    def test_with_the_noise_of_the_stored_runs_few_tables_are_wrong(self):
        for share, most in zip(simulate.shares(200, 7, True), (2, 10, 15)):
            self.assertLess(share, most)
        self.assertEqual(simulate.shares(20, 7, True)[-1], 100)


class Tables(unittest.TestCase):
    def test_a_terminal_marks_ties_and_says_whose_the_second_core_is(self):
        own = [{**each, "canary_us": "9", "generator": kind, **busy(60, 60)} for kind in ("ab", "wrk") for name in ("poll", "epoll")
               for each in rounds(name)]
        self.assertRegex("\n".join(compare.Compare("").look(rows.judged(own))), r"(?m)^epoll .* = 1,000 += 10 += 1,000 += 10 ")
        own = rounds("floor") + [{**each, "work_ms": "2", "cores": cores, "remarks": remark} for cores, remark in (
            ("1", ""), ("2", "2 cores: " + rows.SHARED)) for each in rounds("epoll")]
        self.assertEqual(compare.Compare("").look(own)[-1], "2 cores: %s." % rows.SHARED)

    def test_a_void_cell_is_blank_and_its_reason_below(self):
        own = rounds("poll") + rounds("epoll", wrong="12 requests failed: 12 reset")
        self.assertEqual(rows.table(own, "clients", rows.RATE)[1][1], ["epoll", "", "-"])
        spoilt = rows.Spot(rounds("poll", wrong="other work took 40 % of a core"))
        self.assertEqual([spoilt.text(rows.RATE, short=short) for short in (True, False)], ["(1,000)", ""])
        odd = [row(1, name, 1, clients=clients, little_off="0.2") for name in ("epoll", "poll") for clients in ("500", "100")]
        self.assertRegex(rows.below(odd)[0], r": poll, 100 .*; poll, 500 .*; epoll, 100 .*; epoll, 500 ")
        self.assertEqual(rows.heading("offered", "1000.0"), "1,000 a second offered")
        few = [{**each, "wrong": "reset"} for each in rounds("epoll")[2:]]
        self.assertEqual(rows.Spot(few + rounds("epoll")[:2]).range(rows.RATE), None)  # two of seven
        self.assertEqual(rows.Spot(rounds("epoll")[:2]).range(rows.RATE)[0], 1100)
        self.assertEqual(rows.below(own), ["epoll, 100 clients, kept connections: 7 of 7 rounds do not count: 12 "
                                           "requests failed: 12 reset."])

    def test_a_terminal_of_80_columns_has_room_for_it_and_the_longest_queue_is_first(self):
        own = [{**each, **busy(90, 99, others=20)} for each in cells_of("compare")]
        self.assertRegex(rows.sentence(own), r"In (\d+) of \1, others: other programs took 15 % of a core or more\.$")
        own += [{**each, "subject": "prethreading --workers 500"} for each in own]
        short_first = sorted(cells_of("sweep"), key=lambda each: each["backlog"])
        for known, experiment, words in ((own, compare.Compare(""), "kept"), (short_first, sweep.Sweep(""), " 65,535")):
            lines = experiment.look(known)
            self.assertIn("Only in the report: ", "".join(lines))
            self.assertRegex("".join(lines) + experiment.report(known).markdown(), r"\A[^|]*%s[^|]*%s" % (words, words))
            self.assertLessEqual(max(map(len, lines)), 80)
            self.assertGreater(len([line for line in lines if line.startswith(("epoll", "poll"))]), 1)

    def test_a_page_is_well_formed_whatever_is_in_it(self):
        page = report.Report("a < b", "`code` & more")
        page.add_table(["server", "a|b"], [["<epoll>", "≥ 1,234 [1-2]"], ["poll", "x" * 50]], "One & two")
        page.add_list(["why < that"])
        for name in ("one", "two"):
            page.add_chart(chart.lines(name, "it's `touch /tmp/no` \\n {a_b} %d", "clients", ["20", "1,000"], "pages",
                                       {"epoll": [(14652, 14100, 15020), (18000, 17000, 19000)], "mine": [None, (2, 1, 3)]},
                                       {("mine", 1)}, {"epoll": [100, None]}))
        page.add_chart(None)
        page.add_environment([("a & b", 1)])
        root = xml.etree.ElementTree.fromstring(page.html().replace("<!DOCTYPE html>", ""))
        self.assertIn(r"a\|b", page.markdown())
        self.assertEqual(["".join(each.itertext()) for each in root.iter("td")], ["≥\N{NO-BREAK SPACE}1,234 [1-2]", "x" * 50])
        if chart.available():
            words = {each.text.strip() for each in root.iter("{http://www.w3.org/2000/svg}text") if each.text}
            self.assertLessEqual({"it's `touch /tmp/no` \\n {a_b} %d", "epoll", "mine", "1,000", "clients", "pages", "hollow: ≥"}, words)
            ids = [each.get("id") for each in root.iter() if each.get("id")]
            self.assertEqual(len(ids), len(set(ids)))


class Loads(unittest.TestCase):
    """What a page costs, where all are offered the same."""

    def test_the_server_and_redis_beside_each_other_and_who_was_late(self):
        own = [{**each, "offered": offered, "requests_per_second": str(rate), "redis_percent": "2", "metered_seconds": "0.5",
                "incr": incr} for name, offered, rate, incr in (("poll", "1000", 960, 1), ("poll", "3000", 2849, 1),
                                                                ("floor", "1000", 1000, 0)) for each in rounds(name)]
        self.assertEqual(cost.beside(own), (["server", "1,000/s", "1,000/s: Redis", "3,000/s", "3,000/s: Redis"], [
            ["poll", "10 [8.0-12]", "10 [10-10]", "late", "late"], ["floor", "10 [8.0-12]", "-", "", ""]]))
        self.assertRegex("".join(cost.Cost("").look(own)), "server +1,000/s +Redis +3,000/s +Redis *poll +10 +10 +late")

    def test_the_articles_programs_stand_between_its_figures_and_ours(self):
        own = rounds("epoll", 9000, clients="20", generator="ab") + rounds("article-epoll", 4000, clients="20", generator="ab")
        self.assertEqual(sweep.beside(own, {"epoll": {"20": 2050.0}})[1], [["epoll", "2,050 | 4,000 | 9,000"]])
        self.assertEqual(sweep.beside(own[:7], {"epoll": {"20": 2050.0}})[1], [["epoll", "2,050 | 9,000"]])


class Offered(unittest.TestCase):
    def step(self, number, rate, in_time, **more):
        return row(number, "epoll", rate, generator="h2load", clients="0", offered="%.1f" % rate, asked="1000",
                   in_time=str(in_time), **more)

    def test_the_limit_is_found_from_below(self):
        own = [self.step(each, rate, in_time, **busy(60, 99)) for each in range(1, 8) for rate, in_time in (
            (500, 1000), (1000, 990), (2000, 989))]
        own += [self.step(8, 500, 1000), self.step(8, 1000, 1, wrong="other work took 20 % of a core")]
        self.assertEqual(latency.limits(own)[1][0], ["epoll", "1,000 [1,000-1,000]", "2,000: only 98.9 %" + latency.IN_TIME, "client"])
        self.assertEqual(latency.highest([self.step(1, 500, 5), self.step(1, 1000, 1000)]), 0)  # below all were
        self.assertIn("3 reset", cells.not_held(self.step(1, 500, 997, failed="3", errors="3 reset")))


if __name__ == "__main__":
    unittest.main()
