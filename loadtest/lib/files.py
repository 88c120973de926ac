"""files: what programs have in common that ask the seven and the peers for files.

Equal work means here: the same bytes. Before a server is loaded it is asked for the file once, and
the response must be the file.
"""

import csv
import os

from lib import Trouble, experiment
from lib.measuring import machine, web
from lib.subjects import peers, servers

# Quoted figures of other people who asked the same question, each with its source. They have a
# table of their own and are never among ours, because they come from other machines, other
# networks and other decades.
SEEDS = os.path.join(machine.TOP, "loadtest", "results", "seeds.tsv")


class FileExperiment(experiment.Experiment):
    path = "/index.html"
    in_a_lab = False  # asks from this machine, not from a lab's host
    servers = [*servers.NAMES, *peers.NAMES, "floor"]

    def report(self, run):
        report = super().report(run)
        quoted = read_seeds(self.name)
        source = "Not ours: %(source)s, %(year)s (%(conditions)s)" % quoted[0]
        report.add_table(["quoted", "found"], [[seed["server"], found(seed)] for seed in quoted],
                         "Where the question comes from. " + source)
        return report

    def look_at(self, server, run):
        must_answer_with(server, run.path, file_of(run.root, run.path))

    def size(self, run, _cell):
        return os.path.getsize(file_of(run.root, run.path))


def read_seeds(program):
    """The figures that a program's question comes from, as dicts."""
    with open(SEEDS, encoding="utf-8") as file:
        lines = (line for line in file if not line.startswith("#"))
        return [row for row in csv.DictReader(lines, delimiter="\t") if row["program"] == program]


def found(seed):
    """As in "51,000-55,500 responses in 10 s"."""
    figures = [format(int(figure), ",") for figure in dict.fromkeys([seed["low"], seed["high"]])
               if figure.isdecimal()]
    return " ".join(["-".join(figures), seed["unit"]] if figures else [seed["unit"]])


def file_of(root, path):
    return os.path.join(root, "public", path.lstrip("/"))


def must_answer_with(server, path, file):
    """Trouble if it does not answer with exactly the file's bytes."""
    try:
        with open(file, "rb") as source:
            wanted = source.read()
    except OSError as error:
        raise Trouble("%s: %s" % (path, error.strerror)) from error
    status, body = web.fetch(server.url, path)
    if status != 200:
        raise Trouble("it answers with status %d for %s" % (status, path))
    if body != wanted:
        raise Trouble("it answers with %s other bytes for %s, where the file has %s" % (
            format(len(body), ","), path, format(len(wanted), ",")))
