"""there: what the load tests run on another machine, over ssh(1). See subjects/remote.

    about                            what must be known of the machine, as JSON
    run FOLDER CORES COMMAND...      a process: prints its pid. Its output is our error output
    load CORES COMMAND...            a load generator, with our output
    meter CORES [PID...]             what these processes cost, or else what was done on these cores,
                                     from the first line of its input to the end: prints a line when
                                     it is ready, one when it has begun, and a Reading, as JSON

The last three end with their standard input, and so with the connection, however that ends. CORES are
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

from lib.generators import load as generators
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


def load(cores, *command):
    """At the end of our input it is asked for its report."""
    machine.raise_descriptor_limit()
    with processes.tidied():
        process = processes.start(command, numbers(cores), stdin=subprocess.DEVNULL)
        select.select([sys.stdin, os.pidfd_open(process.pid)], [], [])
        generators.interrupt([process], processes.PATIENCE_SECONDS)
        status = processes.end(process)
    sys.exit(status if status >= 0 else 128 - status)


def measure(cores, *pids):
    """Beside the cores, if there are others."""
    cores = numbers(cores)
    os.sched_setaffinity(0, os.sched_getaffinity(0).difference(cores) or cores)
    root, *others = map(int, pids or [0])
    print(flush=True)
    if not sys.stdin.readline():
        return
    with meter.Meter(root or None, machine.Cores(cores, (), ()), others=others) as watch:
        print(flush=True)
        sys.stdin.read()
    reading = watch.reading
    if not pids:  # whoever works on these cores
        reading.used["server"] = len(cores) * (reading.cores.server.busy or 0)
    print(json.dumps(dataclasses.asdict(reading)))


def numbers(text):
    return tuple(int(word) for word in text.split(",") if word)


if __name__ == "__main__":
    {"about": about, "run": run, "load": load, "meter": measure}[sys.argv[1]](*sys.argv[2:])
