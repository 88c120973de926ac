"""files: what programs have in common that ask the seven and the peers for files.

Equal work means here: the same bytes. Before a server is loaded it is asked for the file once, and
the response must be the file.
"""

import os

from lib import Trouble, experiment, stored
from lib.measuring import machine, web
from lib.subjects import peers, servers

# Quoted figures of other people who asked the same question, each with its source. They have a
# table of their own and are never among ours, because they come from other machines, other
# networks and other decades.
SEEDS = os.path.join(machine.TOP, "loadtest", "results", "seeds.tsv")
BLOCK = 2**20


class FileExperiment(experiment.Experiment):
    path = "/index.html"
    in_a_lab = False  # asks from this machine, not from a lab's host
    servers = [*servers.NAMES, *peers.NAMES, "floor"]

    def report(self, run):
        report = super().report(run)
        quoted = quoted_for(self.name)
        source = "Not ours: %(source)s, %(year)s (%(conditions)s)" % quoted[0]
        report.add_table(["quoted", "found"], [[seed["server"], found(seed)] for seed in quoted],
                         "Where the question comes from. " + source)
        return report

    def look_at(self, server, run):
        compare(server, run.root, [run.path])

    def size(self, run, _cell):
        return os.path.getsize(file_of(run.root, run.path))


def quoted_for(program):
    """The figures that a program's question comes from, as dicts."""
    return [row for row in stored.rows(machine.read(SEEDS)) if row["program"] == program]


def found(seed):
    """As in "51,000-55,500 responses in 10 s"."""
    figures = [format(int(figure), ",") for figure in dict.fromkeys([seed["low"], seed["high"]])
               if figure.isdecimal()]
    return " ".join(["-".join(figures), seed["unit"]] if figures else [seed["unit"]])


def file_of(root, path):
    return os.path.join(root, "public", path.lstrip("/"))


def compare(server, root, paths):
    """Trouble if one response is not its file. Uses one connection, as long as the server keeps
    it."""
    with web.connected(server.url, "the files") as connection:
        for path in paths:
            connection.request("GET", path)
            answer = connection.getresponse()
            if answer.status != 200:
                raise Trouble("it answers with status %d for %s" % (answer.status, path))
            with open(file_of(root, path), "rb") as file:
                is_right = all(chunk == file.read(len(chunk)) for chunk in iter(
                    lambda: answer.read(BLOCK), b"")) and not file.read(1)
            if not is_right:
                raise Trouble("it answers with other bytes for %s" % path)
