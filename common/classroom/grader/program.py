"""program: a server of somebody's, where it can do no harm and no forging.

All that is asked of it is asked in a sandbox (jail, in ../course), where it runs as a user of its own:
what asks is another user's, whose processes it cannot reach and whose files it cannot write. The
tests start a script, which has the model's name and turns into the program.
"""

import contextlib
import json
import os
import shlex
import shutil
import sys
from types import SimpleNamespace

import cage
import jail
import places
import suite
from words import printable

HERE = os.path.dirname(os.path.abspath(__file__))
HELP_SECONDS = 10
LANES_SECONDS = 30
KEPT = ("PATH", "PATIENCE", "CC", "TZ")  # of our environment, in which there may be secrets

SCRIPT = """#!/bin/sh
[ ! -O "$0" ] || exec %s "$@"
exec %s "$@"
"""


class Program:
    """A server, under the name of the model it is graded as."""

    def __init__(self, path, model, folder, hidden=()):
        self.model = model
        self.folder = folder
        self.hidden = hidden  # folders that it must not see
        self.cell = jail.build()
        if not jail.may_look() or not self.cell.may_run(
                os.path.join(places.TOP, "common", "tools", "redis"), folder):
            self.cell = jail.Jail(self.cell.sandbox, None, self.cell.has_keys)  # another user cannot come to our files
        self._redis = jail.for_redis(folder)
        if self._redis.user:
            os.chown(folder, -1, self._redis.user)
            os.chmod(folder, 0o2711)  # the tests' folders will have that group
        self._real = self._reachable(os.path.abspath(path))
        self.servers = os.path.join(folder, "servers")
        os.mkdir(self.servers, 0o755)
        self.path = os.path.join(self.servers, model)
        with open(self.path, "w", encoding="utf-8") as script:
            script.write(SCRIPT % (shlex.join([*self.cell.rights(), self._real]),
                                   shlex.quote(self._real)))
        os.chmod(self.path, 0o755)
        self.trouble = None  # why no more is asked of it
        self.calls_itself = ""
        self.knows_workers = False  # until --help says so
        self.knows_workers = "--workers" in self.run(
            [*cage.LIMITS, self.path, "--help"], HELP_SECONDS)[0]

    def _reachable(self, path):
        """The path; or that of a copy, if the server's user cannot come to it."""
        if self.cell.may_run(path, self.folder, self.hidden):
            return path
        print("grade: a copy of this one file is graded, because the server's user cannot come to %s" %
              printable(path), file=sys.stderr)
        copy = os.path.join(self.folder, "copy", os.path.basename(path))
        os.makedirs(os.path.dirname(copy), mode=0o755)
        shutil.copyfile(path, copy)
        os.chmod(copy, 0o755)
        return copy

    def run(self, command, seconds, **more):
        """What a command printed, in a cage; and why it was stopped, if it was."""
        log = os.path.join(self.folder, "run.log")
        around = self.cell.around(self.folder, self.hidden)
        _, why = cage.run([*around, *command], self.folder, log, seconds,
                          environment={**self.environment(), **more})
        self.was_stopped(why)
        with open(log, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20), why

    def draw(self, path):
        """Writes its swim lanes to a file. Returns its path; nothing, if it shows none."""
        found, _ = (None, None) if self.trouble else self.apart("lanes", [], LANES_SECONDS)
        if not found or not found.svg:
            return None
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(found.svg)
        return os.path.relpath(path)

    def apart(self, name, arguments, seconds, **more):
        """What a part of ours found out (apart.py), from JSON; or None, and why it was stopped. `more`
        is for its environment."""
        said, why = self.run([sys.executable, "-B", os.path.join(HERE, "apart.py"), name, self.path,
                              *arguments], seconds, **more)
        try:
            return json.loads(said, object_hook=lambda each: SimpleNamespace(**each)), None
        except ValueError:
            if why:
                return None, why
            raise suite.Broken("apart.py %s ended without a result\n%s" % (
                name, said.strip()[-suite.MOST_EVIDENCE:])) from None

    def noted(self):
        """The files that were executed wherever the suite has started it."""
        with contextlib.suppress(OSError), open(os.path.join(self.folder, "programs"),
                                                encoding="utf-8", errors="replace") as file:
            return set(file.read().splitlines())
        return set()

    def was_stopped(self, why):
        """A program that has once asked too much of the machine is not run again."""
        if why and not why.startswith(cage.TOO_LONG):
            self.trouble = "it was stopped before: %s" % why

    def environment(self):
        """For the harness: see harness.h."""
        chosen = {name: os.environ[name] for name in KEPT if name in os.environ}
        chosen.update(LC_ALL="C.UTF-8", HOME="/nonexistent", FOLDERS=self.folder,
                      LIMITS=" ".join(cage.LIMITS), CALLS_ITSELF=self.calls_itself,
                      PROGRAM=self._real, REDIS_UNDER=" ".join(self._redis.rights()))
        if not self.knows_workers:
            chosen["NO_WORKERS"] = "1"
        return chosen
