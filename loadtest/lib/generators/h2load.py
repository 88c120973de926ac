"""h2load: an open loop over HTTP/1.1, run and understood.

ab and wrk are closed loops. A client that waits asks for nothing meanwhile, so a slow server is
asked less. h2load asks at a rate that does not depend on the replies: on new connections (-r), or
on kept ones (--rps). So the moment at which each request should have been sent is known, and its
latency counts from there. README.md lists the traps of all load generators. To trust its figures
(1.52) one must also know:

- With -D a time-out ends h2load with a failed assertion. So this module gives it -n instead.
- Its log has only the requests that were answered, whatever its manual says about -1. A time in it
  begins when h2load has sent the request, which may be later than planned (see lateness).
- Its 2xx may be more than were answered: it counts heads, and a body may be cut short.
- "errored" includes "timeout", and clients that could not connect.
- -r takes a whole number of connections a period: see pace().
- A connection that waits for an answer does not send the next request. If the next one is late by
  then, h2load sends it at once, and its log does not say that it was late.
- It looks at a clock every 10 ms at most, so that above MOST_RPS requests come in small batches.
"""

import bisect
import math
import re
from typing import NamedTuple

from lib import Trouble
from lib.generators import load
from lib.generators.load import Load
from lib.measuring import processes

LEAST_PERIOD_MS = 2  # short, so that connections come evenly
MOST_RPS, MOST_CLIENTS = 100, 2000  # on a connection; and of these
AT_ONCE_S = 0.0005  # from the end of an answer to a request that waited for it
GRACE_SECONDS = 10
PERCENTAGES = (50, 90, 99, 99.9, 100)

COUNTS = re.compile(r"requests: \d+ total, (\d+) started, (\d+) done, \d+ succeeded, "
                    r"\d+ failed, (\d+) errored, (\d+) timeout")
STATUSES = re.compile(r"status codes: \d+ 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx")
FINISHED = re.compile(r"finished in ([\d.]+(?:us|ms|s)), ([\d.]+) req/s")
CONNECT = re.compile(r"time for connect:\s+(\S+)\s+(\S+)\s+(\S+)")
UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


class Answer(NamedTuple):
    start_s: float  # since 1970, so that several runs can be put on one axis
    status: int
    ms: float  # to the end of the response; from the moment intended, once that is known

    @property
    def end_s(self):
        return self.start_s + self.ms / 1000


def offer(url, rate, seconds, place, save_as, timeout_seconds=5, clients=None, late_seconds=0, ended=lambda: None):
    """Offers `rate` requests a second for so long: on new connections, or on `clients` kept ones.
    Returns the Load and the Answers, which count from the moments intended. In time is what was
    answered at most so many seconds after the end. h2load's output is kept in `save_as` with .txt and
    .tsv. Once it has ended, and before that is read, ended() is called."""
    requests = max(1, round(rate * seconds))
    log = save_as + ".tsv"
    with open(log, "wb"):
        pass  # it may get no response, and write none
    words = command(url, requests, timeout_seconds, log, rate, clients, len(place.cores or [0]))
    limit = 2 * (seconds + timeout_seconds) + GRACE_SECONDS
    [text] = load.run("h2load", [(place, words)], save_as, limit)
    ended()
    answers = parse_log(processes.printed(log))
    answers = lateness(answers, clients / rate) if clients else behind(answers, *pace(rate))
    return parse(text, answers, seconds + late_seconds), answers


def capacity(url, clients, seconds, place, save_as):
    """How many requests a second so many kept connections get in a closed loop, after a warm-up
    that is not counted."""
    warm_up = max(1, round(seconds / 2))
    words = ["h2load", "--h1", "-c", str(clients), "-t", str(min(len(place.cores or [0]), clients)),
             "-D", "%d" % max(1, round(seconds)), "--warm-up-time=%d" % warm_up, url]
    [text] = load.run("h2load", [(place, words)], save_as, seconds + warm_up + GRACE_SECONDS)
    found = FINISHED.search(text)
    if not found:
        raise Trouble("h2load wrote no summary")
    return float(found.group(2))


def command(url, requests, timeout_seconds, log, rate, clients=None, threads=1):
    words = ["h2load", "--h1", "-n", str(requests), "--log-file=" + log,
             "-N", "%dms" % (1000 * timeout_seconds)]
    if clients:  # each connection begins at another moment of the first period
        connections, period_ms = opening(rate, clients)
        words += ["--rps=%g" % (rate / clients)]
    else:
        connections, period_ms = pace(rate)
    return [*words, "-t", str(min(threads, connections)), "-c", str(clients or requests),
            "-r", str(connections), "--rate-period=%dms" % period_ms, url]


def pace(rate):
    """How many connections, each how many milliseconds: the shortest period, from
    LEAST_PERIOD_MS on, that gives a whole rate exactly."""
    for period_ms in range(LEAST_PERIOD_MS, 1001):
        if rate * period_ms % 1000 == 0:
            return int(rate * period_ms // 1000), period_ms
    raise Trouble("h2load cannot open %g connections a second" % rate)


def opening(rate, clients):
    """The same for kept connections: about all of them within the time from one request on a
    connection to the next."""
    period_ms = max(1, round(1000 / rate))
    return max(1, round(rate * period_ms / 1000)), period_ms


def even(rate):
    """The nearest rate that can be spread evenly: whole connections every 2 ms, or every 10 ms, or
    one every so many milliseconds."""
    for least, step in ((2500, 500), (100, 100)):
        if rate >= least:
            return round(rate / step) * step
    return min((each for each in range(1, 101) if 1000 % each == 0),
               key=lambda each: abs(each - rate))


# ---- from the moment intended -----------------------------------------------------------------


def behind(answers, connections, period_ms):
    """Of new connections: they are opened one after the other, so many each period. The n-th that
    was sent should have been sent when its turn was. (What a connection takes to be established is
    told by the kernel's count of SYNs sent again, and by connect_ms.)"""
    answers = sorted(answers)
    return [answer._replace(start_s=intended, ms=1000 * (answer.end_s - intended))
            for number, answer in enumerate(answers)
            for intended in [min(answer.start_s, answers[0].start_s
                                 + number // connections * period_ms / 1000)]]


def lateness(answers, period):
    """Of kept connections: a request is sent every `period` seconds on each of them, or, if an
    answer takes longer, at its end, and then it is late by the rest. So is the next one, until
    the connection has caught up. The log does not name the connections, but a request that waited
    is the one that was sent in the instant when the answer before it had come."""
    answers = sorted(answers)
    starts = [answer.start_s for answer in answers]
    late, taken = [0.0] * len(answers), set()
    for number, answer in enumerate(answers):
        more = late[number] + answer.ms / 1000 - period
        at = bisect.bisect_left(starts, answer.end_s - AT_ONCE_S / 10)
        while at in taken:
            at += 1
        if more > 0 and at < len(starts) and starts[at] <= answer.end_s + AT_ONCE_S:
            late[at] = more
            taken.add(at)
    return [answer._replace(start_s=answer.start_s - seconds, ms=answer.ms + 1000 * seconds)
            for answer, seconds in zip(answers, late)]


# ---- what it wrote ----------------------------------------------------------------------------


def parse(text, answers, step_seconds=math.inf):
    """Its summary and its log, as a Load. Times are those of the 2xx responses. In time is what was
    answered in so many seconds from the first request on."""
    counts, statuses, finished, connect = (
        pattern.search(text) for pattern in (COUNTS, STATUSES, FINISHED, CONNECT))
    if not (counts and statuses and finished and connect):
        raise Trouble("h2load wrote no summary")
    started, done, errored, timeout = map(int, counts.groups())
    if len(answers) != done:
        raise Trouble("h2load counted %d answers, and logged %d" % (done, len(answers)))
    errors = {"reset": errored - timeout, "time-out": timeout} if started else {"connect": errored}
    good = [answer for answer in answers if answer.status // 100 == 2]
    times = sorted((answer.ms, 1) for answer in good)
    return Load(
        requests=len(good), errors={**errors, "not 2xx": sum(map(int, statuses.groups()))}, connects=False,
        seconds=milliseconds(finished.group(1)) / 1000, connect_ms=milliseconds(connect.group(3)),
        mean_ms=sum(ms for ms, _ in times) / len(times) if times else 0.0,
        percentiles={percent: load.percentile(times, percent) for percent in PERCENTAGES if times},
        in_time=sum(answer.end_s <= good[0].start_s + step_seconds for answer in good))


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
