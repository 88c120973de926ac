"""delay: a Redis further away.

Redis on the same machine answers in less than a tenth of a millisecond, and what waiting costs
is hidden. slow_redis, a relay between a server and Redis, hands on every answer some
milliseconds later. With a delay of 0 it is there all the same, so that a series of delays
differs in nothing else.
"""

import os
import shutil
import tempfile

from lib import Trouble
from lib.measuring import machine, processes
from lib.subjects import peers


class SlowRedis(peers.EndsWithUs):
    """The relay before `redis`, for the time of a `with`: give the servers its `where`.

    It listens as Redis does, on a Unix socket or on a port of `address`, so that the kind of
    connection stays the same; on another host (see lab and remote), if `prefix` or `launch` leads
    there. What it says goes to slow_redis-MS.log in `folder`."""

    def __init__(self, redis, ms, cores, folder, prefix=(), address="127.0.0.1",
                 launch=processes.start):
        super().__init__("slow_redis", cores, os.path.join(folder, "slow_redis-%d.log" % ms),
                         launch=launch)
        self.where = None
        self._words = [*prefix, path(), "--delay", str(ms), "--redis", redis.where]
        self._address = None if redis.where.startswith("unix:") else address
        self._sockets = None  # a folder with a short name: a socket's path holds 107 bytes

    def __enter__(self):
        must_be_built()
        if not self._address:
            self._sockets = tempfile.mkdtemp(prefix="zerohttpd.", dir="/tmp")
        self.start([*self._words, "--listen", self._address + ":0" if self._address else
                    "unix:%s/slow_redis.sock" % self._sockets])
        self.await_banner()
        self.where = self.url
        return self

    def end(self):
        """Ends it, if it has not ended, and removes its socket."""
        status = super().end()
        if self._sockets:
            shutil.rmtree(self._sockets, ignore_errors=True)
        return status


def path():
    return os.path.join(machine.PLAIN, "loadtest", "slow_redis")


def must_be_built():
    """Trouble if it is not. A program that needs the relay asks before it begins. Later, each cell
    would fail by itself, and the table would be full of dashes."""
    if not os.access(path(), os.X_OK):
        raise Trouble("%s is not built. `make instruments` builds it" %
                      os.path.relpath(path(), machine.TOP))
