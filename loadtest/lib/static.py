"""static: the parts that programs have in common that ask the seven and the peers for files.

Equal work means here: the same bytes. Before a server is loaded it is asked for the file once, and
the response must be the file in public/.
"""

import os

from lib import Trouble, experiment, peers, servers, web


class StaticExperiment(experiment.Experiment):
    """Each of the seven, the peers, and the floor."""

    path = "/index.html"
    in_a_lab = False  # asks from this machine, not from a lab's host
    servers = [*servers.NAMES, *peers.NAMES, "floor"]

    def look_at(self, server, run):
        must_answer_with(server, run.path, file_of(run.root, run.path))

    def size(self, run):
        return None if run.options.elsewhere else os.path.getsize(file_of(run.root, run.path))

    def facts(self, run):
        return [("peers", ", ".join(peers.version(name) for name in run.servers
                                    if name in peers.NAMES))]


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
