"""curl: one client that fetches files, one after the other.

One process reads a list of addresses and fetches them over one connection, as long as the
server keeps it. It throws away the bytes that it receives. The figures that it prints for each
file are added up.

- The seconds are those of the transfers. curl's own start is not included.
- num_connects is the number of connections that a file took: 0 means that one was kept.
- If a kept connection breaks before a response has begun, curl asks again on another and does not
  report it. Only the number of connections shows it.
"""

import os
from collections import Counter

from lib import Trouble
from lib.generators import load
from lib.generators.load import Load

# A line for each file.
WRITE_OUT = r"%{exitcode}\t%{http_code}\t%{num_connects}\t%{size_download}\t%{time_total}\n"


def command(list_file):
    return ["curl", "--disable", "--silent", "--globoff", "--noproxy", "*", "--config", list_file]


def list_of(urls, timeout_seconds):
    lines = ["max-time = %g" % timeout_seconds, 'write-out = "%s"' % WRITE_OUT]
    for url in urls:
        lines += ['url = "%s"' % url, 'output = "%s"' % os.devnull]
    return "\n".join(lines) + "\n"


def run(urls, place, save_as, limit_seconds, ended):
    """Fetches the addresses. Returns the Load; the list and what curl wrote stay in `save_as` with
    .list, .txt and .err."""
    with open(save_as + ".list", "w", encoding="utf-8") as file:
        file.write(list_of(urls, limit_seconds))
    # curl's own status is that of the last file
    [text] = load.run("curl", [command(save_as + ".list")], place.cores, save_as, limit_seconds, False, ended=ended)
    return parse(text, len(urls))


def parse(text, expected):
    """What curl wrote, as a Load. Trouble if there is not a line for each file."""
    rows = [line.split("\t") for line in text.splitlines()]
    if len(rows) != expected or any(len(row) != 5 for row in rows):
        raise Trouble("curl gave up after %d files of %d" % (len(rows), expected))
    good = [row for row in rows if not error_of(row)]
    seconds = sum(float(row[4]) for row in rows)
    return Load(requests=len(good), errors=dict(Counter(filter(None, map(error_of, rows)))),
                seconds=seconds, mean_ms=1000 * seconds / expected, percentiles={},
                content=sum(int(row[3]) for row in good),
                connections=sum(int(row[2]) for row in rows))


def error_of(row):
    """What went wrong with a file, or None. The output has curl's own number for it: see EXIT CODES in curl(1)."""
    return "other" if int(row[0]) else None if row[1].startswith("2") else "not 2xx"
