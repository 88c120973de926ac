"""subjects: everything that can be measured, by name.

    epoll           one of the seven, as built here
    epoll@v1.0      the same of another revision of this project (git archive, built apart)
    epoll@own-redis today's, with a stored change: loadtest/results/own-redis/change.patch
    prethreading --workers 500   with options of its own
    floor           the least a server can do
    nginx           a peer
    node            a companion: the guestbook in another language
"""

import os
import re
import shutil
import subprocess
from collections import namedtuple

import processes
import top
from lib import Trouble
from lib.measuring import machine
from lib.subjects import companions, peers


# The programs of the ZeroHTTPd article, as its makefile names them. A --command that runs one is called article-NAME.
ARTICLE = dict(zip(top.NAMES, ("iterative", "forking", "preforked", "threaded", "prethreaded", "poll", "epoll")))


def plain(name):
    """Which of the seven it is, without its revision and its options; or just its name."""
    return name.split()[0].split("@")[0]


def revisions(names):
    """Those that the names ask for."""
    return filter(None, (name.split()[0].partition("@")[2] for name in names))


def is_ours(name):
    """Does it take our options, and ask Redis?"""
    return plain(name) in top.NAMES


def is_known(name):
    return is_ours(name) or name == "floor" or name in [*peers.NAMES, *companions.NAMES]


def why_not(name):
    """Why it cannot be measured here, or None."""
    return companions.missing(name) if name in companions.NAMES else (
        peers.missing(name) if name in peers.NAMES else None)


def binary_of(name):
    which, _, revision = name.split()[0].partition("@")
    return top.path_of(which, _tree(revision) if revision else machine.SERVERS)


Farewell = namedtuple("Farewell", "requests voluntary involuntary")  # of the whole run, children's included


def farewell(printed):
    """What one of ours prints when it has been asked to end; None if it printed nothing."""
    found = re.search(r"^\w+: (\d+) requests on .* context switches (\d+) voluntary, (\d+) involuntary$", printed,
                      re.MULTILINE)
    return found and Farewell(*map(int, found.groups()))


def must_be_built(*targets):
    """Trouble if what these targets make is older than its source: it would be measured, and the source named."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    if subprocess.run(["make", "-q", "-C", machine.TOP, "DEPS=no", *targets, "OUT=" + os.path.relpath(
            machine.PLAIN, machine.TOP)], env=own, stdout=subprocess.DEVNULL, check=False).returncode == 1:
        raise Trouble("something is missing, or older than its source: `make %s` builds it" % " ".join(targets))


def _change(revision):
    """The path of the stored change of this name, a patch; or None."""
    path = os.path.join(machine.TOP, "loadtest", "results", revision, "change.patch")
    return path if os.path.exists(path) else None


def _tree(revision):
    change = "-" + revision if _change(revision) else ""
    return os.path.join(machine.BUILD, "against", _commit(revision) + change)


def _commit(revision):
    revision = "HEAD" if _change(revision) else revision
    try:
        return processes.output_of(["git", "-C", machine.TOP, "rev-parse", "--verify",
                                  "--short=12", revision + "^{commit}"])
    except Trouble:
        raise Trouble("git knows no revision '%s'" % revision) from None


def build(revision):
    """Checks a revision out and builds its seven servers, if that has not been done before."""
    tree = _tree(revision)
    if not os.path.isdir(tree):
        new = tree + ".new"
        shutil.rmtree(new, ignore_errors=True)
        os.makedirs(new)
        archive = subprocess.run(["git", "-C", machine.TOP, "archive", _commit(revision)],
                                 stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x", "-C", new], input=archive, check=True)
        if _change(revision):
            processes.output_of(["patch", "-s", "-p1", "-d", new, "-i", _change(revision)])
        os.rename(new, tree)
    processes.output_of(["make", "-s", "-C", tree, "DEPS=no", "all"], seconds=300)
