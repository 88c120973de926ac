"""seeds: what others found who asked the same, quoted.

Figures of loadtest/results/seeds.tsv, each with its source. They stand in a table of their own,
never among ours: other machines, other networks, other decades.
"""

import os
from collections import namedtuple

from lib import machine

FILE = os.path.join(machine.TOP, "loadtest", "results", "seeds.tsv")

Seed = namedtuple("Seed", "program source year conditions server low high unit")


def read(program):
    """Those that a program's question comes from."""
    with open(FILE, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return [seed for seed in (Seed(*row) for row in rows[1:]) if seed.program == program]


def add_to(report, program):
    """The table below ours, which says whose figures they are."""
    quoted = read(program)
    first = quoted[0]
    report.add_table(["quoted", "found"], [[seed.server, found(seed)] for seed in quoted],
                     "Where the question comes from. Not ours: %s, %s (%s)" % (
                         first.source, first.year, first.conditions))


def found(seed):
    """As in "51,000-55,500 responses in 10 s"."""
    figures = [format(int(figure), ",") for figure in dict.fromkeys([seed.low, seed.high])
               if figure.isdecimal()]
    return " ".join(["-".join(figures), seed.unit] if figures else [seed.unit])
