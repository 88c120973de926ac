"""loop: for checks of event loops (chapters 6 and 7). Does one sleep? And what keeps it from that.

Nobody who sleeps can be seen to do so at a single look: it may be about to wake. But one that has
been asleep at many looks in a row, and has not woken between two of them, waits for something.
"""

import os
import shutil

from lib import machine

LOOKS = 40  # one after the other, some milliseconds apart (see outcome)
DEPTH = 6  # sections within sections
ENTRIES = 18  # of the guestbook: ENTRIES ** DEPTH steps are a walk, 0.2 s of computing


class Sleeps:
    """A test for ex.expect(): has the server slept at LOOKS looks in a row? It gave its core up and
    has not been given one since; who has to wait for a core is not asleep."""

    def __init__(self, server):
        self._server = server
        self._last = None
        self._looks = 0

    def __call__(self):
        look = (self._server.status("voluntary_ctxt_switches"),
                self._server.status("nonvoluntary_ctxt_switches"))
        asleep = self._server.status("State").startswith("S")
        self._looks = self._looks + 1 if asleep and look == self._last else 0
        self._last = look
        return self._looks >= LOOKS

    def saw(self):
        """What else it did."""
        seconds = self._server.cpu_seconds()
        return "that it wakes again and again: %.1f s of CPU time so far" % seconds


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
