"""servers: one of the seven, or another program with a banner like theirs, from there to its end.

    with servers.Server(top.path_of("epoll"), store.where, log, ["--timeout", "1"]) as server:
        server.url, server.port, server.pid
"""

import os
import re
import signal
import subprocess
import time

import processes
from top import TOP, Trouble

START_SECONDS = 5.0


class Started:
    """A server process of ours, from `with` to its end. It is ready when its banner says where.

    Its output goes to the file `log`, or its errors to a file of their own, because a pipe that is
    not read could block it. `launch` starts it, here or on another host."""

    folder = TOP  # it is started there; None: where we were

    def __init__(self, name, log, command=(), cores=(), errors=None, launch=processes.start):
        self.name = name
        self.url = None
        self._command = command
        self._cores = cores
        self._log = log
        self._errors = errors
        self._launch = launch
        self._process = None

    def __enter__(self):
        self.start(self._command)
        self.await_banner()
        return self

    def __exit__(self, *exception):
        self.end()

    @property
    def host(self):
        return re.match(r"\w+://\[?(.*?)\]?:\d+$", self.url).group(1)

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    @property
    def pid(self):
        """The root of its process tree, on the host where it runs."""
        return self._process and getattr(self._process, "there", self._process.pid)

    def must_live(self):
        """Trouble if it has ended by itself."""
        if processes.has_ended(self._process):
            raise Trouble("%s ended under load: %s" % (self.name, self._last_words(self.end())))

    def end(self):
        """Ends it, if it has not ended. Returns its exit status."""
        return processes.end(self._process, self.pid)

    def start(self, command):
        with open(self._log, "wb") as log, open(self._errors or os.devnull, "wb") as errors:
            self._process = self._launch(command, self._cores, cwd=self.folder, stdout=log,
                                         stderr=errors if self._errors else subprocess.STDOUT,
                                         stdin=subprocess.DEVNULL)

    def await_ready(self, is_ready, seconds=None):
        """Waits until it is ready, for START_SECONDS if nothing is said. Trouble if it ends before that, or
        takes too long."""
        seconds = seconds or START_SECONDS
        deadline = time.monotonic() + seconds
        while True:
            over = processes.has_ended(self._process)  # first: after its end it prints no more
            if is_ready():
                return
            if over:
                raise Trouble("%s did not start: %s" % (self.name, self._last_words(self.end())))
            if time.monotonic() > deadline:
                self.end()
                raise Trouble("%s was not ready within %g s" % (self.name, seconds))
            time.sleep(processes.POLL_SECONDS)

    def await_banner(self):
        """Waits for its first line, which says that it is ready, and where."""
        self.await_ready(self._banner)
        self.url = self._banner().group(1)

    def _banner(self):
        return re.search(r"^\w+: listening on (\S+)\n", processes.printed(self._log), re.MULTILINE)

    def _last_words(self, status):
        """Its last words, or else how it ended. Of one that a signal ended, both: it could not say
        so itself."""
        words = processes.printed(self._errors or self._log).strip().splitlines()[-1:]
        how = [how_it_ended(status, self.url)] if status < 0 or not words else []
        return "; its last words: ".join(how + words)


class Server(Started):
    """A server on a free port of loopback, or wherever the options say. `prefix` is written before its
    command, to run it under strace or valgrind. The prefix's process becomes the server's."""

    def __init__(self, binary, redis, log, options=(), prefix=(), cores=(), errors=None,
                 launch=processes.start):
        if prefix and binary.startswith(TOP):  # env(1), for example, would take a path with a = in it for a variable
            binary = os.path.join(".", os.path.relpath(binary, TOP))
        super().__init__(os.path.basename(binary), log, [
            *prefix, binary, "--port", "0", "--redis", redis, *options], cores, errors, launch)


def how_it_ended(status, was_ready=True):
    if status < 0:
        return "signal %d (%s)" % (-status, signal.strsignal(-status))
    return "status %d" % status + " (a daemon? It has to stay in the foreground)" * (status == 0 and not was_ready)
