"""loop: for checks of event loops (chapters 6 and 7). Does one sleep? And what keeps it from that.

A single look cannot tell, because a loop that sleeps may be about to wake. But a loop that has been
asleep at every look for a while, and has not woken between two of them, waits for something. A loop
that naps instead of waiting naps longer than that while, or is seen to wake; and then it is slow to
answer, many times in a row.
"""

import os
import shutil
import time

from client import asking
from lib.measuring import machine
from outcome import clock, patient

ASLEEP_SECONDS = 0.5
FILES = 8  # naps of ASLEEP_SECONDS would take 4 s,
AT_ONCE_SECONDS = 2  # and without them it is some milliseconds
FILE, PAGE = asking("/style.css"), asking("/guestbook")
COMPUTING = 0.05  # seconds of CPU time: more than it takes to come to a page that computes, far less than that
DEPTH = 6  # sections within sections
ENTRIES = 18  # of the guestbook: ENTRIES ** DEPTH steps are a walk, 0.2 s of computing


class Sleeps:
    """A test: has the server slept for a while? It gave its core up and has not been
    given one since. A process that waits for a core is not asleep."""

    def __init__(self, server):
        self._server = server
        self._last = None
        self._since = None

    def __call__(self):
        look = (self._server.status("voluntary_ctxt_switches"),
                self._server.status("nonvoluntary_ctxt_switches"))
        if look != self._last or not self._server.status("State").startswith("S"):
            self._since = time.monotonic()
        self._last = look
        return time.monotonic() - self._since >= patient(ASLEEP_SECONDS)


def expect_asleep(ex, key, server, expected, within=5, hint=None, read=None):
    ex.expect(key, expected, Sleeps(server), within=within, hint=hint, read=read,
              saw=lambda: "that it woke again and again, and has used %.1f s of CPU time" % (
                  server.cpu_seconds()))


def expect_no_naps(ex, server, client):
    """Expects a few files, one after the other, as soon as they are asked for. What is measured is
    sleep: neither the server nor this check waits for a core meanwhile."""
    begun = server.slept(clock)
    ex.expect("naps", "%d files, one after the other, each as soon as it is asked for" % FILES,
              lambda: all([client.get("/style.css").status == 200 for _ in range(FILES)])
              and server.slept(clock) - begun < patient(AT_ONCE_SECONDS),
              saw=lambda: "%.1f s until the last" % (server.slept(clock) - begun), hint=1)


def computing_root(folder, walks):
    """For --root: the project's files, and a guestbook page that is nothing but work: so many walks
    through sections that stand within each other. What it writes is a line."""
    root = os.path.join(folder, "computing")
    shutil.copytree(os.path.join(machine.TOP, "templates"), os.path.join(root, "templates"))
    shutil.copytree(os.path.join(machine.TOP, "public"), os.path.join(root, "public"))
    page = os.path.join(root, "templates", "guestbook", "index.html")
    with open(page, "w", encoding="ascii") as template:
        template.write(("{{#entries}}" * DEPTH + "{{/entries}}" * DEPTH) * walks + "done\n")
    return root


def computing_redis(ex):
    """The Redis that goes with it: its guestbook has ENTRIES entries."""
    redis = ex.redis()
    redis.seed(ENTRIES)
    return redis


def let_compute(ex, server):
    """A client whose page keeps one loop, or thread, busy by now."""
    begun = server.cpu_seconds()
    page, = ex.hold(server, 1, PAGE)
    ex.wait(lambda: server.cpu_seconds() - begun > COMPUTING)
    return page


def descriptors_named(server, name):
    """How many descriptors of a server and its children are of that kind: "[eventpoll]"."""
    number = 0
    for pid in [server.pid, *server.children()]:
        folder = "/proc/%d/fd" % pid
        for descriptor in os.listdir(folder):
            try:
                number += os.readlink(os.path.join(folder, descriptor)).endswith(name)
            except FileNotFoundError:
                pass  # closed since
    return number
