"""there: what the load tests run on another machine, over ssh(1). See subjects/remote.

    about                            what must be known of the machine, as JSON
    run FOLDER CORES COMMAND...      a process: prints its pid. Its output is our error output
    meter CORES PID...               what these processes cost from the first line of its input to the
                                     end: prints a line when it is ready, one when it has begun, and a
                                     Reading, as JSON

The last two end with their standard input, and so with the connection, however that ends. CORES are
numbers, separated by commas. An empty FOLDER is a new one, which is removed at the end.
"""

import contextlib
import dataclasses
import json
import os
import select
import subprocess
import sys
import tempfile

from lib.measuring import machine, meter, processes


def about():
    print(json.dumps({"cores": machine.usable_cores(), "environment": machine.environment()}))


def run(folder, cores, *command):
    machine.raise_descriptor_limit()
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # which a user's PATH may not have
    with processes.tidied(), contextlib.ExitStack() as stack:
        process = processes.start(
            command, numbers(cores), stdin=subprocess.DEVNULL, stdout=sys.stderr,
            cwd=folder or stack.enter_context(tempfile.TemporaryDirectory()))
        print(process.pid, flush=True)
        select.select([sys.stdin, os.pidfd_open(process.pid)], [], [])
        status = processes.end(process)
    sys.exit(status if status >= 0 else 128 - status)


def measure(cores, *pids):
    """Beside the cores, if there are others."""
    cores = numbers(cores)
    os.sched_setaffinity(0, os.sched_getaffinity(0).difference(cores) or cores)
    root, *others = map(int, pids)
    print(flush=True)
    if not sys.stdin.readline():
        return
    with meter.Meter(root, machine.Cores(cores, (), ()), others=others) as watch:
        print(flush=True)
        sys.stdin.read()
    print(json.dumps(dataclasses.asdict(watch.reading)))


def numbers(text):
    return tuple(int(word) for word in text.split(",") if word)


if __name__ == "__main__":
    {"about": about, "run": run, "meter": measure}[sys.argv[1]](*sys.argv[2:])
