"""stored: finished runs, in folders as they are left in build/ or in loadtest/results."""

import csv
import os

from lib.measuring import machine

STORE = os.path.join(machine.TOP, "loadtest", "results")
HELD, CHANGED, UNSURE = "held", "changed", "cannot judge"  # loadtest/same, of a server at a later release


def rows(text):
    """Of a .tsv, as dicts. A line that begins with # is a comment, and one that was cut off is left out."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return [row for row in found if None not in row.values()]


def facts_of(text):
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


def codes(facts):
    """Pairs of a server and the hash of its machine code."""
    return [pair.split() for pair in facts["code"].split(", ")]
