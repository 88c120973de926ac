"""redis: a Redis of our own, or a Valkey where there is no Redis, and its counts of commands.

Before each cell the guestbook is put into the same state. After it, Redis' own statistics tell
what the pages really cost: a server that skips a call, asks twice, or answers from a cache would do
other work than those it is compared with. All of that goes through redis-cli. Its own commands are
not in the figures, because they come before the first reading or after the last.

Only the guestbook's two keys are ever touched, by DEL and RPUSH. There is no FLUSHALL and no
CONFIG here, because the Redis may belong to somebody else.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections import namedtuple

from lib import Trouble
from lib.measuring import machine, processes

# As common/guestbook.h has them: an entry is three lines, its time, a name, the remarks.
VISITORS = "guestbook:visitors"
ENTRIES = "guestbook:entries"
SEED = [
    "2026-01-05T09:00:00Z\nAda\nThe first to sign. What does a server do while it waits?",
    "2026-01-05T09:01:00Z\nLinus\nI came back with a hundred friends; we stood in line.",
    "2026-01-05T09:02:00Z\nGrace\nNo line today. A child opened for each of us.",
    "2026-01-05T09:03:00Z\nKen\nA thread is cheaper than a child & shares the crayons.",
    "2026-01-05T09:04:00Z\nBarbara\nOne process, five hundred guests, and it never sat down.",
]

USUAL_PORT = 6379
FAMILY = "valkey" if shutil.which("valkey-server") and not shutil.which("redis-server") else "redis"
SERVER, CLI = FAMILY + "-server", FAMILY + "-cli"

SETTLE_SECONDS = 5.0

Counts = namedtuple("Counts", "incr get lrange visitors")


class Redis:
    """A Redis that is running. `where` is the value for the servers' option --redis; `port`, if it
    also listens on a port of loopback."""

    def __init__(self, where, port=None, is_ours=False):
        self.where = where
        self._is_ours = is_ours  # started by us, on this machine
        self._port = port
        if where.startswith("unix:"):
            self._cli = [CLI, "-s", where[len("unix:"):]]
        else:
            host, _, port = where.rpartition(":")
            self._cli = [CLI, "-h", host.strip("[]"), "-p", port]

    def on_a_port(self):
        """The same Redis, for programs that cannot use a Unix socket."""
        where = "127.0.0.1:%s" % self._port
        return Redis(where, is_ours=self._is_ours) if self._port else self

    def ask(self, *words):
        """Asks one command, and returns its reply as text. An error reply is text, too."""
        return machine.output_of(self._cli + list(words))

    def number(self, *words):
        """Asks one command whose reply is a number. No reply counts as 0."""
        reply = self.ask(*words)
        try:
            return int(reply or 0)
        except ValueError:
            raise Trouble("Redis said to %s: %s" % (words[0], reply)) from None

    def version(self):
        """The version: of Redis, a number; of Valkey, its name too, because it also tells the
        version of Redis that it replaces."""
        info = self.ask("INFO", "server")
        valkey = re.search(r"valkey_version:(\S+)", info)
        found = valkey or re.search(r"redis_version:(\S+)", info)
        return ("Valkey " if valkey else "") + found.group(1) if found else "of an unknown version"

    @property
    def pids(self):
        """Its process, if it is one of this machine."""
        found = re.search(r"process_id:(\d+)", self.ask("INFO", "server")) if self._is_ours else None
        return [int(found.group(1))] if found else []

    def holds_guestbook(self):
        return self.number("EXISTS", VISITORS, ENTRIES) > 0

    def forget(self):
        self.number("DEL", VISITORS, ENTRIES)

    def seed(self, entries=len(SEED)):
        """Stores so many entries, the same in every cell, so that every page is equal work."""
        self.forget()
        self.number("RPUSH", ENTRIES, *(SEED[n % len(SEED)] for n in range(entries)))

    def counts(self):
        """How often each command was asked so far, and the visitors."""
        visitors = self.number("GET", VISITORS)
        return Counts(*self._calls(), visitors)

    def pages(self):
        """How many have been counted so far. This costs no GET."""
        return self._calls()[0]

    def counts_since(self, before):
        """What has been added to `before`. Reads in the other order, so that our own GET is not
        among the GETs: counts() asks it before it reads, this one after."""
        calls = self._calls()
        now = Counts(*calls, self.number("GET", VISITORS))
        return Counts(*(after - earlier for after, earlier in zip(now, before)))

    def settle(self):
        """Waits until the server has finished the requests of clients that have left: until nothing
        is added to the counts for a tenth of a second, but 5 s at most."""
        deadline = time.monotonic() + SETTLE_SECONDS
        before = self.counts()
        while time.monotonic() < deadline:
            time.sleep(0.1)
            now = self.counts()
            if now[2:] == before[2:]:  # our own reading is a GET
                return
            before = now

    def _calls(self):
        calls = command_calls(self.ask("INFO", "commandstats"))
        return [calls.get("incr", 0) + calls.get("incrby", 0),
                *(calls.get(command, 0) for command in ("get", "lrange"))]


def command_calls(info):
    """The calls in the reply to INFO commandstats: a dict from command to number."""
    if "# Commandstats" not in info:
        raise Trouble("Redis shows no statistics: %s" % info)
    return {name: int(calls) for name, calls in re.findall(r"cmdstat_(\S+):calls=(\d+)", info)}


def unequal(pages, counts, in_flight=0):
    """What is wrong with the `counts` that `pages` pages have left in Redis, in words; None if it
    is exactly three calls and one visitor a page. A run that ends by the clock leaves up to
    `in_flight` requests, which may have been counted, too."""
    if all(0 <= count - pages <= in_flight for count in counts):
        return None
    return "for %s pages Redis counted %s INCR, %s GET, %s LRANGE and %s visitors" % tuple(
        format(number, ",") for number in (pages, *counts))


def start_private(folder, cores, port=None, under=()):
    """A Redis for us alone, on a Unix socket and perhaps a port, with its log in `folder`. It needs
    no end(): it ends when the pipe to its keeper is closed, which happens even if we are killed.
    `under`: the words before its command."""
    keeper = processes.start([*under, os.path.join(machine.TOP, "common/tools/redis"),
                              *(["--port", str(port)] if port else []), folder], cores,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    where = keeper.stdout.readline().strip()
    if not where:
        raise Trouble("no Redis could be started")
    return Redis(where, port, is_ours=True)


def free_port():
    """Redis' usual port if it is free, because a server may know no other."""
    for port in (USUAL_PORT, 0):
        with socket.socket() as holder, contextlib.suppress(OSError):
            holder.bind(("127.0.0.1", port))
            return holder.getsockname()[1]
    return None
