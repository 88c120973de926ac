"""banner: does a server begin at all, and answer its first client?

    banner.py SECONDS COMMAND...      prints JSON: banner, answer (its first line), said (errors)

Redis need not be there for that. The server ends with us: we run in a cage.
"""

import contextlib
import http.client
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time

MOST = 2000
BANNER = re.compile(r"(\S+): listening on http://\[?([^\]\s]+)\]?:(\d+)\n")


def first_line(descriptor, seconds):
    """What comes, up to a line's end, the end, or as much as came in time."""
    deadline, line = time.monotonic() + seconds, b""
    while b"\n" not in line and len(line) < MOST:
        ready, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
        piece = os.read(descriptor, MOST) if ready else b""
        if not piece:
            break
        line += piece
    return line[:MOST].decode("utf-8", "replace").partition("\n")[0] + "\n" * (b"\n" in line)


def first_answer(banner, seconds):
    found = BANNER.match(banner)
    if not found:
        return ""
    connection = http.client.HTTPConnection(found.group(2), int(found.group(3)), timeout=seconds)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/", headers={"Connection": "close"})
            answer = connection.getresponse()
            return "HTTP/%.1f %d %s" % (answer.version / 10, answer.status, answer.reason)
        except (OSError, http.client.HTTPException) as error:
            return str(error)


def look(seconds, *command):
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([*command, "--port", "0", "--redis", "unix:/nowhere"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said)
        banner = first_line(process.stdout.fileno(), float(seconds))
        answer = first_answer(banner, float(seconds))
        said.seek(0)
        return {"banner": banner, "answer": answer,
                "said": said.read(MOST).decode("utf-8", "replace").strip()}


if __name__ == "__main__":
    print(json.dumps(look(*sys.argv[1:])))
