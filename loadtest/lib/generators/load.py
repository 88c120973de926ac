"""load: a load generator, run to its end, and what it saw. It is the same for all generators.

Requests are those that got a whole response with status 2xx. Everything else is an error of some
kind, and never part of a rate.
"""

import contextlib
import itertools
import math
import os
import re
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, replace

import processes
from lib import Trouble
from proc import read

KINDS = ("connect", "reset", "time-out", "not 2xx", "length", "other")


@dataclass(frozen=True)
class Load:
    requests: int
    errors: dict[str, int]  # by kind, of KINDS
    seconds: float
    mean_ms: float  # the mean time of a request
    percentiles: dict[float, float]  # 50, 90, 99, 100: so many percent took at most so many ms
    content: "int | None" = None  # bytes of content that came; None: the generator does not say
    times: tuple = ()  # pairs of a time and how many requests took it, if it is known so well
    in_time: "int | None" = None  # of an open loop: answered soon after the moment intended

    @property
    def rate(self):
        return self.requests / self.seconds if self.seconds else 0.0

    @property
    def failed(self):
        return sum(self.errors.values())

    def errors_text(self):
        """The errors by kind: "12 reset, 3 not 2xx"."""
        return ", ".join("%s %s" % (format(self.errors[kind], ","), kind)
                         for kind in KINDS if self.errors.get(kind))


def together(loads):
    """What several processes of one generator have seen at the same time, as one Load."""
    if len(loads) == 1:
        return loads[0]
    times = sorted(pair for load in loads for pair in load.times)
    requests = sum(load.requests for load in loads)
    return replace(
        loads[0], requests=requests, errors=dict(sum((Counter(load.errors) for load in loads),
                                                     Counter())),
        seconds=max(load.seconds for load in loads), times=tuple(times),
        mean_ms=sum(load.mean_ms * load.requests for load in loads) / max(1, requests),
        percentiles={percent: percentile(times, percent) for percent in loads[0].percentiles},
        content=sum(load.content or 0 for load in loads))


def percentile(times, percent, lost=0):
    """The shortest time within which so many percent were done; 0 if there is none. `times` are sorted pairs,
    of a time and how often it was counted. Those that were lost have taken for ever."""
    wanted = percent / 100 * (lost + sum(count for _, count in times))
    seen = 0
    for value, count in times:
        seen += count
        if seen >= wanted * (1 - 1e-12) and count > 0:
            return value
    return math.inf if lost else 0


def shares(number, parts):
    """A number as so many whole parts, as equal as they can be."""
    return [number // parts + (each < number % parts) for each in range(parts)]


def run(name, jobs, cores, save_as, limit=None, meanwhile=None, ended=lambda: None):
    """Runs a load generator on these cores, as one process for each of the jobs, which are commands. The
    output is kept in `save_as` with .txt and .err, and a number if there are several. Returns a list of what
    each printed. Trouble if one gives up, or takes more than `limit` seconds. `meanwhile` is called with the
    processes when all have begun, and `ended` when all have ended, before anything is read."""
    paths = ["%s%s" % (save_as, "-%d" % number if number else "") for number in range(len(jobs))]
    with contextlib.ExitStack() as stack:
        started = []
        for words, path in zip(jobs, paths):
            out, err = (stack.enter_context(open(path + kind, "wb")) for kind in (".txt", ".err"))
            started.append(processes.start(words, cores, stdin=subprocess.DEVNULL, stdout=out, stderr=err))
            stack.callback(processes.end, started[-1])
        if meanwhile:
            meanwhile(started)
        in_time = all([processes.wait(process, limit) for process in started])
        ended()
        statuses = [processes.end(process) for process in started]
    if not in_time:
        raise Trouble("%s was not done after %g s" % (name, limit))
    printed = [processes.printed(path + ".txt") for path in paths]
    for path, said, status in zip(paths, printed, statuses):
        if status:
            raise Trouble(why_it_gave_up(name, processes.printed(path + ".err") or said, status))
    return printed


def interrupt(started, ended):
    """Asks for wrk's reports: SIGINT, again and again, because it may come before wrk sleeps. `ended` is called when
    the threads that load have ended: then it only computes."""
    while not all(map(processes.has_ended, started)):
        told = [read("/proc/%d/status" % process.pid) for process in started]
        loads = list(map(_catches_sigint, told))
        for process in itertools.compress(started, loads):
            os.kill(process.pid, signal.SIGINT)
        if all(loads) and all("\nThreads:\t1\n" in text for text in told):
            ended()
        time.sleep(0.005)


def _catches_sigint(status):
    """Not yet, if it has only just begun, and has no threads."""
    caught = re.search(r"^SigCgt:\s+(\w+)", status, re.MULTILINE)
    return bool(caught and int(caught[1], 16) & 1 << signal.SIGINT - 1)


def why_it_gave_up(name, said, status):
    """The reason, from its output and status, if it ends without a report."""
    lines = [line for line in said.splitlines() if line.strip() and "warning" not in line]
    return "%s gave up: %s" % (name, lines[-1].strip() if lines else "status %d" % status)


def version(program, option, name=None):
    """"ab 2.3", for example: the first number with a point in the program's output, whatever its exit status is."""
    try:
        done = subprocess.run([program, option], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    except OSError as error:
        raise Trouble("%s: %s; `make deps-compare` brings it" % (program, error.strerror)) from error
    found = re.search(r"\d+\.[\d.]*\d", done.stdout)
    return "%s %s" % (name or program, found[0] if found else "of an unknown version")
