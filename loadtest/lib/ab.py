"""ab: ApacheBench, run and understood.

ab keeps a fixed number of clients busy: each opens a connection, asks, reads the page to its
end, and begins again. It speaks HTTP/1.0 and has one thread. What one must know to believe it:

- A page whose length changes counts as failed unless -l is given. The visitor counter's does. With
  -l a page that is cut short is as good as any other: how many bytes came in all is the only trace.
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

from lib import Trouble, load, processes
from lib.load import Load

STALL_SECONDS = 10  # ab gives up if no client hears anything for as long
MOST_REQUESTS = 2000000  # of a timed run, for which ab allocates memory

FIELDS = {
    "complete": r"Complete requests:\s+(\d+)",
    "failed": r"Failed requests:\s+(\d+)",
    "seconds": r"Time taken for tests:\s+([\d.]+)",
    "longest": r"\n 100% +(\d+)",
    "content": r"HTML transferred:\s+(\d+)",
}
KINDS = {"Connect": "connect", "Receive": "reset", "Exceptions": "reset"}  # Length: see -l


def command(url, clients, csv, requests=None, seconds=None, kept=False):
    """So many requests, or as many of them as fit into so many seconds."""
    words = ["ab", "-q", "-l", "-r", "-s", str(STALL_SECONDS), "-c", str(clients), "-e", csv]
    if seconds is not None:
        words += ["-t", "%d" % max(1, round(seconds))]
    words += ["-n", str(requests or MOST_REQUESTS)]  # behind -t, or that would make it 50,000
    return words + (["-k"] if kept else []) + [url]


def run(url, clients, cores, save_as, *, requests=None, seconds=None, kept=False, limit=None,
        prefix=()):
    """Loads `url`. Returns the Load; what ab wrote stays in `save_as` with .txt, .err and .csv.
    Trouble if ab gave up, or took more than `limit` seconds. `prefix` leads to another host."""
    csv = save_as + ".csv"
    if os.path.exists(csv):
        os.remove(csv)
    words = [*prefix, *command(url, clients, csv, requests, seconds, kept)]
    try:
        text = load.run("ab", words, cores, save_as, limit)
    except Trouble as trouble:
        done = re.search(r"Total of (\d+) requests completed", processes.printed(save_as + ".err")
                         + processes.printed(save_as + ".txt"))
        raise Trouble("%s, after %s requests" % (trouble, done.group(1) if done else "0")) from None
    return parse(text, processes.printed(csv) if os.path.exists(csv) else "")


def parse(text, csv):
    """ab's report, and its file of percentiles."""
    found = {name: re.search(pattern, text) for name, pattern in FIELDS.items()}
    missing = [name for name, match in found.items() if not match]
    if missing:
        raise Trouble("ab's report lacks: %s" % ", ".join(missing))
    number = {name: float(match.group(1)) for name, match in found.items()}
    errors = parse_errors(text)
    percentiles = parse_percentiles(csv)
    longest = max(number["longest"], percentiles[99])
    return Load(
        requests=max(0, int(number["complete"]) - sum(errors.values())),
        errors=errors,
        seconds=number["seconds"],
        mean_ms=mean(percentiles + [longest]),
        percentiles={50: percentiles[50], 90: percentiles[90], 99: percentiles[99], 100: longest},
        connects=True,
        content=int(number["content"]),
    )


def parse_errors(text):
    """By kind. Each reset is two failures of ab's, but one connection lost."""
    kinds = re.search(r"\((Connect: \d+, Receive: \d+, Length: \d+, Exceptions: \d+)\)", text)
    errors = {}
    for kind, count in re.findall(r"(\w+): (\d+)", kinds.group(1) if kinds else ""):
        if kind in KINDS:
            errors[KINDS[kind]] = max(errors.get(KINDS[kind], 0), int(count))
    non_2xx = re.search(r"Non-2xx responses:\s+(\d+)", text)
    errors["not 2xx"] = int(non_2xx.group(1)) if non_2xx else 0
    return errors


def mean(percentiles):
    """From all hundred and one of them: each hundredth lies between two. ab's own mean is in whole
    milliseconds, and its "time per request" is computed from the rate."""
    pairs = zip(percentiles, percentiles[1:])
    return sum((low + high) / 2 for low, high in pairs) / (len(percentiles) - 1)


def parse_percentiles(csv):
    """The lines "99,1.234" after a header; one for each percentage from 0 to 99. Newer ab add
    the 100th, which is left alone."""
    rows = [line.split(",") for line in csv.splitlines()[1:101]]
    if [row[0] for row in rows] != [str(percent) for percent in range(100)]:
        raise Trouble("ab wrote no percentiles")
    return [float(row[1]) for row in rows]
