"""One engine for all experiments: what makes a cell right, in which order they come, what several
rounds come to, and when a rate is held."""

import io
import os
import unittest
from types import SimpleNamespace
from unittest import mock

import programs
from lib import Trouble, cells, columns, dials, files, rounds, run, search, subjects
from lib.cells import Cell, Dials, Spot
from lib.generators.load import Load
from lib.kept import Kept
from lib.measuring import machine, meter
from lib.reporting import progress, table
from lib.subjects import places, redis

SPOT = Spot("epoll", "ab", 20)
CORE = meter.Core(80.0, 0.0, 40.0)


def load(requests=1000, seconds=1.0, mean_ms=20.0, content=None, in_time=None, p99=9.0, **errors):
    return Load(requests, errors, seconds, mean_ms, {50: 1.0, 90: 3.0, 99: p99, 100: 12.0}, True,
                content, in_time=in_time)


def reading(verdict=meter.SERVER, kernel=None, cpu_us=500000.0):
    return meter.Reading(1.0, cpu_us, 2e5, None, 4 << 20, 1, 1, machine.Cores(CORE, CORE, CORE),
                         kernel or {}, {"client": 40.0, "redis": 9.0}, 0.0, verdict)


def counts(incr=1000, get=1000, lrange=1000, visitors=1000):
    return redis.Counts(incr, get, lrange, visitors)


def judged(the_load, the_counts=None, asked=1000, spot=SPOT, size=None, kernel=None):
    cell = Cell(spot, 1, asked=asked, load=the_load, counts=the_counts or counts(),
                reading=reading(kernel=kernel))
    cells.judge(cell, asks_redis=True, size=size)
    return cell


def cell(rate, number=1, spot=SPOT, wrong=(), **more):
    return Cell(spot, number, load=load(int(rate)), wrong=list(wrong), reading=reading(**more))


class Judging(unittest.TestCase):
    WRK = Spot("epoll", "wrk", 20)
    OPEN = Spot("epoll", "h2load", rate=1000)
    CASES = [  # what a cell has seen, and what is wrong with it
        ((load(),), []),
        ((load(990, reset=4, **{"not 2xx": 6}), counts(*[990] * 4)),
         ["10 requests failed: 4 reset, 6 not 2xx"]),
        ((load(), None, 2000), ["1,000 requests of 2,000 were completed"]),
        ((load(), counts(get=1001)), ["for 1,000 pages Redis counted 1,000 INCR, 1,001 GET, 1,000 "
                                      "LRANGE and 1,000 visitors"]),
        ((load(), counts(1020, 1020, 1001, 1020), 0, WRK), []),  # in flight when time was up
        ((load(), counts(visitors=1021), 0, WRK), ["for 1,000 pages Redis counted 1,000 INCR, "
                                                   "1,000 GET, 1,000 LRANGE and 1,021 visitors"]),
        ((load(900, **{"time-out": 100}), counts(*[950] * 4), 1000, OPEN), []),  # is its result
        ((load(content=50000), None, 1000, SPOT, 50), []),
        ((load(content=49999), None, 1000, SPOT, 50), ["49,999 bytes came in 1,000 answers of 50"]),
        ((load(content=50999), None, 0, SPOT, 50), [])]  # 20 clients were still reading

    def test_what_is_wrong_with_a_cell(self):
        for seen, wrong in self.CASES:
            with self.subTest(wrong=wrong):
                self.assertEqual(judged(*seen).wrong, wrong)

    def test_what_a_reader_should_know(self):
        few = judged(load(mean_ms=17.0))
        self.assertIn("Little's law", few.remarks[0])
        self.assertAlmostEqual(few.off, 0.15)
        self.assertEqual(judged(load(), kernel={"ListenOverflows": 19143, "TCPTimeouts": 0}).remarks,
                         ["the kernel counted 19,143 ListenOverflows"])
        self.assertEqual(judged(load(990, reset=10), kernel={"ListenDrops": 2}).wrong[-1],
                         "the kernel counted 2 ListenDrops")

    def test_as_many_figures_as_columns_measured_or_not(self):
        missing = Cell(SPOT, 1, wrong=["it did not start", "b\tc"])
        for each in (judged(load()), missing):
            self.assertEqual(len(cells.raw(each)), len(cells.COLUMNS))
        row = dict(zip(cells.COLUMNS, cells.raw(judged(load(), counts(get=5)))))
        self.assertEqual([row[name] for name in ("p99_ms", "get", "verdict", "client_percent", "backlog")],
                         ["9.000", "5", "server full", "40.0", ""])
        self.assertEqual(dict(zip(cells.COLUMNS, cells.raw(missing)))["wrong"],
                         "it did not start; b c")

    def test_spots_say_what_they_are_in_words_and_in_names_of_files(self):
        for spot, words in ((SPOT, "epoll, 20 clients, ab"),
                            (Spot("poll", "ab", 2000, 10, Dials(50, 0.1, 2)),
                             "poll, 2,000 clients, ab, backlog 10, Redis 50 ms away, 0.1 ms of work a "
                             "page, 2 cores"),
                            (Spot("epoll", "h2load", instances=4, rate=0.25),
                             "epoll, nginx before 4, 25 % of its capacity, h2load"),
                            (Spot("epoll", "wrk", 1, beside="idle"), "epoll, 1 clients, wrk, idle")):
            self.assertEqual(str(spot), words)
        self.assertEqual(cells.file_name(Cell(Spot("epoll@v1/x --workers 5", "wrk", 20), 3)),
                         "epoll@v1_x_--workers_5-wrk-20-3")


class Beginning(unittest.TestCase):
    def test_a_cell_begins_when_each_of_its_clients_has_been_answered(self):
        def seen(*connections):
            return "".join("ESTAB 0 0 127.0.0.1:%d 127.0.0.1:80 cubic rto:204 %s\n" % (
                port, "bytes_received:9" if answered else "unacked:1") for port, answered in connections)

        looks = [seen((1, True)), seen((1, True), (2, False), (3, False)),
                 seen((1, False), (3, True), (4, False)),  # 2 is gone: it was answered, and came back
                 seen((1, True), (3, True))]
        shot = SimpleNamespace(server=SimpleNamespace(url="http://127.0.0.1:80"),
                               place=places.Place((), (), None), spot=Spot("x", "wrk", 3))
        with mock.patch.object(machine, "output_of", lambda _: looks.pop(0)):
            self.assertTrue(cells.answered_once(shot, []))
        self.assertEqual(len(looks), 1)
        with mock.patch.object(cells, "BEGIN_MOST_SECONDS", 0.05), \
                mock.patch.object(machine, "output_of", lambda _: seen((1, True))):
            self.assertFalse(cells.answered_once(shot, []))

    def test_a_warm_up_is_of_the_same_kind_and_asked_until_each_client_has_enough(self):
        """A server that answers so many requests a second, whoever asks."""
        for clients, rate, seconds, runs, asked in (
                (20, 5000, 1, [20, 1000, 5000], 5000), (500, 5000, 1, [20, 1000, 10000], 10000),
                (100, 5000, 20, [20, 10000, 100000], 100000), (500, 7, 1, [20, 10000], 0)):
            made = []

            def ab_run(_url, clients, requests, seconds=9999, rate=rate, made=made, **_):
                made.append(requests)
                done = min(requests, round(rate * seconds))
                return load(done, done / rate, 1000 * clients / rate)

            it = SimpleNamespace(per_client=20, most_seconds=30, seconds=seconds, asked={}, redis=mock.Mock(),
                                 limit_seconds=60)
            spot = Spot("x", "ab", clients)
            shot = SimpleNamespace(cell=Cell(spot, 1), spot=spot, run=it, url="", save_as="",
                                   place=places.Place((), (), None))
            shot.loaded = lambda generate, shot=shot, **_: setattr(shot.cell, "load", generate())
            with self.subTest(clients=clients, rate=rate), mock.patch.object(cells.ab, "run", ab_run):
                cells.count_with_ab(shot)
                self.assertEqual((made, shot.cell.asked), (runs, asked))

    def test_a_server_that_has_died_is_a_better_reason_than_who_could_not_reach_it(self):
        dead = mock.Mock(must_live=mock.Mock(side_effect=Trouble("broken pipe")), url="http://x")
        it = mock.MagicMock(path_of=lambda _: "", asks_redis=lambda _: False)
        for generate in (mock.Mock(side_effect=Trouble("wrk gave up")), lambda: load()):
            with self.assertRaisesRegex(Trouble, "broken pipe"):
                cells.Shot(Cell(SPOT, 1), dead, it, "").loaded(generate)


class Held(unittest.TestCase):
    def cell(self, requests=1000, in_time=None, p99=9.0, asked=1000, spot=None, number=1, **errors):
        return Cell(spot or Spot("epoll", "h2load", rate=1000), number, asked=asked, reading=reading(),
                    load=load(requests, in_time=requests if in_time is None else in_time, p99=p99, **errors))

    def test_the_one_rule(self):
        for made, why in (({}, None), ({"in_time": 990}, None), ({"p99": 49.9}, None),
                          ({"in_time": 989}, "only 98.9 % answered within the step"),
                          ({"p99": 50.0}, "p99 of 50 ms"), ({"requests": 999, "reset": 1}, "1 reset"),
                          ({"requests": 0}, "only 0.0 % answered within the step")):
            with self.subTest(made=made):
                self.assertEqual(self.cell(**made).not_held, why)
        self.assertEqual(Cell(SPOT, 1).not_held, "it was not offered")

    def test_of_a_search_each_round_has_its_knee_and_what_came_above(self):
        def at(rate, good, number):
            return self.cell(spot=Spot("epoll", "h2load", rate=rate), p99=9 if good else 99, number=number)

        made = [at(1000, True, 1), at(4000, False, 1), at(2000, True, 1), at(1500, True, 2), at(3000, False, 2),
                self.cell(spot=Spot("poll", "h2load", rate=9000))]
        limit = search.limit_of(made, lambda rate: Spot("epoll", "h2load", rate=rate))
        self.assertEqual((limit.rate.figures, limit.start), ([1500, 2000], 1400))
        self.assertEqual(limit.end, "4,000: p99 of 99 ms; 3,000: p99 of 99 ms")
        self.assertEqual(limit.bound, "server full")

    def test_httperf_never_sleeps_so_its_core_tells_nothing(self):
        for seen, said in ((meter.BOTH, meter.SERVER), (meter.CLIENT, meter.NOBODY)):
            self.assertEqual(cell(1, spot=Spot("x", "httperf"), verdict=seen).bound, said)


class Searching(unittest.TestCase):
    def searched(self, is_good, most=64000, tries=search.TRIES):
        it, offered = search.Search(1000, most, 0.1, tries), []
        while it.next_rate() is not None and len(offered) < 50:
            offered.append(it.next_rate())
            it.tell(offered[-1], is_good(offered[-1], offered.count(offered[-1])))
        return it, offered

    def test_rates_that_are_offered(self):
        for is_good, how, offered, found in (
                (lambda rate, _: rate <= 9999, {}, [1000, 2000, 4000, 8000, 16000, 16000, 32000, 12000, 12000,
                                                    10000, 10000, 9000, 9500], 9500),
                (lambda *_: True, {"most": 5000}, [1000, 2000, 4000, 5000], 5000),
                (lambda *_: False, {}, [1000, 1000, 2000, 500, 500, 250, 250, 125, 125], None),
                (lambda rate, _: rate < 4000, {"tries": 1}, [1000, 2000, 4000, 3000, 3500, 3750], 3750)):
            it, made = self.searched(is_good, **how)
            self.assertEqual((made, it.knee), (offered, found))

    def test_one_hiccup_is_forgiven_and_so_is_a_rate_below_one_that_was_held(self):
        for is_good in (lambda rate, time: rate <= 8000 and (rate, time) != (4000, 1),
                        lambda rate, _: rate <= 8000 and rate != 4000):
            self.assertEqual(self.searched(is_good)[0].knee, 8000)
        for limit in (130, 999, 5555, 33333):
            found = self.searched(lambda rate, _, limit=limit: rate <= limit)[0].knee
            self.assertTrue(limit / 1.2 <= found <= limit)


class Rounds(unittest.TestCase):
    SPOTS = [Spot(name, "ab", clients) for clients in (20, 100) for name in ("a", "b", "c", "d", "floor")]

    def test_only_the_subjects_are_shuffled_and_a_seed_means_an_order(self):
        turns = rounds.order(self.SPOTS, 3, 7)
        self.assertEqual([number for number, _ in turns], [1] * 10 + [2] * 10 + [3] * 10)
        self.assertEqual({spot for _, spot in turns[:10]}, set(self.SPOTS))
        self.assertEqual([spot.clients for _, spot in turns[:10]], [20] * 5 + [100] * 5)
        self.assertEqual(turns, rounds.order(self.SPOTS, 3, 7))
        self.assertGreater(len({tuple(rounds.order(self.SPOTS, 1, seed)) for seed in range(20)}), 10)

    def test_a_round_with_errors_is_rejected_counted_and_its_reason_kept(self):
        spot = rounds.Spot([cell(100, 1), cell(900, 2, wrong=["3 reset"]), cell(110, 3)])
        self.assertEqual(str(spot.rate), "105 [100-110]")
        self.assertEqual(str(rounds.Spread([7.25])), "7")
        self.assertEqual(spot.rejected, ["1 of 3 rounds rejected: 3 reset"])
        dead = rounds.Spot([Cell(SPOT, 1, wrong=["it did not start"])])
        self.assertEqual((dead.rate, dead.bound, dead.rejected), (None, "", ["it did not start"]))

    def test_the_bootstrap_interval_of_a_median(self):
        self.assertEqual(rounds.interval([5.0] * 7), (5.0, 5.0))
        low, high = rounds.interval([1, 2, 3, 4, 5, 6, 7])
        self.assertTrue(1 <= low <= 2 and 6 <= high <= 7, (low, high))
        self.assertEqual((low, high), rounds.interval([7, 6, 5, 4, 3, 2, 1][::-1]))

    def test_faster_needs_an_interval_without_1(self):
        """The rounds drift by a factor of two: within each, the one is a tenth faster."""
        drift = [1000, 1200, 1400, 1600, 1800, 1900, 2000]
        slow, fast = (rounds.Spot([cell(factor * rate, number) for number, rate in enumerate(drift)])
                      for factor in (1, 1.1))
        mixed = rounds.Spot([cell(rate * (0.8, 1.2)[number % 2], number)
                             for number, rate in enumerate(drift)])

        def figure(each):
            return each.rate
        self.assertEqual(rounds.ratio_text(fast, slow, figure), "1.10 x [1.10-1.10]")
        self.assertEqual(rounds.ratio_text(mixed, slow, figure), "=")
        self.assertEqual(rounds.ratio_text(slow, slow, figure), "1")
        self.assertEqual(rounds.ratio_text(slow, None, figure), "-")

    def test_a_rate_that_the_client_has_limited_is_no_rank(self):
        rows = {name: [rounds.Spot([cell(500, verdict=verdict)])] for name, verdict in (
            ("epoll", meter.SERVER), ("floor", meter.CLIENT), ("poll", meter.BOTH))}
        notes = table.Notes()
        header, lines = columns.rows_of({**rows, "gone": [None]}, [
            columns.rate("rate", 0, notes), columns.of("epoll", rows), columns.micros_of("epoll", rows),
            columns.BOUND])
        self.assertEqual(header, ["server", "rate", "of epoll", "CPU of epoll", "bound"])
        self.assertEqual(lines, [["epoll", "500", "1", "1", "server full"],
                                 ["floor", "≥ 500", "-", "1.00 x", "client full"],
                                 ["poll", "500", "1.00 x", "1.00 x", "both full"]])
        self.assertIn('class="least">≥ 500', table.as_html(header, lines))

    def test_rounds_that_differ_have_a_note(self):
        spot = rounds.Spot([cell(rate, number) for number, rate in enumerate((100, 150, 200))])
        notes = table.Notes()
        self.assertEqual(rounds.rate_text(spot, notes), "150 (1)")
        self.assertTrue(notes.numbered()[0][1].startswith("rounds differ"))
        self.assertEqual(rounds.rate_text(None, notes), "")


class Runs(unittest.TestCase):
    def test_where_a_generator_gave_up_it_is_not_sent_again(self):
        good, bad = self.spots = [Spot(name, "ab", 20) for name in ("good", "bad")]

        def measure(each, _run):
            each.load = load() if each.spot == good else None
            each.wrong += [] if each.load else ["ab gave up"]

        with mock.patch.object(cells, "measure", measure):
            it = object.__new__(run.Run)
            it.folder, it.kept, it.seconds, it.cells, it.asked = programs.folder(self), Kept(None, ""), 1.0, [], {}
            it.per_client, it.most_seconds = 2, 5
            it.experiment = SimpleNamespace(columns=["round"], raw=lambda each: [each.round])
            it.measure_cells([(number, spot) for number in (1, 2) for spot in (good, bad)])
        self.assertEqual([(each.round, each.spot) for each in it.cells], [(1, good), (1, bad), (2, good)])
        self.assertEqual(it.planned, 3)

    def test_a_noisy_hour_is_in_the_caption(self):
        it = object.__new__(run.Run)
        for rates, caption in (((100, 110), "Pages"), ((100, 120), "Pages, in a noisy hour: the floor "
                                                       "drifted by 18 %")):
            it.cells = [cell(rate, number, Spot("floor", "ab", 20)) for number, rate in enumerate(rates)]
            self.assertEqual(it.caption("Pages"), caption)

    def test_a_subject_may_have_options_and_a_revision(self):
        name = "prethreading --workers 500"
        self.assertTrue(subjects.is_known(name) and subjects.is_ours(name))
        self.assertEqual(run.with_revisions([name, "nginx"], ["v1"]),
                         [name, "prethreading@v1 --workers 500", "nginx"])
        self.assertEqual(subjects.plain("poll@v1 --x"), "poll")

    def test_what_is_kept_is_recalled_once_and_only_by_the_same_run(self):
        folder = programs.folder(self)
        os.mkdir(folder + "/raw")
        first = Kept(folder, "this")
        self.assertEqual(first.begin(7, "today"), (7, "today"))
        first.keep(cell(100), {SPOT: 100})
        first.keep(cell(200, 2), {})
        os.truncate(folder + "/raw/kept.pickle", os.path.getsize(folder + "/raw/kept.pickle") - 1)
        self.assertIsNone(Kept(folder, "that").recall(round=1))
        with open(folder + "/raw/kept.pickle", "rb") as file:
            self.assertTrue(file.read())
        second = Kept(folder, "this")
        self.assertEqual(second.begin(8, "tomorrow"), (7, "today, tomorrow"))
        self.assertEqual(second.asked, {SPOT: 100})
        self.assertEqual([second.recall(round=1) is None, second.recall(round=1), second.recall(round=2)],
                         [False, None, None])  # the second was cut off
        second.complete()
        self.assertFalse(os.path.exists(folder + "/raw/kept.pickle"))


class DialsAndBounds(unittest.TestCase):
    def asked(self, **options):
        return dials.turns(SimpleNamespace(**{"delay_ms": None, "work_ms": None, "cores": None, **options}))

    def test_one_dial_is_turned_the_others_stay(self):
        turn, = self.asked(work_ms=[2], cores=[1, 2])
        self.assertEqual((turn.dial, turn.values, turn.load), ("cores", [1, 2], ("wrk", 20)))
        self.assertEqual(turn.spots(["epoll", "floor"]),
                         [Spot("epoll", "wrk", 20, dials=Dials(None, 2, 1)),
                          Spot("epoll", "wrk", 20, dials=Dials(None, 2, 2)), Spot("floor", "wrk", 20)])
        self.assertEqual([each.settings[1] for each in self.asked(delay_ms=[0, 10], work_ms=[0, 0.1])],
                         [Dials(10, 0), Dials(10, 0.1)])

    def test_the_constants_behind_it_are_said_and_drawn(self):
        it = SimpleNamespace(hosts=places.Here())
        with mock.patch.object(dials, "team", lambda: 100), \
                mock.patch.object(machine, "usable_cores", lambda: (0, 1)):
            turn, = self.asked(delay_ms=[0, 50])
            self.assertEqual(list(turn.bounds(it)), [
                "3 x 50 ms: at most 7 pages/s one after the other, 667 by 100 workers, 3,333 by 500 clients"])
            self.assertAlmostEqual(dict(turn.drawn_bounds())["≤ 100 workers"][0][1], 667, delta=1)
            turn, = self.asked(work_ms=[2], cores=[1, 2])
            self.assertEqual(list(turn.bounds(it)), ["2 ms: at most 500 pages/s on a core",
                                                     "2 cores: shared with wrk and Redis"])
            self.assertEqual([each.dial for each in dials.all_turns()], ["work_ms", "cores"])


class RedisAndFiles(unittest.TestCase):
    def test_calls_by_command(self):
        info = "# Commandstats\r\ncmdstat_get:calls=5000,usec=497\r\ncmdstat_config|set:calls=1,usec=1\r\n"
        self.assertEqual(redis.command_calls(info), {"get": 5000, "config|set": 1})
        with self.assertRaisesRegex(Trouble, "NOPERM"):
            redis.command_calls("NOPERM this user has no permissions")

    def test_settling_lasts_as_long_as_pages_are_still_made(self):
        looks = [counts(pages, number, pages, pages) for number, pages in enumerate([1, 4, 9, 9, 9])]
        store = redis.Redis("unix:/not/there")
        with mock.patch.object(store, "counts", lambda: looks.pop(0)):
            store.settle()
        self.assertEqual(len(looks), 1)

    def test_other_bytes_fewer_or_another_status_are_trouble(self):
        with open(files.file_of(machine.TOP, "/index.html"), "rb") as source:
            body = source.read()

        def compare(status, answer):
            with mock.patch.object(files.web, "connected") as connected:
                connected().__enter__().getresponse.return_value = SimpleNamespace(
                    status=status, read=io.BytesIO(answer).read)
                files.compare(mock.Mock(), machine.TOP, ["/index.html"])

        compare(200, body)
        for status, answer in ((200, body[:-1]), (404, body), (200, body[::-1])):
            with self.assertRaises(Trouble):
                compare(status, answer)

    def test_quoted_figures_have_their_source(self):
        for name, source in (("burst", "cchttpd"), ("connections", "Friend Core"), ("files", "Friend Core")):
            self.assertEqual({seed["source"] for seed in files.quoted_for(name)}, {source})
        self.assertEqual(files.found(files.quoted_for("burst")[0]), "23,000-29,000 responses in 10 s")

    def test_levels_that_the_machine_forbids(self):
        self.assertIsNone(machine.why_not(500, 1024))
        self.assertIn("1,024 descriptors", machine.why_not(1000, 1024))
        self.assertIn("ab", machine.why_not(20001, 1 << 20))


class Estimate(unittest.TestCase):
    def test_a_guess_first_then_what_was_seen_and_a_far_redis_takes_longer(self):
        now, waits = 0.0, [0, 7, 50, 0]
        it = progress.Progress(cells=4, guess_seconds=3, out=io.StringIO(), clock=lambda: now)
        it.begin("near", waits)
        self.assertEqual(it.seconds_left(), 12 + 57)
        for now, left in ((2.0, 6 + 57), (11.0, 4 + 50), (63.0, 2)):
            it.begin("any", waits)
            it.cell_done("any")
            waits = waits[1:]
            self.assertEqual(it.seconds_left(), left)
