"""delay: a Redis further away.

Redis on the same machine answers in less than a tenth of a millisecond, and what waiting costs
is hidden. slow_redis, a relay between a server and Redis, hands on every answer some
milliseconds later. With a delay of 0 it is there all the same, so that a series of delays
differs in nothing else.
"""

import os
import re
import shutil
import subprocess
import tempfile

from lib import Trouble, machine, processes


class SlowRedis:
    """The relay before `redis`, for the time of a `with`: give the servers its `where`.

    It listens as Redis does, on a Unix socket or on a port of `address`, so that the kind of
    connection stays the same; on another host (see lab), if `prefix` leads there. What it says
    goes to slow_redis-MS.log in `folder`. It ends when the pipe to its standard input does,
    which even our kill -9 cannot prevent."""

    def __init__(self, redis, ms, cores, folder, prefix=(), address="127.0.0.1"):
        self.where = None
        self._redis = redis.where
        self._ms = ms
        self._cores = cores
        self._prefix = list(prefix)
        self._address = address
        self._log = os.path.join(folder, "slow_redis-%d.log" % ms)
        self._sockets = None  # a folder with a short name: a socket's path holds 107 bytes
        self._process = None

    def __enter__(self):
        if not os.access(path(), os.X_OK):
            raise Trouble("%s is not built. `make instruments` does that" % path())
        listen = self._address + ":0"
        if self._redis.startswith("unix:"):
            self._sockets = tempfile.mkdtemp(prefix="zerohttpd.", dir="/tmp")
            listen = "unix:%s/slow_redis.sock" % self._sockets
        command = self._prefix + [path(), "--delay", str(self._ms), "--listen", listen,
                                  "--redis", self._redis]
        with open(self._log, "wb") as log:
            self._process = processes.start(command, self._cores, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log)
        ready = re.fullmatch(r"slow_redis: listening on (\S+)",
                             self._process.stdout.readline().decode().strip())
        if not ready:
            self.end()
            raise Trouble(processes.printed(self._log).strip() or "slow_redis did not start")
        self.where = ready.group(1)
        return self

    def __exit__(self, *exception):
        self.end()

    def must_live(self):
        """Trouble if it has ended by itself."""
        if processes.has_ended(self._process):
            raise Trouble("slow_redis ended under load; %s says why" % self._log)

    def end(self):
        """Ends it, if it has not ended, and removes its socket."""
        processes.end(self._process)
        self._process.stdin.close()
        self._process.stdout.close()
        if self._sockets:
            shutil.rmtree(self._sockets, ignore_errors=True)


def path():
    """Where make puts it."""
    return os.path.join(machine.PLAIN, "loadtest", "slow_redis")
