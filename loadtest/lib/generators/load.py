"""load: a load generator, run to its end, and what it saw. It is the same for all generators.

Requests are those that got a whole response with status 2xx. Everything else is an error of some
kind, and never part of a rate.
"""

import re
import subprocess
from dataclasses import dataclass
from typing import Dict, Optional

from lib import Trouble
from lib.measuring import processes

KINDS = ("connect", "reset", "time-out", "not 2xx", "length", "other")


@dataclass(frozen=True)
class Load:
    requests: int
    errors: Dict[str, int]  # by kind, of KINDS; only those that occurred
    seconds: float
    mean_ms: float  # the mean time of a request
    percentiles: Dict[float, float]  # 50, 90, 99, 100: so many percent took at most so many ms
    connects: bool  # is connecting a part of a request's time?
    content: Optional[int] = None  # bytes of content that came; None: the generator does not say
    connections: Optional[int] = None  # connections used; None: the generator does not say

    def __post_init__(self):
        occurred = {kind: count for kind, count in self.errors.items() if count}
        object.__setattr__(self, "errors", occurred)

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


def run(name, words, cores, save_as, limit=None, must_succeed=True):
    """Runs a load generator. Its output is kept in `save_as` with .txt and .err. Returns the first
    of these. Trouble if it gives up, or takes more than `limit` seconds."""
    with open(save_as + ".txt", "wb") as out, open(save_as + ".err", "wb") as err:
        process = processes.start(words, cores, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        in_time = processes.wait(process, limit)
        status = processes.end(process)
    if not in_time:
        raise Trouble("%s was not done after %g s" % (name, limit))
    printed = processes.printed(save_as + ".txt")
    if status and must_succeed:
        raise Trouble(why_it_gave_up(name, processes.printed(save_as + ".err") or printed, status))
    return printed


def why_it_gave_up(name, said, status):
    """The reason, from its output and status, if it ends without a report."""
    lines = [line for line in said.splitlines() if line.strip() and "warning" not in line]
    return "%s gave up: %s" % (name, lines[-1].strip() if lines else "status %d" % status)


def version(program, option, pattern=None, name=None):
    """"ab 2.3", for example: what the pattern finds in the program's output, whatever its exit
    status is."""
    try:
        done = subprocess.run([program, option], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    except OSError as error:
        raise Trouble("%s: %s" % (program, error)) from error
    found = re.search(pattern or r"%s[ -](?:debian/)?([\d.]+)" % program, done.stdout)
    return "%s %s" % (name or program, found.group(1) if found else "of an unknown version")
