"""subjects: everything that can be measured, by name.

    epoll           one of the seven, as built here
    epoll@v1.0      the same of another revision of this project (git archive, built apart)
    epoll@new-redis today's, with a stored change: loadtest/results/new-redis/change.patch
    prethreading --workers 500   with options of its own
    floor           the least a server can do
    nginx           a peer
    node            a companion: the guestbook in another language

Each of them can also be behind the balancer of a lab, several times.
"""

import contextlib
import os
import shutil
import subprocess
from urllib.parse import urlsplit

from lib import Trouble
from lib.measuring import machine, processes
from lib.subjects import companions, peers, servers


def plain(name):
    """Which of the seven it is, without its revision and its options; or just its name."""
    return name.split()[0].split("@")[0]


def revisions(names):
    """Those that the names ask for."""
    return filter(None, (name.split()[0].partition("@")[2] for name in names))


def is_ours(name):
    """Does it take our options, and ask Redis?"""
    return plain(name) in servers.NAMES


def is_known(name):
    return is_ours(name) or name == "floor" or name in [*peers.NAMES, *companions.NAMES]


def why_not(name):
    """Why it cannot be measured here, or None."""
    if is_ours(name):
        return None if os.access(binary_of(name), os.X_OK) else "%s is not built: `make`" % name
    return companions.missing(name) if name in companions.NAMES else peers.missing(name)


def binary_of(name):
    which, _, revision = name.split()[0].partition("@")
    return servers.path_of(which, _tree(revision) if revision else machine.SERVERS)


def end(server, name):
    """Ends it. Returns what went wrong, as a list of sentences. A peer may end in its own way."""
    status = server.end()
    if not status or not is_ours(name):
        return []
    return ["asked to stop, it ended with %s" % servers.how_it_ended(status)]


def open_subject(name, cores, log, *, redis=None, options=(), body=600, root=machine.TOP,
                 prefix=(), address=None, launch=processes.start):
    """A context manager that starts the subject on `cores`, and ends it at the end of `with`. Ours
    ask `redis`. The floor answers with `body` (peers.Floor), and has none of our options. Ours and the
    peers serve the files of `root`/public. Ours and the floor may be on another host, where
    `prefix` or `launch` leads to, and listen on its `address`."""
    if name == "floor":
        return peers.Floor(cores, log, body, prefix, address, launch)
    if is_ours(name):
        options = [*options, *name.split()[1:], *([] if root == machine.TOP else ["--root", root])]
        return servers.Server(binary_of(name), redis, cores, log, options, prefix, address,
                              launch=launch)
    return peers.Peer(name, os.path.join(root, "public"), cores, log)


class Balanced:
    """Several subjects behind the balancer of a lab, for the time of a `with`. nginx keeps its
    configuration and log in the folder `folder`."""

    def __init__(self, instances, lab, folder):
        self.name = "%s behind nginx" % instances[0].name
        self.url = None
        self.pid, self.other_pids = None, []
        self._instances = instances
        self._lab = lab
        self._folder = folder
        self._balancer = None
        self._open = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as opened:
            for each in self._instances:
                opened.enter_context(each)
            self.pid, *self.other_pids = [each.pid for each in self._instances]
            os.makedirs(self._folder, exist_ok=True)
            self._balancer = opened.enter_context(self._lab.balancer(
                [urlsplit(each.url).netloc for each in self._instances], self._folder))
            self._open = opened.pop_all()
        self.url = self._balancer.url
        return self

    def __exit__(self, *exception):
        self._open.close()

    def must_live(self):
        """Trouble if one of them has ended by itself."""
        for each in [self._balancer, *self._instances]:
            each.must_live()

    def end(self):
        """Ends them all. Returns the first exit status that is not 0, or 0."""
        self._balancer.end()
        return next(filter(None, [each.end() for each in self._instances]), 0)


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
        return machine.output_of(["git", "-C", machine.TOP, "rev-parse", "--verify",
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
            machine.output_of(["patch", "-s", "-p1", "-d", new, "-i", _change(revision)])
        os.rename(new, tree)
    machine.output_of(["make", "-s", "-C", tree, "DEPS=no", "all"], seconds=300)
