"""What connections, files and burst compute, and what they call right."""

import os
import sys
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

sys.dont_write_bytecode = True  # leaves no __pycache__ among the programs

import programs
from lib import Trouble, cells, filling, offered, static
from lib.generators import httperf
from lib.measuring import machine, meter, web
from lib.reporting import table
from lib.generators.load import Load

burst, connections, files = map(programs.load, ("burst", "connections", "files"))


def reading(busy=90.0, cpu_us=2e6):
    cores = machine.Cores(meter.Core(busy, 0.0, 50.0), *[meter.Core(100.0, 0.0, 50.0)] * 2)
    return meter.Reading(seconds=30.0, cpu_us=cpu_us, cpu_user_us=None, switches=None,
                         peak_pss=None, processes=1, threads=1, cores=cores, kernel={})


def step(rate, mean=None, samples=6, busy=90.0, number=1, **errors):
    """One with so many replies a second; of the same number offered if nothing is said."""
    mean = rate if mean is None else mean
    report = httperf.Report(
        connections=30 * rate, requests=30 * rate, replies=round(30 * mean), seconds=30.0,
        connection_rate=float(rate), most_at_once=12, connection_ms_mean=0.5,
        connection_ms_max=9.0, connection_ms_median=0.5, connect_ms=0.1,
        reply_rate_min=mean - 5.0, reply_rate_mean=float(mean), reply_rate_max=mean + 5.0,
        samples=samples, response_ms=0.3, transfer_ms=0.1,
        statuses={2: round(30 * mean)},
        errors={kind.replace("_", "-"): count for kind, count in errors.items()})
    return offered.Step("epoll", rate, number, report, reading(busy))


class OneStep(unittest.TestCase):
    def test_all_that_was_offered_is_served(self):
        self.assertIsNone(step(1000).failed)
        self.assertIsNone(step(1000, mean=991).failed)

    def test_too_few_replies_are_too_much(self):
        self.assertEqual(step(1000, mean=989).failed, "only 989 replies a second")
        self.assertIsNone(step(1000, mean=989).erred)

    def test_the_last_replies_of_a_short_run_may_be_late_but_not_very(self):
        self.assertIsNone(step(1000, mean=900, samples=0).failed)
        self.assertIsNotNone(step(1000, mean=700, samples=0).failed)

    def test_errors_are_named_by_kind(self):
        self.assertEqual(step(1000, connreset=7, client_timo=1200).failed,
                         "7 reset, 1,200 time-out")

    def test_out_of_descriptors_is_void_whatever_else_there_was(self):
        self.assertEqual(step(1000, fd_unavail=20655, connreset=3).failed,
                         "void: 20,655 fd-unavail")

    def test_samples_say_least_and_most(self):
        self.assertEqual(step(1000).replies, (1000, 995, 1005))
        self.assertEqual(step(1000, samples=1).replies, (1000, 1000, 1000))

    def test_as_many_figures_as_columns_measured_or_not(self):
        for each in (step(1000, connreset=7), offered.Step("epoll", 1000, 1, wrong=["no\tgo"])):
            self.assertEqual(len(offered.raw(each)), len(offered.COLUMNS))
        row = dict(zip(offered.COLUMNS, offered.raw(step(1000, connreset=7))))
        self.assertEqual([row[name] for name in ("connreset", "fd-unavail", "failed")],
                         ["7", "0", "7 reset"])


class TheLimit(unittest.TestCase):
    def limit(self, *steps, levels=()):
        run = SimpleNamespace(cells=steps, levels=levels, servers=["epoll", "poll"],
                              options=SimpleNamespace(quick=False))
        return connections.limits_of(run)["epoll"]

    def test_the_highest_rate_served_and_what_came_above(self):
        limit = self.limit(step(1000), step(2000), step(4000, connreset=1), step(4000, connreset=2),
                           step(3000, mean=2000, busy=40.0), step(3000, mean=2500, busy=40.0))
        self.assertEqual((limit.rates, limit.end, limit.bound),
                         ([2000], "3,000: only 2,000 replies a second", meter.CLIENT_BOUND))

    def test_of_given_rates_one_failure_is_enough(self):
        limit = self.limit(step(100), step(200, connreset=1), step(400), levels=(100, 200, 400))
        self.assertEqual(limit.rates, [100])

    def test_each_round_has_its_own(self):
        limit = self.limit(step(1000), step(1000, number=2), step(2000, number=2))
        self.assertEqual(limit.rates, [1000, 2000])
        self.assertEqual(limit.median(lambda each: each.rate), 1500)
        self.assertEqual((limit.end, limit.bound), ("not reached", "-"))

    def test_who_served_no_rate_makes_the_status_1(self):
        program_ = connections.Connections("")
        good, bad = step(1000), offered.Step("poll", 1000, 1, step(1, fd_unavail=1).report)
        self.assertEqual(program_.status(SimpleNamespace(cells=[good, step(2000, connreset=1)])), 0)
        self.assertEqual(program_.status(SimpleNamespace(cells=[good, bad])), 1)

    def test_the_tables_have_a_figure_in_each_column(self):
        limits = {"epoll": self.limit(step(1000), step(2000, connreset=1), step(2000, connreset=1),
                                      offered.Step("epoll", 3000, 1, wrong=["no go"]))}
        header, rows = connections.limits_table(limits, table.Notes())
        self.assertEqual(dict(zip(header, rows[0])), {
            "server": "epoll", "served/s": "1,000", "replies/s [5 s samples]": "1,000 [995-1,005]",
            "ms a connection": "0.50", "CPU µs a connection": "66.7", "bound": meter.SERVER_BOUND,
            "too much": "2,000: 1 reset"})
        header, rows = connections.every_step(limits)
        self.assertEqual([row[-1] for row in rows], ["served", "1 reset", "1 reset", "no go"])
        self.assertEqual({len(row) for row in rows}, {len(header)})

    def test_the_table_says_dashes_where_nothing_was_served(self):
        limit = self.limit(step(1000, connreset=1))
        header, rows = connections.limits_table({"epoll": limit}, table.Notes())
        self.assertEqual(len(rows[0]), len(header))
        self.assertEqual(rows[0][1:5], ["-"] * 4)


class Shares(unittest.TestCase):
    def test_beside_the_rival_and_the_floor(self):
        def spot(rate):
            load = Load(rate, {}, 1.0, 1.0, {99: 2.0}, False)
            cell = SimpleNamespace(load=load, wrong=[], remarks=[], reading=reading(), micros=9.0)
            return burst.rounds.Spot([cell])

        header, rows = burst.side_by_side(
            {"epoll": spot(150), "lighttpd": spot(100), "floor": spot(200)}, table.Notes())
        shares = [row[header.index("of lighttpd"):][:2] for row in rows]
        self.assertEqual(shares, [["1.50 x", "0.75 x"], ["1.00 x", "0.50 x"], ["2.00 x", "1.00 x"]])

    def test_without_them_there_is_none(self):
        self.assertEqual(burst.share(100, None), "-")
        self.assertEqual(burst.share(None, 100), "-")


class Filled(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def fill(self, name, small=20, large=3 * filling.BLOCK + 7):
        return filling.Filling(os.path.join(self.folder, name), small, large)

    def test_names_sizes_and_bytes_are_the_same_each_time(self):
        one, other = self.fill("one"), self.fill("other")
        for path in one.small + one.large:
            with open(one.file_of(path), "rb") as left, open(other.file_of(path), "rb") as right:
                data = left.read()
                self.assertEqual(data, right.read())
                self.assertTrue(one.is_right(path, [data[:99], data[99:]]))

    def test_small_is_5_to_15_kb_and_not_one_like_another(self):
        made = self.fill("one", 200)
        sizes = [made.bytes_of([path]) for path in made.small]
        self.assertTrue(all(5000 <= size <= 15000 for size in sizes))
        self.assertAlmostEqual(sum(sizes) / len(sizes), 10000, delta=1000)
        self.assertEqual(made.small[7], "/small/007.bin")
        self.assertEqual(made.bytes_of(made.small), sum(sizes))

    def test_the_large_one_is_as_large_as_it_was_asked_to_be(self):
        made = self.fill("one")
        self.assertEqual(made.bytes_of(made.large), 3 * filling.BLOCK + 7)

    def test_one_byte_wrong_missing_or_too_many_is_noticed(self):
        made = self.fill("one")
        with open(made.file_of(made.small[0]), "rb") as file:
            data = file.read()
        for wrong in (data[:-1], data + b"x", bytes([data[0] ^ 1]) + data[1:]):
            self.assertFalse(made.is_right(made.small[0], [wrong]))

    def test_what_has_no_room_is_not_begun(self):
        with mock.patch.object(meter, "available_memory", return_value=1000):
            with self.assertRaisesRegex(Trouble, "of memory"):
                self.fill("one")
        self.assertEqual(os.listdir(os.path.join(self.folder, "one")), [])

    def test_ours_find_their_templates(self):
        made = self.fill("one")
        self.assertTrue(os.path.isdir(os.path.join(made.root, "templates", "guestbook")))


def fetched_load(files, size, seconds, errors):
    return Load(files, errors, seconds, 1.0, {}, True, size, 1)


class Fetched(unittest.TestCase):
    def wrong(self, got, size, **errors):
        cell = cells.Cell(cells.Spot("epoll", "small", 1), 1, load=fetched_load(got, size, 1.0, errors))
        files.judge(cell, 100, 5000)
        return cell.wrong

    def test_all_files_and_all_bytes(self):
        self.assertEqual(self.wrong(100, 5000), [])

    def test_a_byte_or_a_file_less_is_noticed(self):
        self.assertEqual(self.wrong(100, 4999), ["4,999 bytes came in 100 files, not 5,000 in 100"])
        self.assertEqual(len(self.wrong(99, 5000)), 1)

    def test_errors_are_named(self):
        self.assertEqual(self.wrong(98, 4900, reset=2), ["2 files failed: 2 reset"])

    def test_as_many_figures_as_columns_measured_or_not(self):
        empty = cells.Cell(cells.Spot("epoll", "large", 1), 1)
        full = cells.Cell(empty.spot, 1, load=fetched_load(1, 10**6, 0.5, {}), reading=reading())
        for cell in (empty, full):
            self.assertEqual(len(files.Files.raw(cell)), len(files.Files.columns))
        row = dict(zip(files.Files.columns, files.Files.raw(full)))
        self.assertEqual(row["bytes_per_second"], "2000000")


class SameBytes(unittest.TestCase):
    """The file is public/index.html; what a server answers is made up."""

    FILE = static.file_of(machine.TOP, "/index.html")

    def answer(self, status, change):
        with open(self.FILE, "rb") as file:
            body = change(file.read())
        with mock.patch.object(web, "fetch", return_value=(status, body)):
            static.must_answer_with(SimpleNamespace(url="http://127.0.0.1:1"), "/index.html",
                                    self.FILE)

    def test_they_are_right(self):
        self.answer(200, lambda body: body)

    def test_other_bytes_fewer_or_another_status_are_trouble(self):
        for status, change in ((200, lambda body: body[:-1]), (404, lambda body: body),
                               (200, lambda body: body[::-1])):
            with self.assertRaises(Trouble):
                self.answer(status, change)

    def test_a_file_that_is_not_there_is_trouble(self):
        with self.assertRaisesRegex(Trouble, "No such file"):
            static.must_answer_with(None, "/nothing", static.file_of(machine.TOP, "/nothing"))

    def test_nobody_there_is_trouble(self):
        with self.assertRaisesRegex(Trouble, "does not answer"):
            web.fetch("http://127.0.0.1:1", "/")


class Quoted(unittest.TestCase):
    def test_each_program_has_its_source(self):
        for name, source in (("burst", "cchttpd"), ("connections", "Friend Core"),
                             ("files", "Friend Core")):
            self.assertEqual({seed["source"] for seed in static.read_seeds(name)}, {source})

    def test_a_range_a_figure_and_words(self):
        self.assertEqual([static.found(seed) for seed in static.read_seeds("burst")][:2],
                         ["23,000-29,000 responses in 10 s", "28,000 responses in 10 s"])
        self.assertEqual(static.found(static.read_seeds("connections")[0]), "almost 7,000 requests/s")


if __name__ == "__main__":
    unittest.main()
