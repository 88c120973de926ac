"""redis: a Redis of our own, or a Valkey where there is no Redis.

    store = redis.start_private(folder)      # on a Unix socket that nobody else may open
    store.where                              # the value for the servers' option --redis
    with redis.SlowRedis(store, 10, folder) as far: ...   # its answers come 10 ms later

Only the guestbook's two keys are ever touched, by DEL and RPUSH. There is no FLUSHALL and no CONFIG here,
because a Redis may belong to somebody else.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess

import processes
import servers
import top
from processes import output_of
from top import Trouble

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


class Redis:
    """A Redis that is running. `where` is the value for the servers' option --redis; `port`, if it
    also listens on a port of loopback."""

    environment = None  # of redis-cli

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
        return Redis("127.0.0.1:%s" % self._port, is_ours=self._is_ours) if self._port else self

    def ask(self, *words):
        """Asks one command, and returns its reply as text. An error reply is text, too."""
        return output_of(self._cli + list(words), environment=self.environment)

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

    def forget(self):
        self.number("DEL", VISITORS, ENTRIES)

    def seed(self, entries=len(SEED)):
        """Stores so many entries, the same each time, so that every page is equal work."""
        self.forget()
        self.number("RPUSH", ENTRIES, *(SEED[n % len(SEED)] for n in range(entries)))

    def commands(self):
        """{command: how often it was asked so far}."""
        info = self.ask("INFO", "commandstats")
        if "# Commandstats" not in info:
            raise Trouble("Redis shows no statistics: %s" % info)
        return {name: int(calls) for name, calls in re.findall(r"cmdstat_(\S+):calls=(\d+)", info)}


def start_private(folder, cores=(), port=None, under=()):
    """A Redis for us alone, on a Unix socket and perhaps a port, with its log in `folder`. It needs
    no end(): it ends when the pipe to its keeper is closed, which happens even if we are killed.
    `under`: the words before its command."""
    keeper = processes.start([*under, os.path.join(top.TOP, "common/tools/redis"),
                              *(["--port", str(port)] if port else []), folder], cores, dies=False,
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


class SlowRedis(servers.Started):
    """A relay (slow_redis.c) before `store`, on any port or on this one, for the time of a `with`. It hands on
    every answer so many ms later. `launch` starts it, here or on another host."""

    def __init__(self, store, ms, folder, cores=(), port=0, address="127.0.0.1", launch=processes.start):
        super().__init__("slow_redis", os.path.join(folder, "slow_redis-%d.log" % ms), [
            os.path.join(top.PLAIN, "loadtest", "slow_redis"), str(ms), "%s:%d" % (address, port), store.where],
            cores, launch=launch)

    @property
    def where(self):
        return self.url
