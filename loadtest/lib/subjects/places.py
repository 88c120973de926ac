"""places: where things run: on this machine, on loopback, perhaps on a loopback of our own, on the
four hosts of a lab, or on other machines.

All have the same interface: a place for each role (load, lb, server, redis), a Redis, and how busy
each host was. So a measurement asks the place, and does not have to know which kind it is.
"""

import contextlib
import ctypes
import os
import shlex
import urllib.request
from typing import Callable, NamedTuple

from lib import Trouble
from lib.measuring import machine, meter, processes
from lib.subjects import redis


class Place(NamedTuple):
    cores: tuple[int, ...]  # empty: on any core
    prefix: tuple[str, ...] = ()  # words before its command, so that it runs there
    address: str | None = None  # to listen on; None: loopback, the default
    launch: Callable = processes.start  # what starts it
    others: tuple["Place", ...] = ()  # of the load generator: more machines, which do the same
    guard: str = ""  # of another machine: what ends a load generator there when ssh's input ends

    def command(self, words, guard=()):
        """What runs these words there. Another machine's shell reads them once more."""
        return [*self.prefix, *guard, *(map(shlex.quote, words) if self.guard else words)]

    def generator(self, words):
        """The same for a load generator."""
        return self.command(words, [self.guard] if self.guard else ())


class Here:
    """This machine, for the time of a `with`: the server alone on its core, the rest on others.
    lab.Lab and remote.Remote have the same interface."""

    most_generators = None  # cores for the load generator; None: all that are left

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def cores(self, count=1):
        """A machine.Cores for a server that may use so many cores."""
        return machine.choose_cores(count, self.most_generators)

    def place(self, host, count=1):
        """The Place of a role, if the server may use so many cores."""
        cores = self.cores(count)
        return Place(getattr(cores, host, cores.client), (), None)

    def redis(self, folder, port=None):
        """A private Redis, its log in `folder`; also on a port, if one is given."""
        return redis.start_private(folder, self.cores().redis, port)

    def fetch(self, url):
        """The response to a GET of `url`."""
        with urllib.request.urlopen(url) as answer:
            return answer.read()

    def pids(self):
        """The pid of a process on each other host."""
        return []

    def meter(self, server, cores, store):
        """A meter.Meter for a server on these cores. `store`: the pids of Redis and its relay."""
        return meter.Meter(server.pid, cores, self.pids(), server.other_pids, store)

    def environment(self):
        """What a report must say of the machine, as pairs."""
        return machine.environment()

    def watch(self):
        """A context manager that gives a dict, filled when it ends: {host: percent of a core that
        its processes have used}. There are no hosts here, so it stays empty."""
        return contextlib.nullcontext({})

    def pinned(self):
        """What runs where, as a sentence."""
        server, client, store = self.cores()
        if not server:
            return "Nothing was pinned: there is one core, and all share it."
        return "The server was pinned to %s, %s." % (machine.named(server), (
            "the load generator and Redis to " + machine.named(client) if client == store else
            "the load generator to %s, Redis to %s" % (machine.named(client),
                                                       machine.named(store))))


CLONE_NEWNET = 0x40000000  # unshare(2)
SETTINGS = {"core/somaxconn": "65535", "ipv4/ip_local_port_range": "1024 65535"}


class Apart(Here):
    """This machine, but with a network that is ours alone and ends with us. It is a loopback in a
    network namespace (network_namespaces(7)), with room for many clients in a listener's queue, and
    with ports enough for them. The machine's own settings are not touched. For root only."""

    def __enter__(self):
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) < 0:
            raise Trouble("no network of our own: %s" % os.strerror(ctypes.get_errno()))
        machine.output_of(["ip", "link", "set", "lo", "up"])
        for name, value in SETTINGS.items():
            with open(os.path.join("/proc/sys/net", name), "w", encoding="ascii") as file:
                file.write(value)
        return self

    def pinned(self):
        return super().pinned() + (" They met on a loopback network of their own, with a somaxconn "
                                   "of 65,535 and ports from 1024 on.")
