"""curl: one client that fetches files, one after the other.

One process reads a list of addresses and fetches them over one connection, as long as the
server keeps it. What it receives is thrown away; what it says of each file is added up.

- The seconds are those of the transfers: curl's own start is not among them.
- num_connects tells how many connections a file took: 0 means that one was kept.
- If a kept connection breaks before an answer has begun, curl asks again on another and says
  nothing: it shows in the number of connections only.
"""

import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from typing import Dict

from lib import Trouble, processes

GRACE_SECONDS = 10

# A line for each file.
WRITE_OUT = r"%{exitcode}\t%{http_code}\t%{num_connects}\t%{size_download}\t%{time_total}\n"

# curl's exit codes, in our words; see EXIT CODES in curl(1).
KINDS = {7: "connect", 18: "length", 28: "time-out", 52: "reset", 55: "reset", 56: "reset"}


@dataclass(frozen=True)
class Report:
    """What fetching came to."""

    files: int  # that came whole, with a status of 2xx
    bytes: int  # of them
    seconds: float  # of all transfers
    connections: int
    errors: Dict[str, int]  # by status, "404", or by kind: connect, reset, time-out, length

    @property
    def rate(self):
        """Files a second."""
        return self.files / self.seconds if self.seconds else 0.0

    @property
    def bytes_rate(self):
        """Bytes a second."""
        return self.bytes / self.seconds if self.seconds else 0.0

    @property
    def failed(self):
        return sum(self.errors.values())

    def errors_text(self):
        """The errors by kind: "12 reset, 3 404"."""
        return ", ".join("%s %s" % (format(count, ","), kind)
                         for kind, count in self.errors.items())


def command(list_file):
    """Fetches all that is on the list."""
    return ["curl", "--disable", "--silent", "--globoff", "--noproxy", "*", "--config", list_file]


def list_of(urls, timeout_seconds):
    """The list, as curl reads it."""
    lines = ["max-time = %g" % timeout_seconds, 'write-out = "%s"' % WRITE_OUT]
    for url in urls:
        lines += ['url = "%s"' % url, 'output = "%s"' % os.devnull]
    return "\n".join(lines) + "\n"


def run(urls, cores, save_as, limit_seconds, timeout_seconds=10):
    """Fetches the addresses, `timeout_seconds` for each at most. Returns the Report; the list and
    what curl wrote stay in `save_as` with .list, .tsv and .err."""
    with open(save_as + ".list", "w", encoding="utf-8") as file:
        file.write(list_of(urls, timeout_seconds))
    with open(save_as + ".tsv", "wb") as out, open(save_as + ".err", "wb") as err:
        process = processes.start(command(save_as + ".list"), cores, stdin=subprocess.DEVNULL,
                                  stdout=out, stderr=err)
        in_time = processes.wait(process, limit_seconds)
        processes.end(process)  # its status is only the last file's
    if not in_time:
        raise Trouble("%s files took more than %g s" % (format(len(urls), ","), limit_seconds))
    with open(save_as + ".tsv", encoding="utf-8") as file:
        return parse(file.read(), len(urls))


def parse(text, expected):
    """What curl wrote, as a Report. Trouble if there is not a line for each file."""
    rows = [line.split("\t") for line in text.splitlines()]
    if len(rows) != expected or any(len(row) != 5 for row in rows):
        raise Trouble("curl gave up after %d files of %d" % (len(rows), expected))
    errors = Counter(filter(None, (error_of(int(row[0]), row[1]) for row in rows)))
    good = [row for row in rows if not error_of(int(row[0]), row[1])]
    return Report(
        files=len(good), bytes=sum(int(row[3]) for row in good),
        seconds=sum(float(row[4]) for row in rows),
        connections=sum(int(row[2]) for row in rows), errors=dict(errors))


def error_of(exit_code, status):
    """What went wrong with a file, or None."""
    if exit_code:
        return KINDS.get(exit_code, "curl's status %d" % exit_code)
    return None if status.startswith("2") else status
