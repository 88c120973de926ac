"""lanes: what each process and thread of a server waits for (loadtest/lib/xray.py).

    lanes.py BINARY      prints JSON: svg, the picture
"""

import json
import os
import sys
import tempfile

import places  # noqa: F401  (finds lib)
from lib import Trouble, processes, redis, xray


def draw(binary):
    with tempfile.TemporaryDirectory(prefix="lanes-", dir=os.environ.get("FOLDERS")) as folder:
        private = redis.start_private(folder, None)
        private.seed()
        return {"svg": xray.lanes_svg(binary, private, folder)}


if __name__ == "__main__":
    try:
        with processes.tidied():
            print(json.dumps(draw(*sys.argv[1:])))
    except Trouble as trouble:
        sys.exit(str(trouble))
