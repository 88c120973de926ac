"""portrait: what a server looks like from outside, led through four scenes; exactly, untimed.

Nothing in here knows the seven models: the same scenes for every server, and what was seen is
written down as it is. models.py says what each model should look like.

    portrait.py BINARY yes|no      prints it as JSON; whether the program knows --workers

    rest    one client has come and gone
    held    more clients than it has processes or threads, each in the middle of a request
    redis   three pages at once while Redis is frozen, and a file meanwhile; then the same again
    death   three clients held, and the process of one of them killed, if that is a child

Where nothing may be about to happen any more, it has settled: for a quarter of a second its
processes, threads, descriptors and connections have stayed the same, and at the end all of them
sleep. strace(1) writes down who accepts, connects and polls; the rest is in /proc.
"""

import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter, namedtuple
from dataclasses import asdict, dataclass
from typing import Optional
from urllib.parse import urlsplit

import cage
import places  # noqa: F401  (finds lib, diag, served and client)
import diag
from client import Client
from lib import Trouble, meter, processes, redis, servers
from outcome import Missed
from served import parse_trace

WORKERS = 4
LEAST_CLIENTS = 6  # more than that
MOST_CLIENTS = 130  # and than the hundred that 03 and 05 have by themselves
PAGES = 3
ANSWER_SECONDS = 20
MEANWHILE_SECONDS = 2  # a file that has not come by then waits for those before it
SETTLED_SECONDS = 0.25
PATIENCE_SECONDS = 10
REPLACED_SECONDS = 3
LOOK_SECONDS = 0.02

CALLS = "/^(accept|accept4|socket|connect|poll|ppoll)$"
BEGINS = b"GET %s HTTP/1.1\r\nHost: grade\r\n"
ENDS = b"Connection: close\r\n\r\n"


@dataclass
class Tasks:
    """Who is there: children of the first process, and its threads."""

    children: int
    threads: int
    zombies: int


@dataclass
class Held:
    """What so many clients in the middle of a request come to."""

    clients: int
    accepted: int
    served: int  # when they had said the rest of it
    tasks: Tasks
    same_tasks: bool  # as before they came, and as after they went
    in_first: int  # clients of whom the first process has a descriptor
    in_children: int
    in_both: int
    most_in_one: int  # clients a process
    nonblocking: int
    in_epoll: int  # whom an epoll instance of the process watches
    most_polled: int  # descriptors in one poll()


@dataclass
class Accepted:
    """By whom, of the clients who came."""

    first: int  # the thread that the program began as
    threads: int  # others of its process
    children: int


@dataclass
class Asked:
    """How Redis was reached for PAGES pages at once, twice."""

    opened: int  # connections, the first time
    again: int  # more of them, the second time
    most_by_one: int  # by one process or thread
    kept: int  # still there when all clients were gone
    served: int  # pages, of 2 * PAGES
    file_meanwhile: bool


@dataclass
class Death:
    """Of the child that served one of three clients."""

    others_served: int  # of the other two
    next_served: bool
    children: int  # when the rest was over, or as soon as there were as many as before


@dataclass
class Portrait:
    rest: Optional[Tasks] = None
    held: Optional[Held] = None
    after: Optional[Tasks] = None  # they went
    accepted: Optional[Accepted] = None
    redis: Optional[Asked] = None
    death: Optional[Death] = None  # None: no child serves
    trouble: str = ""  # why it is not finished


def paint(binary, redis_server, folder, has_workers, prefix=()):
    """The Portrait of a server. `prefix` is put before its command."""
    trace = os.path.join(folder, "trace")
    options = ["--timeout", "60", "--keep-alive", "60"]
    options += ["--workers", str(WORKERS)] if has_workers else []
    command = [*prefix, "strace", "-D", "-f", "-q", "-s", "0", "-e", "trace=" + CALLS, "-o", trace]
    portrait = Portrait()
    try:
        with servers.Server(binary, redis_server.where, None, os.path.join(folder, "printed"),
                            options, command) as server:
            Painter(server, redis_server, trace, portrait).paint()
    except (Trouble, Missed, OSError) as error:
        portrait.trouble = str(error)
    return portrait


# ---- a client ------------------------------------------------------------------------------


def status_of(client):
    """That of the next answer, when it is whole; None if there is none in time."""
    with contextlib.suppress(Missed, OSError):
        answer = client.hear()
        return answer and answer.status
    return None


# ---- what the kernel shows -----------------------------------------------------------------


def inodes(port):
    """{a client's port: the inode of the server's socket} of all accepted connections to a port."""
    return {each.client: each.inode for each in diag.connections(port) if each.inode
            and each.state != diag.LISTEN}


Descriptors = namedtuple("Descriptors", "sockets epolls")  # {inode: number}, [number]


def descriptors(pid):
    sockets, epolls = {}, []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/%d/fd" % pid):
            with contextlib.suppress(OSError):
                target = os.readlink("/proc/%d/fd/%s" % (pid, name))
                if target.startswith("socket:["):
                    sockets[int(target[len("socket:["):-1])] = int(name)
                elif target == "anon_inode:[eventpoll]":
                    epolls.append(int(name))
    return Descriptors(sockets, epolls)


def is_nonblocking(pid, number):
    found = re.search(r"^flags:\s+(\d+)", meter.read("/proc/%d/fdinfo/%d" % (pid, number)),
                      re.MULTILINE)
    return bool(found) and bool(int(found.group(1), 8) & os.O_NONBLOCK)


def watched(pid, epolls):
    """The descriptors that these epoll instances watch."""
    infos = (meter.read("/proc/%d/fdinfo/%d" % (pid, number)) for number in epolls)
    return {int(number) for info in infos for number in re.findall(r"^tfd:\s+(\d+)", info, re.M)}


def threads(pid):
    with contextlib.suppress(OSError):
        return {int(name) for name in os.listdir("/proc/%d/task" % pid)}
    return set()


def state(path):
    """Of a process or thread, in /proc: its letter; empty if it is gone."""
    return meter.read(path + "/stat").rpartition(") ")[2][:1]


def children(pid):
    """{pid: its state}. A tracer is none of them: it has left the family."""
    return {stat.pid: stat.state for stat in meter.everybody() if stat.parent == pid}


# ---- strace's record -----------------------------------------------------------------------

ADDRESS = re.compile(r"\bAF_(UNIX|INET6?)\b")
POLLED = re.compile(r"^\d+ +p?poll\(\[.*\], (\d+), ", re.MULTILINE)


def accepts(text):
    """{thread: how many}."""
    return Counter(call.pid for call in parse_trace(text)
                   if call.name in ("accept", "accept4") and not call.error)


def connects(text):
    """{thread: connections}. A second connect(2) on the same socket asks whether the first has
    succeeded, as connect(2) allows; it opens no other connection."""
    found, tried = Counter(), set()
    for call in parse_trace(text):
        if call.name == "socket":
            tried.discard((call.pid, str(call.result)))
        elif call.name == "connect" and ADDRESS.search(call.arguments):
            socket = call.pid, call.arguments.partition(",")[0]
            found[call.pid] += socket not in tried
            tried.add(socket)
    return found


def most_polled(text):
    return max(map(int, POLLED.findall(text)), default=0)


# ---- the scenes ----------------------------------------------------------------------------

Look = namedtuple("Look", "threads children")  # the ids of the first process', {pid: state}


class Painter:
    def __init__(self, server, redis_server, trace, portrait):
        self._server = server
        self._pid = server.pid
        self._port = urlsplit(server.url).port
        self._redis = redis_server
        self._trace = trace
        self._portrait = portrait
        self._threads = set()  # all that were seen

    def paint(self):
        with contextlib.ExitStack() as self._clients:
            rest = self._rest()
            self._hold(rest)
            self._ask_redis()
            self._kill(rest)

    # -- tools

    def _come(self, text):
        client = Client("127.0.0.1", self._port, ANSWER_SECONDS)
        self._clients.callback(client.close)
        client.say(text)
        return client

    def _record(self):
        return meter.read(self._trace)

    def _mark(self):
        """Where the record goes on. Its last line is only begun: who sleeps in accept4()."""
        return self._record().rfind("\n") + 1

    def _look(self):
        found = Look(threads(self._pid), children(self._pid))
        self._threads |= found.threads
        return found

    def _settle(self):
        """Waits until nothing is about to happen any more; the last Look."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        before, since = None, 0
        while True:
            look = self._look()
            now = (look.threads, set(look.children), self._connections(look))
            if now != before:
                before, since = now, time.monotonic()
            quiet = time.monotonic() - since >= SETTLED_SECONDS and self._all_sleep(look)
            if quiet or time.monotonic() > deadline:
                return look
            self._server.must_live()
            time.sleep(LOOK_SECONDS)

    def _connections(self, look):
        pids = [self._pid, *sorted(look.children)]
        return frozenset(inodes(self._port)), [len(descriptors(pid).sockets) for pid in pids]

    def _all_sleep(self, look):
        states = {state("/proc/%d/task/%d" % (self._pid, thread)) for thread in look.threads}
        return not (states | set(look.children.values())) & set("RDtT")

    def _tasks(self, look):
        zombies = list(look.children.values()).count("Z")
        return Tasks(len(look.children) - zombies, len(look.threads), zombies)

    # -- rest

    def _rest(self):
        self._must_serve(b"/")
        look = self._settle()
        self._portrait.rest = self._tasks(look)
        return look

    def _must_serve(self, path):
        status = status_of(self._come(BEGINS % path + ENDS))
        if status != 200:
            raise Trouble("GET %s was answered with %s" % (path.decode(), status or "nothing"))

    # -- held

    def _hold(self, rest):
        tasks = self._portrait.rest
        number = min(MOST_CLIENTS, max(LEAST_CLIENTS, tasks.children + tasks.threads + 1))
        record = self._mark()
        clients = [self._come(BEGINS % b"/") for _ in range(number)]
        look = self._settle()
        held = self._who_has(clients, look)
        held.most_polled = most_polled(self._record()[record:])
        held.tasks = self._tasks(look)
        for client in clients:
            client.say(ENDS)
        held.served = [*map(status_of, clients)].count(200)
        self._portrait.accepted = self._by_whom(self._record()[record:])
        after = self._settle()
        self._portrait.after = self._tasks(after)
        held.same_tasks = all(each.threads == rest.threads and set(each.children) ==
                              set(rest.children) for each in (look, after))
        self._portrait.held = held

    def _who_has(self, clients, look):
        known = inodes(self._port)
        ours = {known[client.port()] for client in clients if client.port() in known}
        has = {pid: descriptors(pid) for pid in [self._pid, *look.children]}
        mine = {pid: {inode: number for inode, number in each.sockets.items() if inode in ours}
                for pid, each in has.items()}
        first = set(mine.pop(self._pid))
        others = set().union(*mine.values())
        mine[self._pid] = {inode: has[self._pid].sockets[inode] for inode in first - others}
        return Held(
            clients=len(clients), accepted=len(ours), served=0, tasks=None, same_tasks=False,
            in_first=len(first), in_children=len(others), in_both=len(first & others),
            most_in_one=max(map(len, mine.values())),
            nonblocking=sum(is_nonblocking(pid, number) for pid, each in mine.items()
                            for number in each.values()),
            in_epoll=sum(len(set(each.values()) & watched(pid, has[pid].epolls))
                         for pid, each in mine.items()),
            most_polled=0)

    def _by_whom(self, record):
        """Threads and children apart: who was never seen in the first process is a child's."""
        found = accepts(record)
        first = found.pop(self._pid, 0)
        others = sum(count for thread, count in found.items() if thread in self._threads)
        return Accepted(first, others, sum(found.values()) - others)

    # -- redis

    def _ask_redis(self):
        record = self._mark()
        served, meanwhile = self._ask_frozen_redis()
        self._settle()
        first = connects(self._record()[record:])
        served_again, _ = self._ask_frozen_redis()
        self._settle()
        both = connects(self._record()[record:])
        self._portrait.redis = Asked(
            opened=sum(first.values()), again=sum((both - first).values()),
            most_by_one=max(both.values(), default=0), kept=self._redis_clients(),
            served=served + served_again, file_meanwhile=meanwhile)

    def _ask_frozen_redis(self):
        """Pages that were served, and whether a file was meanwhile."""
        with self._frozen():
            pages = [self._come(BEGINS % b"/guestbook" + ENDS) for _ in range(PAGES)]
            self._settle()
            file = self._come(BEGINS % b"/" + ENDS)
            file.seconds = MEANWHILE_SECONDS
            meanwhile = status_of(file) == 200
        return [*map(status_of, pages)].count(200), meanwhile

    @contextlib.contextmanager
    def _frozen(self):
        pid = int(re.search(r"process_id:(\d+)", self._redis.ask("INFO", "server")).group(1))
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def _redis_clients(self):
        """Connections to Redis, without the one that asks."""
        return len(self._redis.ask("CLIENT", "LIST").splitlines()) - 1

    # -- death

    def _kill(self, rest):
        clients = [self._come(BEGINS % b"/") for _ in range(PAGES)]
        look = self._settle()
        known = inodes(self._port)
        owners = {pid: set(descriptors(pid).sockets) for pid in look.children}
        victim = next((pid for pid, sockets in owners.items()
                       if known.get(clients[0].port()) in sockets), None)
        if victim is None:
            return
        os.kill(victim, signal.SIGKILL)
        for client in clients[1:]:
            client.say(ENDS)
        served = [*map(status_of, clients[1:])].count(200)
        try:
            self._must_serve(b"/")
            next_served = True
        except (Trouble, Missed, OSError):
            next_served = False
        self._portrait.death = Death(served, next_served, self._await_children(len(rest.children)))

    def _await_children(self, count):
        """How many live, at the latest after the time in which one should have been replaced."""
        deadline = time.monotonic() + REPLACED_SECONDS
        while True:
            living = [pid for pid, letter in children(self._pid).items() if letter != "Z"]
            if len(living) == count or time.monotonic() > deadline:
                return len(living)
            time.sleep(LOOK_SECONDS)


# ---- of a program --------------------------------------------------------------------------


def of_program(binary, has_workers, prefix=()):
    """The Portrait of a server, with a Redis of its own."""
    with tempfile.TemporaryDirectory(prefix="portrait-", dir=os.environ.get("FOLDERS")) as folder:
        return paint(binary, redis.start_private(folder, None), folder, has_workers, prefix)


def to_dict(portrait):
    return asdict(portrait)


PARTS = {"rest": Tasks, "after": Tasks, "accepted": Accepted, "redis": Asked, "death": Death}


def from_dict(known):
    """A Portrait that was written down."""
    portrait = Portrait(trouble=known["trouble"])
    for name, kind in PARTS.items():
        if known[name]:
            setattr(portrait, name, kind(**known[name]))
    if known["held"]:
        portrait.held = Held(**dict(known["held"], tasks=Tasks(**known["held"]["tasks"])))
    return portrait


def main(binary, workers):
    """Prints the portrait as JSON; `workers`: yes or no."""
    try:
        with processes.tidied():
            print(json.dumps(to_dict(of_program(binary, workers == "yes", cage.LIMITS))))
    except Trouble as trouble:
        sys.exit(str(trouble))


if __name__ == "__main__":
    main(*sys.argv[1:])
