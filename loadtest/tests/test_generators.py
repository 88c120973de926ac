"""The reports of ab 2.3, wrk 4.1, httperf 0.9, h2load 1.52 and curl 7.88 are understood, and an open
loop counts from the moment intended."""

import json
import os
import re
import threading
import time
import unittest
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import programs
from lib import Trouble
from lib.generators import ab, curl, h2load, httperf, load, wrk
from lib.subjects import places

ANYWHERE = places.Place(())  # on any core
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
    "httperf": """\
Total: connections 1200 requests 1200 replies 1200 test-duration 5.997 s
Connection time [ms]: min 0.0 avg 0.9 max 37.1 median 0.5 stddev 3.0
Connection time [ms]: connect 0.2
Reply status: 1xx=0 2xx=%(good)d 3xx=0 4xx=0 5xx=%(bad)d
Errors: total %(failed)d client-timo %(late)d socket-timo 0 connrefused %(refused)d connreset %(reset)d
Errors: fd-unavail %(full)d addrunavail 0 ftab-full 0 other 0
""",
    "h2load": """\
finished in 527.79ms, 189.47 req/s, 130.26KB/s
requests: 100 total, %(started)d started, %(done)d done, 0 succeeded, 0 failed, %(errored)d errored, %(late)d timeout
status codes: %(heads)d 2xx, %(moved)d 3xx, 0 4xx, %(bad)d 5xx
time for request:       27us      1.86ms        99us       255us    98.00%%
time for connect:       10us      1.85ms        75us       183us    99.00%%
"""}


def wrote(tool, **figures):
    """A report with these figures. The others are zero."""
    return REPORTS[tool] % defaultdict(int, figures)


def sample(name="clean"):
    """What wrk printed, with our script."""
    with open(os.path.join(programs.HERE, "samples", "wrk.txt"), encoding="utf-8") as file:
        return re.search(r"(?ms)^== %s\n(.*?)(?=^== |\Z)" % name, file.read())[1]


def log_of(**statuses):
    """h2load's, with so many answers of each status."""
    return "".join("1795254205264730\t%s\t66\n" % status[1:] * count for status, count in statuses.items())


def curl_wrote(failed, status=""):
    """Of twenty files, so many of which failed with this exit code and this status."""
    return "0\t200\t1\t600\t0.002\n" * (20 - failed) + (status + "\t0\t0\t0.002\n") * failed


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
        for name, clients, requests, errors in (
                ("clean", 1, 9371, ""), ("reset", 1, 11501, "1,277 reset"), ("late", 4, 2388, "8 time-out"),
                ("503", 1, 44380, "4,931 not 2xx")):
            self.check(wrk.parse(sample(name), clients), requests, errors)

    def test_httperf_s(self):
        for good, figures, errors in (
                (1200, {}, ""), (180, {"reset": 20}, "20 reset"), (180, {"late": 20}, "20 time-out"),
                (0, {"refused": 100}, "100 connect"), (180, {"bad": 20}, "20 not 2xx")):
            self.check(httperf.parse(wrote("httperf", good=good, **figures)).load(), good, errors)

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

    def test_curl_s(self):
        for failed, status, errors in (
                (0, "", ""), (2, "0\t503", "2 not 2xx"), (2, "18\t200", "2 length"), (2, "28\t000", "2 time-out"),
                (20, "7\t000", "20 connect"), (1, "56\t000", "1 reset")):
            self.check(curl.parse(curl_wrote(failed, status), 20), 20 - failed, errors)

    def test_a_report_that_is_cut_is_trouble(self):
        def cut(tool, words):
            return wrote(tool).partition(words)[0]

        for parse in (lambda: ab.parse(cut("ab", "Failed requests"), CSV),
                      lambda: ab.parse(wrote("ab"), CSV[:-9]),
                      lambda: wrk.parse(sample().partition("{")[0], 1),
                      lambda: httperf.parse(cut("httperf", "Errors: fd")),
                      lambda: httperf.parse(cut("httperf", "Connection time")),
                      lambda: h2load.parse(cut("h2load", "time for connect"), []),
                      lambda: h2load.parse(wrote("h2load", done=100), []),
                      lambda: curl.parse(curl_wrote(0)[:-12], 20),
                      lambda: h2load.milliseconds("7"), lambda: h2load.pace(0.5)):
            with self.assertRaises(Trouble):
                parse()

    def test_times_are_those_of_the_samples(self):
        clean, many = ab.parse(wrote("ab"), CSV), wrk.parse(sample(), 1)
        self.assertEqual(clean.percentiles, {50: 50.5, 90: 90.5, 99: 99.5, 100: 99.5})
        self.assertEqual((clean.seconds, clean.content), (2.632, 89316541))
        self.assertAlmostEqual(many.rate * many.mean_ms / 1000, 1, delta=0.1)  # Little's law
        report = httperf.parse(wrote("httperf"))
        self.assertEqual((report.mean_ms, report.median_ms, report.void), (0.9, 0.5, None))
        self.assertEqual(httperf.parse(wrote("httperf", full=1981)).void, "1,981 fd-unavail")
        self.assertEqual([h2load.milliseconds(text) for text in ("381us", "6.25ms", "1.50s")],
                         [0.381, 6.25, 1500.0])
        self.assertEqual(ab.mean([1.0] * 100 + [1001.0]), 6.0)

    def test_what_wrk_added_is_taken_back_exactly(self):
        measured = [(10, 500), (11, 300), (19, 5), (20, 5), (21, 5), (60, 3), (61, 2), (105, 7)]
        for even in (1, 7, 10, 20, 200):
            table = dict(measured)
            for value, count in measured:
                for shorter in range(value - even, even, -even):
                    table[shorter] = table.get(shorter, 0) + count
            left = wrk.uncorrected(sorted(table.items()), even)
            self.assertEqual([pair for pair in left if pair[1]], measured)
        report = json.loads(sample().splitlines()[-1])
        times = wrk.uncorrected(report["times"], wrk.interval(report, 1))
        self.assertEqual(sum(count for _, count in times), report["requests"])

    def test_what_a_run_of_a_second_would_not_show_of_a_command(self):
        words = ab.command("http://x/", 20, "x.csv", seconds=3)
        self.assertLess(words.index("-t"), words.index("-n"))
        self.assertNotIn("-t", ab.command("http://x/", 20, "x.csv", requests=500))
        self.assertIn("-t1", wrk.command("http://h/", 1, 1, 4))  # not more threads than clients
        kept = h2load.command("http://h/", 3000, 5, "log", 3000, 100, 2)
        self.assertIn("--rps=30", kept)
        self.assertEqual(kept[kept.index("-t") + 1], "2")

    def test_rates_that_h2load_spreads_evenly(self):
        for rate in (0.2, 7, 33, 99, 149, 1234, 25600):
            connections, period_ms = h2load.pace(h2load.even(rate))
            self.assertEqual(connections * 1000, h2load.even(rate) * period_ms)
            self.assertTrue(period_ms <= 10 or connections == 1)


class Several(unittest.TestCase):
    """One process for each core."""

    def test_loads_are_added_and_their_times_are_one_distribution(self):
        fast, slow = (load.Load(300, {"reset": 1}, seconds, ms, {50: ms, 99: ms}, True, 10,
                                times=((ms, 300.0),)) for seconds, ms in ((1.0, 2.0), (1.5, 8.0)))
        both = load.together([fast, slow])
        self.assertEqual((both.requests, both.errors, both.seconds, both.mean_ms, both.content),
                         (600, {"reset": 2}, 1.5, 5.0, 20))
        self.assertEqual(both.percentiles, {50: 2.0, 99: 8.0})
        self.assertEqual(load.shares(10, 3), [4, 3, 3])

    def test_reports_of_httperf(self):
        short = wrote("httperf", good=180, reset=20).replace("5.997", "0.996")
        both = httperf.together([httperf.parse(wrote("httperf", good=1200)), httperf.parse(short)])
        self.assertEqual((both.statuses, both.errors, both.seconds), ({2: 1380}, {"connreset": 20}, 5.997))

    def test_they_run_at_the_same_time_and_the_first_that_fails_is_trouble(self):
        save_as = programs.folder(self) + "/run"
        began, seen = time.monotonic(), []
        said = load.run("tool", [(ANYWHERE, ["sh", "-c", "sleep 0.3; echo %d" % number]) for number in (1, 2)],
                        save_as, 5, meanwhile=seen.extend)
        self.assertEqual((said, len(seen)), (["1\n", "2\n"], 2))
        self.assertLess(time.monotonic() - began, 0.55)
        for script, why in (("echo no; exit 1", "gave up: no"), ("echo; exit 3", "status 3"),
                            ("echo warning: few >&2; kill -6 $$", "status -6"),
                            ("exec sleep 60", "not done after 0.05 s")):
            with self.subTest(script), self.assertRaisesRegex(Trouble, why):
                load.run("tool", [(ANYWHERE, ["true"]), (ANYWHERE, ["sh", "-c", script])], save_as,
                         0.05 if "sleep" in script else 5)
        with self.assertRaisesRegex(Trouble, "no-such-tool"):
            load.version("no-such-tool", "-V")


# ---- the moment intended ------------------------------------------------------------------------


STALL_S, EVERY_S = 0.1, 1.0
PAPER = {50: 0, 85: 0, 95: 50, 99: 90, 99.9: 99}  # percent: ms


def answers(*pairs):
    return [h2load.Answer(100 + start, 200, ms) for start, ms in pairs]


def percentiles(times, percents=PAPER):
    return {percent: load.percentile(sorted((ms, 1) for ms in times), percent) for percent in percents}


class Intended(unittest.TestCase):
    def test_new_connections_that_come_late_have_waited(self):
        found = h2load.behind(answers((0.0, 1), (0.010, 1), (0.120, 1), (0.120, 2)), 1, 10)
        self.assertEqual([round(each.ms, 3) for each in found], [1, 1, 101, 92])

    def test_another_connection_that_is_on_time_is_not_late(self):
        found = h2load.lateness(answers((0.0, 50), (0.005, 1), (0.025, 1), (0.045, 1), (0.050, 1)), 0.020)
        self.assertEqual([round(each.ms, 3) for each in found], [50, 1, 1, 1, 31])

    def test_percentiles_are_times_that_occurred(self):
        self.assertEqual(percentiles(range(1, 1001), (50, 90, 99, 99.9, 100)),
                         {50: 500, 90: 900, 99: 990, 99.9: 999, 100: 1000})
        self.assertEqual(load.percentile([], 50), 0)

    def test_in_time_is_what_was_answered_within_the_step(self):
        found = h2load.parse(wrote("h2load", started=4, done=4), answers(
            (0.0, 1), (0.25, 1), (0.5, 700), (0.75, 240)), 1.0)
        self.assertEqual(found.in_time, 3)


TRIES, WITHIN_MS = 5, 20  # others may be at work on this machine


class Stalling(BaseHTTPRequestHandler):
    """Stands still for the first tenth of every second."""

    protocol_version, began = "HTTP/1.1", 0.0

    def do_GET(self):
        phase = (time.monotonic() - self.began) % EVERY_S
        if phase < STALL_S:
            time.sleep(STALL_S - phase)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class OnPaper(unittest.TestCase):
    """Requests come evenly, so a tenth of them comes while the server stalls, and waits for what is
    left of that: 0 to 100 ms, all alike. So 90 % are answered at once, 95 % within 50 ms, 99 %
    within 90 ms, and 99.9 % within 99 ms. A closed loop of twenty clients would ask for next to
    nothing meanwhile, and see none of it."""

    def test_from_the_log_of_such_a_server(self):
        """Of 20 connections, with a request every 20 ms on each."""
        log = []
        for client in range(20):
            end = 0.0
            for number in range(200):
                start = max(end, 0.001 * client + 0.020 * number)
                end = start + max(0.0, STALL_S - start % EVERY_S) + 1e-4
                log.append((start, 1000 * (end - start)))
        found = percentiles([answer.ms for answer in h2load.lateness(answers(*log), 0.020)])
        for percent, ms in PAPER.items():
            self.assertAlmostEqual(found[percent], ms, delta=2, msg=percent)
        hidden = percentiles([ms for _, ms in log])
        self.assertLess(hidden[95], 25)  # as the log has it: who had to wait is left out

    @programs.needs("h2load")
    @unittest.skipIf(os.getloadavg()[0] > os.cpu_count(), "the machine is busy")
    def test_the_percentiles_of_a_server_that_stalls(self):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Stalling)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = "http://127.0.0.1:%d/" % server.server_address[1]
        for clients in (20, None):
            for _ in range(TRIES):
                found = self.measured(url, clients)
                off = {percent: abs(found[percent] - ms) for percent, ms in PAPER.items()}
                if max(off.values()) < WITHIN_MS:
                    break
            self.assertLess(max(off.values()), WITHIN_MS, (clients, found))

    def measured(self, url, clients):
        Stalling.began = time.monotonic()
        found, those = h2load.offer(url, 500, 4, ANYWHERE, programs.folder(self) + "/log", clients=clients)
        self.assertEqual((found.requests, found.failed), (2000, 0))
        return percentiles([answer.ms for answer in those])
