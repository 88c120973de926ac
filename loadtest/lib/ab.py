"""ab: ApacheBench, run and understood.

ab keeps a fixed number of clients busy: each opens a connection, asks, reads the page to its
end, and begins again. It speaks HTTP/1.0 and has one thread. What one must know to believe it:

- A page whose length changes counts as failed unless -l is given. The visitor counter's does.
- With -r a failed connection is counted; without, ab gives up. It is among the complete requests
  all the same, and a reset one is two failures, "receive" and "exception". So a server that is
  dead completes 64,000 requests a second, and ab's status is 0.
- A connection closed without a single byte passes for a complete request, and not for a failed
  one. Only Redis knows better (see work).
- It prints whole milliseconds; the file it writes for -e has three decimals.
- When it gives up it prints no report; the last line of its standard error says why.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from typing import Dict, List

from lib import Trouble, machine, processes

STALL_SECONDS = 10  # ab gives up if no client hears anything for as long
CONNECTION_CEILING = 30000  # new connections a second; beyond, ab itself is the limit

FIELDS = {
    "complete": r"Complete requests:\s+(\d+)",
    "failed": r"Failed requests:\s+(\d+)",
    "non_2xx": r"Non-2xx responses:\s+(\d+)",
    "page_bytes": r"HTML transferred:\s+(\d+)",
    "seconds": r"Time taken for tests:\s+([\d.]+)",
    "rate": r"Requests per second:\s+([\d.]+)",
}
KINDS = r"\((Connect: \d+, Receive: \d+, Length: \d+, Exceptions: \d+)\)"


@dataclass(frozen=True)
class Report:
    """What one run of ab came to."""

    complete: int
    failed: int
    kinds: Dict[str, int]  # of failure: connect, receive, length, exceptions
    non_2xx: int
    page_bytes: int
    seconds: float
    rate: float  # requests a second, failed ones included
    percentiles: List[float]  # [99]: so many ms, connecting included, sufficed for 99 %

    @property
    def counted_twice(self):
        """Failures that are among ab's "receive" and again among its "exceptions"."""
        return min(self.kinds.get("receive", 0), self.kinds.get("exceptions", 0))

    @property
    def errors(self):
        """Requests that did not bring the page: failed, or answered by something else."""
        return self.failed - self.counted_twice + self.non_2xx

    @property
    def pages(self):
        """Requests that did."""
        return max(0, self.complete - self.errors)

    @property
    def pages_rate(self):
        """Pages a second. It is ab's rate unless there were errors, which are no achievement."""
        return self.rate * self.pages / self.complete if self.complete else 0.0

    def errors_text(self):
        """The errors by kind: "12 receive, 3 not 2xx"."""
        kinds = {**self.kinds, "not 2xx": self.non_2xx}
        if self.counted_twice:
            kinds["exceptions"] -= self.counted_twice
        return ", ".join("%s %s" % (format(count, ","), kind)
                         for kind, count in kinds.items() if count)


def run(url, requests, clients, core, save_as, limit_seconds):
    """Asks for `url` that many times from that many clients at once. Returns the Report; what
    ab wrote stays in `save_as` with .txt, .err and .csv. Trouble if ab gave up."""
    csv = save_as + ".csv"
    if os.path.exists(csv):
        os.remove(csv)
    command = ["ab", "-q", "-l", "-r", "-s", str(STALL_SECONDS), "-n", str(requests),
               "-c", str(clients), "-e", csv, url]
    with open(save_as + ".txt", "wb") as out, open(save_as + ".err", "wb") as err:
        process = processes.start(command, core, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        in_time = processes.wait(process, limit_seconds)
        status = processes.end(process)
    if not in_time:
        raise Trouble("%s requests took more than %g s" % (format(requests, ","), limit_seconds))
    if status:
        raise Trouble(why_it_gave_up(_text(save_as + ".err"), _text(save_as + ".txt"), status))
    return parse(_text(save_as + ".txt"), _text(csv) if os.path.exists(csv) else "")


def parse(text, csv):
    """ab's report, and its file of percentiles, as a Report."""
    found = {name: re.search(pattern, text) for name, pattern in FIELDS.items()}
    missing = [name for name, match in found.items() if not match and name != "non_2xx"]
    if missing:
        raise Trouble("ab's report lacks: %s" % ", ".join(missing))
    kinds = re.search(KINDS, text)
    pairs = re.findall(r"(\w+): (\d+)", kinds.group(1)) if kinds else []
    number = {name: match.group(1) if match else "0" for name, match in found.items()}
    return Report(
        complete=int(number["complete"]),
        failed=int(number["failed"]),
        kinds={kind.lower(): int(count) for kind, count in pairs},
        non_2xx=int(number["non_2xx"]),
        page_bytes=int(number["page_bytes"]),
        seconds=float(number["seconds"]),
        rate=float(number["rate"]),
        percentiles=parse_percentiles(csv),
    )


def parse_percentiles(csv):
    """The lines "99,1.234" after a header; one for each percentage from 0 to 99. Newer ab add
    the 100th, which is left alone."""
    rows = [line.split(",") for line in csv.splitlines()[1:101]]
    if [row[0] for row in rows] != [str(percent) for percent in range(100)]:
        raise Trouble("ab wrote no percentiles")
    return [float(row[1]) for row in rows]


def why_it_gave_up(err, out, status):
    """From what is left when ab ends without a report."""
    lines = [line for line in err.splitlines() if line.strip()]
    reason = lines[-1].strip() if lines else "status %d" % status
    done = re.search(r"Total of (\d+) requests completed", out + err)
    return "ab gave up after %s requests: %s" % (done.group(1) if done else "0", reason)


def version():
    """As in "ab 2.3"."""
    found = re.search(r"Version (\S+)", machine.output_of(["ab", "-V"]))
    return "ab " + (found.group(1) if found else "of an unknown version")


def _text(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
