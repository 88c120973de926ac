"""top: where the project's things lie, and how make brings them.

The modules of this folder are shared by the exercises, the tests and the load tests. Each of these adds the
folder to sys.path. They start the servers and a Redis, speak HTTP to them, and look at them from outside:

    processes   starts a process, and ends it, however we end
    servers     one of the seven, or another program, from its banner to its end
    redis       a Redis for us alone, and one that is far away
    client      a client that says exactly what it is told to, and may be held
    waiting     waits for an event, with a limit that allows for a busy machine
    proc        a process as the kernel sees it: /proc, and sockets
    calls       its system calls, as strace writes them down
"""

import argparse
import csv
import os
import re
import subprocess
import textwrap

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
PLAIN = os.path.join(TOP, os.environ.get("PLAIN") or "build/plain")  # make's objects and programs
IN_PLACE = PLAIN == os.path.join(TOP, "build/plain")  # not so with make's OUT=
SERVERS = TOP if IN_PLACE else PLAIN
with open(os.path.join(TOP, "common", "servers.tsv"), encoding="utf-8") as file:
    ROWS = {row["name"]: row for row in csv.DictReader(file, delimiter="\t")}  # of each server, in their order
NAMES = list(ROWS)  # whatever is built
BOOK = NAMES[:7]  # those that have a chapter


class Trouble(Exception):
    """Why something could not be done, in words for the user."""


class Lacking(Trouble):
    """It takes something that this machine does not have."""


class Help(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal: a paragraph is folded, and where lines are indented, each by itself."""

    def _fill_text(self, text, width, indent):
        parts = [part.splitlines() if re.search("^( |- )", part, re.MULTILINE) else [part] for part in text.split("\n\n")]
        return "\n\n".join("\n".join(textwrap.fill(line, width, subsequent_indent=8 * " " * line.startswith(" "))
                                     for line in part) for part in parts)


def parser(name, text, **more):
    """Of a program's options; `text` describes the program."""
    return argparse.ArgumentParser(prog=name, description=text, formatter_class=Help, **more)


def of_kind(kind):
    """The names of those that serve alone, make a worker for each connection, have a pool of them, or a loop."""
    return [name for name in NAMES if ROWS[name]["kind"] == kind]


def path_of(name, top=SERVERS):
    """Where `make all` puts one of the seven."""
    return os.path.join(top, name)


def make(target, san="", anew=()):
    """Builds what make knows by that name, if it is not there or too old. Returns its path. `anew`: files
    that make must take for new, whatever their dates say. Trouble, with the compiler's words, if that
    fails; Lacking, if a library is not there."""
    make_prints("-j%d" % (os.cpu_count() or 1), *("--what-if=" + path for path in anew), "SAN=" + san, target)
    return os.path.join(TOP, target)


def make_prints(*words):
    """What make prints with these words."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}  # of the make around us
    done = subprocess.run(["make", "--no-print-directory", "-s", *words], cwd=TOP, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", errors="replace", check=False)
    lacking = re.search(r"^skipped: (.*)$|(cannot find \S*[at]san.*)", done.stdout, re.MULTILINE)
    if done.returncode and lacking:
        raise Lacking(lacking.group(1) or lacking.group(2))
    if done.returncode:
        raise Trouble(done.stdout.strip() or "make %s: status %d" % (words[-1], done.returncode))
    return done.stdout.strip()
