"""ab: ApacheBench, run and understood.

README.md lists the traps of all load generators. To trust ab's figures one must also know:

- A failed connection is also one of the complete requests, and a reset is two failures, "receive"
  and "exception". One that is closed without a single byte is complete, and not failed: only Redis
  shows the difference.
- With -l a page that is cut short counts like any other. Only the total of bytes shows it.
- Of fewer than 50 requests it writes a 0 for the 99th of 100. It looks behind the end of its list.
- It prints whole milliseconds. The file that it writes for -e has three decimals.
- When it gives up it prints no report. The last line of its standard error says why.
"""

import itertools
import re

import processes
from lib import Trouble
from lib.generators import load
from lib.generators.load import Load

STALL_SECONDS = 10  # ab gives up if no client receives anything for so long
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
    """The command for so many requests, or for as many as fit into so many seconds."""
    words = ["ab", "-q", "-l", "-r", "-s", str(STALL_SECONDS), "-c", str(clients), "-e", csv]
    if seconds is not None:
        words += ["-t", "%d" % max(1, round(seconds))]
    words += ["-n", str(requests or MOST_REQUESTS)]  # after -t, which sets it to 50,000
    return [*words, *["-k"] * kept, url]


def run(url, clients, place, save_as, *, requests=None, seconds=None, limit=None, kept=False,
        ended=lambda: None):
    """Loads `url` from a place, with one process for each of its cores. Returns the Load; what ab wrote stays
    in `save_as` with .txt, .err and .csv. Trouble if ab gave up, or took more than `limit` seconds."""
    number = min(len(place.cores or [0]), clients)
    files = ["%s%s.csv" % (save_as, "-%d" % each if each else "") for each in range(number)]
    jobs = [command(url, few, csv, some, seconds, kept) for few, some, csv in zip(
        load.shares(clients, number), load.shares(requests or 0, number), files)]
    texts = load.run("ab", jobs, place.cores, save_as, limit, ended=ended)
    return load.together([parse(text, processes.printed(csv)) for text, csv in zip(texts, files)])


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
    requests = max(0, int(number["complete"]) - sum(errors.values()))
    return Load(
        requests=requests,
        errors=errors,
        seconds=number["seconds"],
        mean_ms=mean(percentiles + [longest]),
        percentiles={50: percentiles[50], 90: percentiles[90], 99: percentiles[99], 100: longest},
        content=int(number["content"]),
        times=tuple((ms, requests / 101) for ms in [*percentiles, longest]),
    )


def parse_errors(text):
    """The number of errors by kind. ab counts each reset twice, as two failures."""
    kinds = re.search(r"\((Connect: \d+, Receive: \d+, Length: \d+, Exceptions: \d+)\)", text)
    errors = {}
    for kind, count in re.findall(r"(\w+): (\d+)", kinds.group(1) if kinds else ""):
        if kind in KINDS:
            errors[KINDS[kind]] = max(errors.get(KINDS[kind], 0), int(count))
    non_2xx = re.search(r"Non-2xx responses:\s+(\d+)", text)
    errors["not 2xx"] = int(non_2xx.group(1)) if non_2xx else 0
    return errors


def mean(percentiles):
    """The mean, from all 101 percentiles: each hundredth lies between two. ab's own mean is in
    whole milliseconds, and its "time per request" is computed from the rate."""
    pairs = zip(percentiles, percentiles[1:])
    return sum((low + high) / 2 for low, high in pairs) / (len(percentiles) - 1)


def parse_percentiles(csv):
    """Reads the lines "99,1.234", one for each percentage from 0 to 99. Newer versions of ab add the
    100th, which is ignored."""
    rows = re.findall(r"^(\d+),([\d.]+)$", csv, re.MULTILINE)[:100]
    if [row[0] for row in rows] != [str(percent) for percent in range(100)]:
        raise Trouble("ab wrote no percentiles")
    return list(itertools.accumulate((float(row[1]) for row in rows), max))
