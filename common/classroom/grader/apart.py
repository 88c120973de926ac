"""apart: a part of the grading that is done in a cage, by a process of its own.

    apart.py portrait BINARY yes|no    what it looks like; yes: the program knows --workers
    apart.py costs BINARY MODEL        the system calls of a request. BINARY has the model's name
    apart.py lanes BINARY              svg: the picture of what it waits for, if it shows any

SEED in the environment chooses the numbers of the portrait. It is no argument, because everybody can
read those of another user's process. Each has a Redis of its own, and prints JSON. It ends with an error only through a fault of ours: what
the server does not do is part of what was found out.
"""

import json
import os
import sys
import tempfile

import costs
import jail
import portrait
from lib import Trouble
from lib.measuring import processes
from lib.seeing import xray
from lib.subjects import redis


def lanes(binary, store, folder):
    store.seed()
    try:
        return {"svg": xray.lanes_svg(binary, store, folder, reach=jail.opened)}
    except Trouble:
        return {"svg": None}


PARTS = {"portrait": portrait.paint, "costs": costs.measure, "lanes": lanes}

if __name__ == "__main__":
    part, binary, *arguments = sys.argv[1:]
    try:
        with processes.tidied(), tempfile.TemporaryDirectory(
                prefix=part + "-", dir=os.environ.get("FOLDERS")) as place:
            os.chmod(place, 0o711)  # the server is another user's
            store = jail.opened(redis.start_private(place, None))
            found = PARTS[part](binary, store, place, *arguments)
            print(json.dumps(found, default=vars))
    except Trouble as trouble:
        sys.exit(str(trouble))
