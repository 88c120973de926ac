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
from types import SimpleNamespace
from urllib.parse import urlsplit

from lib import Trouble
from lib.generators import load
from lib.generators.load import Load

GRACE_SECONDS = 10

# A line of the report, with N for each number in it, and the names of these numbers in a Report.
NUMBER = r"([\d.]+)"
LINES = [
    (r"Total: connections N requests N replies N test-duration N s",
     "connections requests replies seconds"),
    (r"Connection rate: N conn/s \(N ms/conn, <=N concurrent", "connection_rate _ most_at_once"),
    (r"Connection time \[ms\]: min N avg N max N median N stddev N",
     "_ connection_ms_mean connection_ms_max connection_ms_median _"),
    (r"Connection time \[ms\]: connect N", "connect_ms"),
]
STATUSES = re.compile(r"Reply status: 1xx=(\d+) 2xx=(\d+) 3xx=(\d+) 4xx=(\d+) 5xx=(\d+)")
ERRORS = re.compile(r"^Errors: (.*)$", re.MULTILINE)
CLIENT_S_OWN = ["fd-unavail", "addrunavail", "ftab-full"]
ERROR_KINDS = ["client-timo", "socket-timo", "connrefused", "connreset", *CLIENT_S_OWN, "other"]


class Report(SimpleNamespace):
    """The results of one run of httperf: the names in LINES; `statuses` by first digit, {2: 3000,
    5: 7}; and `errors` by httperf's own names. Both hold only those that occurred."""

    @property
    def void(self):
        """Why the run says nothing about the server, because httperf itself was the limit; or
        None."""
        return ", ".join("%s %s" % (format(self.errors[kind], ","), kind)
                         for kind in CLIENT_S_OWN if kind in self.errors) or None

    def load(self):
        """The same as a Load. A request's time is that of its connection, from connect to close,
        and there are only two percentiles."""
        count = self.errors.get
        errors = {
            "connect": sum(count(kind, 0) for kind in ["connrefused", "other", *CLIENT_S_OWN]),
            "reset": count("connreset", 0),
            "time-out": count("client-timo", 0) + count("socket-timo", 0),
            "not 2xx": sum(self.statuses.get(digit, 0) for digit in (1, 3, 4, 5)),
        }
        return Load(
            requests=self.statuses.get(2, 0), errors=errors,
            seconds=self.seconds, mean_ms=self.connection_ms_mean,
            percentiles={50: self.connection_ms_median, 100: self.connection_ms_max},
            connects=True, connect_ms=self.connect_ms)


def command(url, rate, connections, timeout_seconds):
    """The command for `rate` new connections a second, with a request on each, until there were so
    many."""
    parts = urlsplit(url)
    return ["httperf", "--server", parts.hostname, "--port", str(parts.port or 80),
            "--uri", parts.path or "/", "--rate", "%g" % rate, "--num-conns", str(connections),
            "--timeout", "%g" % timeout_seconds]


def run(url, rate, seconds, cores, save_as, timeout_seconds=5):
    """Offers `url` so many connections a second for so long, with one process for each core.
    Returns the Report. httperf's output is kept in `save_as` with .txt and .err. Trouble if it gave
    up."""
    parts = len(cores or [0])
    commands = [command(url, rate / parts, some, timeout_seconds)
                for some in load.shares(max(1, round(rate * seconds)), parts) if some]
    limit = 2 * seconds + timeout_seconds + GRACE_SECONDS
    return together([parse(text) for text in load.run("httperf", commands, cores, save_as, limit)])


def together(reports):
    """Several processes as one: counts and rates are added, times are the mean, or the longest."""
    merged = dict(vars(reports[0]))
    for other in map(vars, reports[1:]):
        for name, value in other.items():
            if isinstance(value, dict):
                merged[name] = {key: merged[name].get(key, 0) + value.get(key, 0)
                                for key in {**merged[name], **value}}
            elif name == "seconds" or name.endswith("max"):
                merged[name] = max(merged[name], value)
            else:
                merged[name] += value
    return Report(**{name: value / len(reports) if re.search("_ms(_mean|_median)?$", name) else value
                     for name, value in merged.items()})


def parse(text):
    fields = {}
    for pattern, names in LINES:
        found = re.search(re.sub(r"\bN\b", lambda _: NUMBER, pattern), text)
        if not found:
            raise Trouble("httperf's report lacks: %s" % pattern.split(":")[0])
        fields.update(zip(names.split(), map(_number, found.groups())))
    fields.pop("_", None)
    statuses = STATUSES.search(text)
    errors = " ".join(ERRORS.findall(text))
    if not statuses or "other" not in errors:
        raise Trouble("httperf's report lacks statuses or errors")
    counts = {kind: int(re.search(re.escape(kind) + r" (\d+)", errors).group(1))
              for kind in ERROR_KINDS}
    return Report(
        statuses={digit: int(count) for digit, count in enumerate(statuses.groups(), 1)
                  if int(count)},
        errors={kind: count for kind, count in counts.items() if count}, **fields)


def _number(text):
    return int(text) if text.isdecimal() else float(text)
