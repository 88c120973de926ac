"""servers: one of the seven, from its banner to its end."""

import os
import re
import subprocess
import time

from lib import Trouble, machine, processes

NAMES = ["iterative", "forking", "preforking", "threading", "prethreading", "poll", "epoll"]
START_SECONDS = 5.0


class Server:
    """A server of our own on a free port, from `with` to its end.

    Everything it prints goes to the file `log`: a pipe that nobody empties could block it."""

    def __init__(self, name, redis, core, log):
        self.name = name
        self.url = None
        self._redis = redis
        self._core = core
        self._log = log
        self._process = None

    def __enter__(self):
        command = [path_of(self.name), "--port", "0", "--redis", self._redis.where]
        with open(self._log, "wb") as log:
            self._process = processes.start(command, self._core, cwd=machine.TOP, stdout=log,
                                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.url = self._await_banner()
        return self

    def __exit__(self, *exception):
        self.end()

    def _await_banner(self):
        """Its first line says that it is ready, and where."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            over = processes.has_ended(self._process)  # before reading: no line comes after it
            banner = re.search(r"^\w+: listening on (\S+)\n", self._printed(), re.MULTILINE)
            if banner:
                return banner.group(1)
            if over:
                status = self.end()
                raise Trouble("the server did not start: %s" % self._last_words(status))
            time.sleep(processes.POLL_SECONDS)
        self.end()
        raise Trouble("the server was not ready within %g s" % START_SECONDS)

    def must_live(self):
        """Trouble if it has ended by itself."""
        if processes.has_ended(self._process):
            raise Trouble("the server ended under load, with %s" % how_it_ended(self.end()))

    def end(self):
        """Ends it, if it has not ended. Returns its exit status."""
        return processes.end(self._process)

    def _printed(self):
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def _last_words(self, status):
        """What it said at last, or else how it ended."""
        lines = self._printed().strip().splitlines()
        return lines[-1] if lines else how_it_ended(status)


def path_of(name):
    """Where `make all` puts it."""
    return os.path.join(machine.TOP, name)


def how_it_ended(status):
    """An exit status in words."""
    return "signal %d" % -status if status < 0 else "status %d" % status
