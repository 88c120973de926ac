"""h2load: an open loop over HTTP/1.1, run and understood.

ab and wrk are closed loops. A client that waits asks for nothing meanwhile, so a slow server is
asked less. h2load opens so many new connections a period, whatever the replies do, and asks once on
each. README.md lists the traps of all load generators. To trust its figures (1.52) one must also
know:

- With -D a time-out ends h2load with a failed assertion. So this module always gives it -n.
- Its log has only the requests that were answered, whatever its manual says about -1.
- Its 2xx may be more than were answered: it counts heads, and a body may be cut short.
- "errored" includes "timeout", and clients that could not connect.
- -r takes a whole number of connections a period: see pace().
"""

import math
import re
from dataclasses import dataclass
from typing import Dict, List, NamedTuple

from lib import Trouble
from lib.generators import load
from lib.measuring import processes
from lib.generators.load import Load

LEAST_PERIOD_MS = 10  # short, so that connections come evenly
GRACE_SECONDS = 10
PERCENTAGES = (50, 90, 99, 100)

COUNTS = re.compile(r"requests: (\d+) total, (\d+) started, (\d+) done, \d+ succeeded, "
                    r"\d+ failed, (\d+) errored, (\d+) timeout")
STATUSES = re.compile(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx")
FINISHED = re.compile(r"finished in ([\d.]+(?:us|ms|s))\b")
CONNECT = re.compile(r"time for connect:\s+(\S+)\s+(\S+)\s+(\S+)")
UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


class Answer(NamedTuple):
    start_s: float  # since 1970, so that several runs can be put on one axis
    status: int
    ms: float  # to the end of the response


@dataclass(frozen=True)
class Report:
    total: int  # requests to be made
    started: int
    errored: int  # not answered
    timeout: int  # among the errored
    statuses: Dict[int, int]  # by first digit, only those that occurred: {2: 3000, 5: 7}
    seconds: float
    connect_ms: float  # mean, of a connection
    answers: List[Answer]  # in the order in which they ended

    def load(self):
        """The same as a Load. Times are those of the 2xx responses."""
        good = sorted(answer.ms for answer in self.answers if answer.status // 100 == 2)
        others = sum(count for digit, count in self.statuses.items() if digit != 2)
        connected = self.started > 0
        errors = {"connect": 0 if connected else self.errored,
                  "reset": self.errored - self.timeout if connected else 0,
                  "time-out": self.timeout if connected else 0,
                  "not 2xx": others}
        return Load(
            requests=len(good), errors=errors, seconds=self.seconds, connects=False,
            mean_ms=sum(good) / len(good) if good else 0.0, percentiles=percentiles(good))


def offer(url, rate, seconds, cores, save_as, timeout_seconds=5, prefix=()):
    """Opens `rate` new connections a second for so long, with a request on each. Returns the
    Report. h2load's output is kept in `save_as` with .txt and .tsv. `prefix` runs it on another
    host."""
    requests = max(1, round(rate * seconds))
    log = save_as + ".tsv"
    with open(log, "wb"):
        pass  # it may get no response, and write none
    words = [*prefix, *command(url, requests, timeout_seconds, log, rate)]
    limit = 2 * (seconds + timeout_seconds) + GRACE_SECONDS
    text = load.run("h2load", words, cores, save_as, limit)
    return parse(text, processes.printed(log))


def command(url, requests, timeout_seconds, log, rate):
    connections, period_ms = pace(rate)
    return ["h2load", "--h1", "-n", str(requests), "--log-file=" + log,
            "-N", "%dms" % (1000 * timeout_seconds), "-c", str(requests), "-r", str(connections),
            "--rate-period=%dms" % period_ms, url]


def pace(rate):
    """How many connections, each how many milliseconds: the shortest period, from
    LEAST_PERIOD_MS on, that gives a whole rate exactly."""
    for period_ms in range(LEAST_PERIOD_MS, 1001):
        if rate * period_ms % 1000 == 0:
            return rate * period_ms // 1000, period_ms
    raise Trouble("h2load cannot open %g connections a second" % rate)


def parse(text, log):
    counts, statuses, finished, connect = (
        pattern.search(text) for pattern in (COUNTS, STATUSES, FINISHED, CONNECT))
    if not (counts and statuses and finished and connect):
        raise Trouble("h2load wrote no summary")
    total, started, done, errored, timeout = map(int, counts.groups())
    answers = parse_log(log)
    if len(answers) != done:
        raise Trouble("h2load counted %d answers, and logged %d" % (done, len(answers)))
    heads = {digit: int(count) for digit, count in enumerate(statuses.groups(), 2) if int(count)}
    return Report(
        total=total, started=started, errored=errored, timeout=timeout, statuses=heads,
        seconds=milliseconds(finished.group(1)) / 1000,
        connect_ms=milliseconds(connect.group(3)), answers=answers)


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


def percentiles(times, percentages=PERCENTAGES):
    """For each percentage the shortest time within which so many were done. The list is sorted."""
    if not times:
        return {}
    return {percent: times[max(1, math.ceil(len(times) * percent / 100)) - 1]
            for percent in percentages}
