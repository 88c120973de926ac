"""seeds: quoted figures of other people who asked the same question.

They are in loadtest/results/seeds.tsv, each with its source. They have a table of their own and are
never among ours, because they come from other machines, other networks and other decades.
"""

import csv
import os

from lib import machine

FILE = os.path.join(machine.TOP, "loadtest", "results", "seeds.tsv")


def read(program):
    """The figures that a program's question comes from, as dicts."""
    with open(FILE, encoding="utf-8") as file:
        lines = (line for line in file if not line.startswith("#"))
        return [row for row in csv.DictReader(lines, delimiter="\t") if row["program"] == program]


def add_to(report, program):
    """The table below ours, with the source of its figures."""
    quoted = read(program)
    source = "Not ours: %(source)s, %(year)s (%(conditions)s)" % quoted[0]
    report.add_table(["quoted", "found"], [[seed["server"], found(seed)] for seed in quoted],
                     "Where the question comes from. " + source)


def found(seed):
    """As in "51,000-55,500 responses in 10 s"."""
    figures = [format(int(figure), ",") for figure in dict.fromkeys([seed["low"], seed["high"]])
               if figure.isdecimal()]
    return " ".join(["-".join(figures), seed["unit"]] if figures else [seed["unit"]])
