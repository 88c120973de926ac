"""costs: system calls a request, against the budget of the model (loadtest/lib/measuring/calls.py)."""

import os

import cage
from lib import Trouble
from lib.measuring import calls, machine
from lib.subjects import servers


def measure(binary, store, folder, model):
    """A list of dicts: kind, most, holds, and saw, which is the evidence in words."""
    cores = machine.choose_cores()
    found = []
    store.seed()

    def open_server(log, under):
        return servers.Server(binary, store.where, cores.server, log, prefix=[*cage.LIMITS, *under])

    for kind, most in calls.budgets(model).items():
        try:
            save_as = os.path.join(folder, kind.replace(" ", "-"))
            with calls.Traced(open_server, save_as, cores.client) as traced:
                each = traced.per_request(kind, *calls.budget_load(kind, model))
            holds, saw = each.total <= most, "it took %.2f: %s" % (
                each.total, ", ".join("%s %.2f" % pair for pair in each.calls.items()))
        except (Trouble, OSError) as error:
            holds, saw = False, str(error)
        found.append({"kind": kind, "most": most, "holds": holds, "saw": saw})
    return found
