"""httperf: connections at an offered rate, run and understood.

httperf opens so many connections a second, whether or not the server has answered the earlier ones,
asks once on each, and closes it. README.md lists the traps of all load generators. To trust its
figures one must also know:

- If it runs out of descriptors, it counts "fd-unavail" and goes on. Such a run says nothing about
  the server (see Report.void).
- It never waits by sleeping, so its core is always full. That tells nothing.
- If it cannot keep up, it opens fewer connections than it was told to. Its seconds go on until the
  last reply or time-out, so replies by seconds are those that came in time.
- A body cut short counts as a reply, even though Content-Length says more. A connection closed
  without a reply is a "connreset".
- --timeout holds for each step of a connection: to connect, to send, to receive something.
"""

import re
from collections import Counter
from typing import NamedTuple
from urllib.parse import urlsplit

from lib import Trouble
from lib.generators import load
from lib.generators.load import Load

GRACE_SECONDS = 10

# The lines that are read, with N for each number of interest.
LINES = [re.compile(line.replace("N", r"([\d.]+)")) for line in (
    r"Total: .* test-duration N s", r"Connection time \[ms\]: min .* avg N max N median N ",
    r"Connection time \[ms\]: connect N", r"Reply status: 1xx=N 2xx=N 3xx=N 4xx=N 5xx=N")]
ERRORS = re.compile(r"^Errors: (.*)$", re.MULTILINE)
CLIENT_S_OWN = ["fd-unavail", "addrunavail", "ftab-full"]


class Report(NamedTuple):
    """The results of one run of httperf. A time is that of a connection, from connect to close."""

    seconds: float
    mean_ms: float
    max_ms: float
    median_ms: float
    connect_ms: float
    statuses: Counter  # by first digit
    errors: Counter  # by httperf's own names

    @property
    def void(self):
        """Why the run says nothing about the server, because httperf itself was the limit; or
        None."""
        return ", ".join("%s %s" % (format(self.errors[kind], ","), kind)
                         for kind in CLIENT_S_OWN if self.errors[kind]) or None

    def load(self):
        """The same as a Load, with two percentiles only."""
        count = self.errors
        errors = {
            "connect": sum(count[kind] for kind in ["connrefused", "other", *CLIENT_S_OWN]),
            "reset": count["connreset"], "time-out": count["client-timo"] + count["socket-timo"],
            "not 2xx": sum(self.statuses[digit] for digit in (1, 3, 4, 5))}
        return Load(requests=self.statuses[2], errors=errors, seconds=self.seconds, mean_ms=self.mean_ms,
                    percentiles={50: self.median_ms, 100: self.max_ms}, connects=True,
                    connect_ms=self.connect_ms)


def command(url, rate, connections, timeout_seconds):
    """The command for `rate` new connections a second, with a request on each, until there were so
    many."""
    parts = urlsplit(url)
    return ["httperf", "--server", parts.hostname, "--port", str(parts.port or 80),
            "--uri", parts.path or "/", "--rate", "%g" % rate, "--num-conns", str(connections),
            "--timeout", "%g" % timeout_seconds]


def run(url, rate, seconds, place, save_as, timeout_seconds=5):
    """Offers `url` so many connections a second for so long, with one process for each core.
    Returns the Report. httperf's output is kept in `save_as` with .txt and .err. Trouble if it gave
    up."""
    parts = len(place.cores or [0])
    jobs = [(place, command(url, rate / parts, some, timeout_seconds))
            for some in load.shares(max(1, round(rate * seconds)), parts) if some]
    limit = 2 * seconds + timeout_seconds + GRACE_SECONDS
    return together([parse(text) for text in load.run("httperf", jobs, save_as, limit)])


def together(reports):
    """Several processes as one: counts are added, times are the mean, or the longest."""
    seconds, means, longest, medians, connects, statuses, errors = zip(*reports)
    mean, median, connect = (sum(each) / len(reports) for each in (means, medians, connects))
    return Report(max(seconds), mean, max(longest), median, connect, sum(statuses, Counter()),
                  sum(errors, Counter()))


def parse(text):
    lines = [line.search(text) for line in LINES]
    errors = dict(re.findall(r"(\S+) (\d+)", " ".join(ERRORS.findall(text))))
    if not all(lines) or "other" not in errors:
        raise Trouble("httperf's report lacks times, statuses or errors")
    *times, statuses = (line.groups() for line in lines)
    del errors["total"]
    return Report(*(float(number) for each in times for number in each),
                  Counter({digit: int(count) for digit, count in enumerate(statuses, 1)}),
                  Counter({kind: int(count) for kind, count in errors.items()}))
