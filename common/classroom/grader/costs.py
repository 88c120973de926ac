"""costs: system calls a request, against the budget of the model (loadtest/lib/calls.py).

    costs.py BINARY MODEL      prints JSON: what each kind of request may take, and took

BINARY has the model's name: how many clients are held to warm it up depends on that.
"""

import json
import os
import sys
import tempfile

import cage
import places  # noqa: F401  (finds lib)
from lib import Trouble, calls, machine, processes, redis, servers


def measure(binary, model):
    """A list of dicts: kind, most, holds, and saw, which is the evidence in words."""
    cores = machine.choose_cores()
    found = []
    with tempfile.TemporaryDirectory(prefix="costs-", dir=os.environ.get("FOLDERS")) as folder:
        private = redis.start_private(folder, None)
        private.seed()

        def open_server(log, under):
            return servers.Server(binary, private.where, cores.server, log,
                                  prefix=[*cage.LIMITS, *under])

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


if __name__ == "__main__":
    try:
        with processes.tidied():
            print(json.dumps(measure(*sys.argv[1:])))
    except Trouble as trouble:
        sys.exit(str(trouble))
