"""servers: one of the seven, from its banner to its end."""

import os
import re
import subprocess
import time
from collections import namedtuple

from lib import Trouble, machine, processes

NAMES = ["iterative", "forking", "preforking", "threading", "prethreading", "poll", "epoll"]
START_SECONDS = 5.0


class Server:
    """A server of our own on a free port, from `with` to its end.

    Everything it prints goes to the file `log`, or its errors to a file of their own: a pipe that
    nobody empties could block it. It listens on loopback, or on `address`. `prefix` is written
    before its command: of what leads to another host, or watches it, strace or valgrind, and whose
    process becomes the server's."""

    other_pids = ()  # it is one instance

    def __init__(self, binary, redis, core, log, options=(), prefix=(), address=None,
                 errors=None):
        self.name = os.path.basename(binary)
        self.url = None
        self.pid = None  # the root of its process tree
        self._command = [*prefix, binary, "--port", "0", "--redis", redis, *options,
                         *(["--bind", address] if address else [])]
        self._core = core
        self._log = log
        self._errors = errors
        self._process = None

    def __enter__(self):
        with open(self._log, "wb") as log, open(self._errors or os.devnull, "wb") as errors:
            self._process = processes.start(self._command, self._core, cwd=machine.TOP, stdout=log,
                                            stderr=errors if self._errors else subprocess.STDOUT,
                                            stdin=subprocess.DEVNULL)
        self.pid = self._process.pid
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
        return processes.printed(self._log)

    def _last_words(self, status):
        """What it said at last, or else how it ended."""
        lines = processes.printed(self._errors or self._log).strip().splitlines()
        return lines[-1] if lines else how_it_ended(status)


def path_of(name, top=machine.SERVERS):
    """Where `make all` puts it."""
    return os.path.join(top, name)


Farewell = namedtuple("Farewell", "requests switches")  # of the whole run, children's included


def farewell(printed):
    """What a server says when it has been asked to end; None if it did not."""
    found = re.search(r"^\w+: (\d+) requests on .* context switches (\d+) voluntary, "
                      r"(\d+) involuntary$", printed, re.MULTILINE)
    return found and Farewell(int(found.group(1)), int(found.group(2)) + int(found.group(3)))


def how_it_ended(status):
    """An exit status in words."""
    return "signal %d" % -status if status < 0 else "status %d" % status
