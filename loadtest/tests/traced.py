"""One of the seven, or the floor, under strace: for tests that count system calls."""

import os
import tempfile

from lib import subjects
from lib.measuring import calls, machine


def calls_of(name, kind, redis, clients, requests):
    """{call: how often a request}."""
    cores = machine.choose_cores()

    def open_server(log, under):
        return subjects.open_subject(name, cores.server, log, redis=redis.where, prefix=under)

    with tempfile.TemporaryDirectory() as folder:
        with calls.Traced(open_server, os.path.join(folder, name), cores.client) as server:
            return server.per_request(kind, clients, requests).calls
