"""idle: the memory that a kept connection costs while it is silent.

A few clients are served first (`first`), so that memory for first use is there. Then so many connections are
opened, one after the other. Each asks for a page, reads it and falls silent. The growth is theirs:

    pss       of the server's processes; a page that n processes share counts 1/n for each
    stacks    the kernel's, one for each thread, whether it has a process to itself or not
    tables    by which the kernel finds a process's pages (VmPTE)

The sockets themselves, in the kernel, are not included. They cost every server the same.
"""

import contextlib
import math
import select
import time
from typing import NamedTuple

import proc
import top
from lib import Trouble
from lib.measuring import meter, web
from proc import kib, read

FIGURES = ["pss", "stacks", "tables"]
FIRST = 20  # clients before it begins
PAUSE_SECONDS = 0.25  # more than a tick: by then the server has closed those that it closes
HOLDS = {**dict.fromkeys(top.of_kind("alone"), 1), **dict.fromkeys(top.of_kind("pool"), 100),
         "gunicorn-sync": 0}  # connections at once, at most
LEAST_KEPT = 0.9  # if a client connects just at its tick, a worker closes its silent one


class Idle(NamedTuple):
    """The memory of so many idle connections, in bytes."""

    connections: int
    before: dict[str, int]  # FIGURES, when no client was connected
    after: dict[str, int]

    def each(self, figure):
        return (self.after[figure] - self.before[figure]) / self.connections


def most(name):
    """How many connections a server can hold at once; None if there is no limit."""
    return HOLDS.get(name.split("@")[0])


def measure(open_server, path, connections, first=FIRST):
    """The Idle of the server that open_server() starts. Trouble if it did not keep them."""
    with open_server() as server:
        for _ in range(first):
            with web.connected(server.url, path) as client:
                ask(client, path)
        time.sleep(PAUSE_SECONDS)
        before = look(server.pid)
        with held(server, path, connections) as clients:
            time.sleep(PAUSE_SECONDS)
            after = look(server.pid)
            kept = sum(map(is_open, clients))
        server.must_live()
    if kept < LEAST_KEPT * connections:
        raise Trouble("of %d idle connections it kept %d" % (connections, kept))
    return Idle(kept, before, after)


@contextlib.contextmanager
def held(server, path, connections):
    """So many clients that have read a response and are silent now."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(web.connected(server.url, path)) for _ in range(connections)]
        for client in clients:
            ask(client, path)
        yield clients


def ask(client, path):
    """Asks, and reads the response to its end. Trouble if the connection is not kept after it."""
    client.request("GET", path)
    answer = client.getresponse()
    if answer.status != 200:
        raise Trouble("an answer was %d %s" % (answer.status, answer.reason))
    if answer.will_close:
        raise Trouble("an answer ends with its connection")
    answer.read()


def is_open(client):
    """Has nothing come on it, and no end either?"""
    waiting = select.poll()
    waiting.register(client.sock, select.POLLIN)
    return not waiting.poll(0)


def look(pid):
    """FIGURES of the server whose first process is `pid`, in bytes."""
    pids = meter.Tree(pid).pids()
    threads = sum(stat.threads for stat in proc.everybody(pids))
    rollups, statuses = ([read("/proc/%d/%s" % (pid, name)) for pid in pids]
                         for name in ("smaps_rollup", "status"))
    return {
        "pss": sum(kib(text, "Pss") or 0 for text in rollups),
        "stacks": threads * stack_size(read("/proc/meminfo"),
                                       read("/proc/loadavg")),
        "tables": sum(kib(text, "VmPTE") or 0 for text in statuses),
    }


def stack_size(meminfo, loadavg):
    """The size of a thread's stack in the kernel, in bytes: the sum of all stacks divided by the
    number of all threads. It is rounded to whole pages, a power of two, so that a thread that has
    just begun or ended does not matter."""
    threads = int(loadavg.split()[3].partition("/")[2])
    return 2 ** round(math.log2(kib(meminfo, "KernelStack") / threads))
