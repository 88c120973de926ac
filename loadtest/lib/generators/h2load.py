"""h2load: an open loop over HTTP/1.1, run and understood.

ab and wrk are closed loops. A client that waits asks for nothing meanwhile, so a slow server is
asked less. h2load opens new connections at a rate that does not depend on the replies (-r), and asks
once on each. So the moment at which each request should have been sent is known, and its latency counts
from there. README.md lists the traps of all load generators. To trust its figures (1.52) one must also know:

- With -D a time-out ends h2load with a failed assertion. So this module gives it -n instead.
- Its log has only the requests that were answered, whatever its manual says about -1. A time in it
  begins when h2load has sent the request, which may be later than planned (see behind).
- Its 2xx may be more than were answered: it counts heads, and a body may be cut short.
- "errored" includes "timeout", and clients that could not connect.
- -r takes a whole number of connections a period: see pace().
"""

import math
import re
from typing import NamedTuple

import processes
from lib import Trouble
from lib.generators import load
from lib.generators.load import Load

LEAST_PERIOD_MS = 2  # short, so that connections come evenly
GRACE_SECONDS = 10
PERCENTAGES = (50, 90, 99, 99.9, 100)

COUNTS = re.compile(r"requests: \d+ total, (\d+) started, (\d+) done, \d+ succeeded, "
                    r"\d+ failed, (\d+) errored, (\d+) timeout")
STATUSES = re.compile(r"status codes: \d+ 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx")
FINISHED = re.compile(r"finished in ([\d.]+(?:us|ms|s)), ")
UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


class Answer(NamedTuple):
    start_s: float  # since 1970, so that several runs can be put on one axis
    status: int
    ms: float  # to the end of the response; from the moment intended, once that is known


def offer(url, rate, seconds, place, save_as, timeout_seconds=5, late_ms=50, ended=lambda: None):
    """Offers `rate` requests a second for so long. Returns the Load, whose times count from the moments intended.
    In time is what was answered at most so late. h2load's output is kept in `save_as` with .txt and .tsv."""
    requests = max(1, round(rate * seconds))
    log = save_as + ".tsv"
    with open(log, "wb"):
        pass  # it may get no response, and write none
    words = command(url, requests, timeout_seconds, log, rate, len(place.cores or [0]))
    limit = 2 * (seconds + timeout_seconds) + GRACE_SECONDS
    [text] = load.run("h2load", [words], place.cores, save_as, limit, ended=ended)
    return parse(text, behind(parse_log(processes.printed(log)), *pace(rate)), late_ms)


def command(url, requests, timeout_seconds, log, rate, threads=1):
    connections, period_ms = pace(rate)
    return ["h2load", "--h1", "-n", str(requests), "--log-file=" + log, "-N", "%dms" % (1000 * timeout_seconds),
            "-t", str(min(threads, connections)), "-c", str(requests), "-r", str(connections),
            "--rate-period=%dms" % period_ms, url]


def pace(rate):
    """How many connections, each how many milliseconds: the shortest period, from
    LEAST_PERIOD_MS on, that gives a whole rate exactly."""
    for period_ms in range(LEAST_PERIOD_MS, 1001):
        if rate * period_ms % 1000 == 0:
            return int(rate * period_ms // 1000), period_ms
    raise Trouble("h2load cannot open %g connections a second" % rate)


# ---- from the moment intended -----------------------------------------------------------------


def behind(answers, connections, period_ms):
    """Connections are opened one after the other, so many each period. The n-th request that was sent should
    have been sent when its turn was. (What a connection takes to be established is told by the kernel's count
    of SYNs sent again.)"""
    answers = sorted(answers)
    return [answer._replace(start_s=intended, ms=answer.ms + 1000 * (answer.start_s - intended))
            for number, answer in enumerate(answers)
            for intended in [min(answer.start_s, answers[0].start_s
                                 + number // connections * period_ms / 1000)]]


# ---- what it wrote ----------------------------------------------------------------------------


def parse(text, answers, late_ms=math.inf):
    """Its summary and its log, as a Load. Times are those of the 2xx responses; whatever was lost has taken
    for ever."""
    counts, statuses, finished = (pattern.search(text) for pattern in (COUNTS, STATUSES, FINISHED))
    if not (counts and statuses and finished):
        raise Trouble("h2load wrote no summary")
    started, done, errored, timeout = map(int, counts.groups())
    if len(answers) != done:
        raise Trouble("h2load counted %d answers, and logged %d" % (done, len(answers)))
    errors = {"reset": errored - timeout, "time-out": timeout} if started else {"connect": errored}
    errors["not 2xx"] = sum(map(int, statuses.groups()))
    times = sorted((answer.ms, 1) for answer in answers if answer.status // 100 == 2)
    return Load(
        requests=len(times), errors=errors, seconds=milliseconds(finished.group(1)) / 1000,
        mean_ms=sum(ms for ms, _ in times) / len(times) if times else 0.0,
        percentiles={percent: load.percentile(times, percent, sum(errors.values()))
                     for percent in PERCENTAGES if times},
        in_time=sum(ms <= late_ms for ms, _ in times))


def parse_log(log):
    """Its lines: start in microseconds, status, microseconds. Failed requests are left out. (A
    version might write them, as -1.)"""
    rows = [line.split("\t") for line in log.splitlines()]
    return [Answer(int(row[0]) / 1e6, int(row[1]), int(row[2]) / 1000)
            for row in rows if int(row[1]) > 0]


def milliseconds(text):
    """From "381us", "6.27ms", "1.20s"."""
    found = re.fullmatch(r"([\d.]+)(us|ms|s)", text)
    if not found:
        raise Trouble("h2load wrote '%s' for a time" % text)
    return float(found.group(1)) * UNITS[found.group(2)]
