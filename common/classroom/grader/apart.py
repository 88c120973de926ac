"""apart: a part of the grading that is done in a cage, by a process of its own.

    apart.py portrait BINARY yes|no    what it looks like; yes: the program knows --workers
    apart.py costs BINARY MODEL        the system calls of a request. BINARY has the model's name
    apart.py lanes BINARY              svg: the picture of what it waits for, if it shows any

SEED in the environment chooses the numbers of the portrait. It is no argument, because everybody can
read those of another user's process. Each has a Redis of its own, and prints JSON. It ends with an
error only through a fault of ours: what the server does not do is part of what was found out.
"""

import json
import os
import sys
import tempfile

import cage
import jail
import portrait
from lib import Trouble
from lib.measuring import calls, machine, processes
from lib.seeing import xray
from lib.subjects import redis, servers


def costs(binary, store, folder, model):
    """System calls a request, against the budget of the model (loadtest/lib/measuring/calls.py): a list of
    dicts: kind, most, holds, and saw, which is the evidence in words."""
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


def lanes(binary, store, folder):
    store.seed()
    try:
        return {"svg": xray.lanes_svg(binary, store, folder, reach=jail.opened)}
    except Trouble:
        return {"svg": None}


PARTS = {"portrait": portrait.paint, "costs": costs, "lanes": lanes}

if __name__ == "__main__":
    part, binary, *arguments = sys.argv[1:]
    try:
        with processes.tidied(), tempfile.TemporaryDirectory(
                prefix=part + "-", dir=os.environ.get("FOLDERS")) as place:
            os.chmod(place, 0o711)  # the server is another user's
            store = jail.open_redis(redis.start_private, os.path.join(place, "redis"))
            found = PARTS[part](binary, store, place, *arguments)
            print(json.dumps(found, default=vars))
    except Trouble as trouble:
        sys.exit(str(trouble))
