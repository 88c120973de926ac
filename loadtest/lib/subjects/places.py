"""places: where things run: here, on this machine. remote.Remote has the same interface.

A place for the server, a Redis, and a meter. So a measurement asks these, and does not have to know which kind
they are.
"""

import os
from typing import Callable, NamedTuple

import processes
import redis
from lib.measuring import machine, meter


class Place(NamedTuple):
    cores: tuple[int, ...]  # empty: on any core
    address: "str | None" = None  # to listen on; None: loopback, the default
    launch: Callable = processes.start  # what starts it


class Here:
    """This machine, for the time of a `with`: the server alone on its core, the rest on others."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def cores(self, count=1):
        """A machine.Cores for a server that may use so many cores."""
        return machine.choose_cores(count)

    def are_shared(self, count):
        """Are some of the cores of a server that may use so many those of the load generator as well?"""
        server, client, _ = self.cores(count)
        return not {*server}.isdisjoint(client)

    def of_server(self, count=1):
        """The Place of a server that may use so many cores."""
        return Place(self.cores(count).server)

    def redis(self, folder, port=None):
        """A private Redis, its log in `folder`; also on a port, if one is given. It has no password, so nobody
        whom we start gets one from our environment; and TMOUT would end its keeper's shell."""
        for name in ("REDISCLI_AUTH", "TMOUT"):
            os.environ.pop(name, None)
        return redis.start_private(folder, self.cores().redis, port)

    def slow_redis(self, store, ms, folder):
        """A relay before it, for the time of a `with`."""
        return redis.SlowRedis(store, ms, folder, self.cores().redis)

    def meter(self, pids, cores, store):
        """A meter.Meter of a server on these cores. `store`: the pids of Redis and its relay."""
        return meter.Meter(pids, cores, store)

    def canary(self):
        """CPU microseconds of a fixed piece of work on the server's core; None if that cannot be told."""
        return machine.spin(self.cores().server)

    def environment(self):
        """What a report must say of the machine, as pairs."""
        return machine.environment()

    def pinned(self):
        """What runs where, as a sentence."""
        server, client, store = self.cores()
        if not server:
            return "Nothing was pinned: there is one core, and all share it."
        return "The server was pinned to %s, %s.%s" % (machine.named(server), (
            "the load generator and Redis to " + machine.named(client) if client == store else
            "the load generator to %s, Redis to %s" % (machine.named(client), machine.named(store))),
            " These are threads of one core, and each slows the other." * machine.are_threads_of_one(server[0], client[0]))
