"""wrk: kept connections, run and understood.

README.md lists the traps of all load generators. To trust wrk's figures one must also know:

- Its times do not include connecting: they begin when the connection takes the request.
- The times that it adds belong to no request: on one connection the mean came out at twice the
  truth. The addition is exact, so it is taken back here (see uncorrected).
- A connection that is refused is counted once and never tried again.
- It runs for whole seconds. Up to 0.1 s more is in the length that it reports.
- A response whose end is the end of its connection, without Content-Length, counts as a read error
  and as a response: use ab for such a server. One with "Connection: close" and a length is right: wrk opens another
  connection.
"""

import bisect
import itertools
import json
import os

from lib import Trouble
from lib.generators import load
from lib.measuring import machine
from lib.generators.load import Load

SCRIPT = os.path.join(machine.TOP, "loadtest", "lib", "generators", "wrk.lua")
TIMEOUT_SECONDS = 30  # longer than any client should have to wait
GRACE_SECONDS = 15  # beyond a run's length, to start and to write its report
PERCENTAGES = (50, 90, 99, 100)


def command(url, clients, seconds, threads=1, rate=None):
    """The command: `clients` connections, for whole seconds, at least one."""
    threads = min(threads, clients)
    return ["wrk", "-t%d" % threads, "-c%d" % clients, "-d%d" % max(1, round(seconds)), "--timeout", str(TIMEOUT_SECONDS),
            "-s", SCRIPT, url, *(["--", "%g" % (rate / threads)] if rate else [])]


def run(url, clients, seconds, place, save_as, meanwhile=None, rate=None):
    """Asks for `url` for so long on so many connections, with a thread for each core of the place; as often as it can, or
    `rate` times a second. Returns the Load. wrk's output is kept in `save_as` with .txt and .err. Trouble if wrk gave up.
    `meanwhile` may end it early, by load.interrupt()."""
    words = command(url, clients, seconds, len(place.cores or [0]), rate)
    [text] = load.run("wrk", [words], place.cores, save_as, seconds + GRACE_SECONDS, meanwhile=meanwhile)
    return parse(text, clients)


def parse(text, clients):
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        raise Trouble("wrk wrote no report")
    report = json.loads(lines[-1])
    errors = {"connect": report["connect"], "reset": report["read"] + report["write"],
              "time-out": report["timeout"], "not 2xx": report["status"]}
    times = uncorrected(report["times"], interval(report, clients))
    return Load(
        requests=max(0, report["requests"] - report["timeout"] - report["status"]),
        errors=errors,
        seconds=report["microseconds"] / 1e6,
        mean_ms=mean(times) / 1000,
        percentiles={percent: load.percentile(times, percent, sum(errors.values())) / 1000
                     for percent in PERCENTAGES if times},
    )


def interval(report, clients):
    """The interval at which wrk assumes its clients to ask, in whole microseconds; None if it does
    not correct."""
    each = report["requests"] // clients
    return report["microseconds"] // each if each else None


def uncorrected(times, even):
    """Takes back what wrk added: for a time t, t - even, t - 2 even and so on, as long as more
    than `even` is left. Takes and returns pairs of a time and how often it was counted.

    So what stands at x > even is what was measured there, and all that stands at x + even."""
    if even is None:
        return times
    values = [value for value, _ in times]
    sums = [0, *itertools.accumulate(count for _, count in times)]

    def counted(most):
        return sums[bisect.bisect_right(values, most)]

    def measured(most):
        if most <= even:
            return counted(most)
        return counted(most) - (counted(most + even) - counted(2 * even))

    totals = [measured(value) for value in values]
    return [(value, total - before)
            for value, total, before in zip(values, totals, [0, *totals])]


def mean(times):
    """Of pairs of a time and how often it was counted; 0 if there is none."""
    every = sum(count for _, count in times)
    return sum(value * count for value, count in times) / every if every else 0.0
