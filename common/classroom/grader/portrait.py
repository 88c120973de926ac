"""portrait: what a server looks like from outside, in four scenes. All of it is counted, not timed.

    rest    one client has come and gone
    held    more clients than it has processes or threads, each in the middle of a request
    redis   three pages at once while Redis is frozen, and a file meanwhile; then the same again.
            Who has read the requests, and who asks Redis?
    death   three clients are held, and the process of one of them is killed, if that is a child
    honest  whether it was one program, which stayed in its family and asked Redis alone

Nothing in here knows the seven models: every server goes through the same scenes, and models.py
says what each model should look like. A scene goes on when the server has settled: for a quarter of
a second its processes, threads, descriptors and connections have stayed the same, and all of them
sleep. strace(1) writes down which thread accepts, connects and polls; the rest is in /proc.

Options, names, numbers and the order of two scenes come from SEED, so that a program cannot know the
scenes by them.
"""

import contextlib
import os
import random
import re
import signal
import time
from collections import Counter, namedtuple
from types import SimpleNamespace as Seen

import cage
import places  # noqa: F401  (finds lib, diag, served and client)
import diag
from client import Client
from lib import Trouble
from lib.measuring import meter
from outcome import Missed
from served import Server, Traced, parse_trace

PAGES = 3
WORKERS = PAGES + 1, 6  # one is free for a file while pages wait for Redis
WAIT_SECONDS = 45, 90  # of its time limits: no scene takes so long
LEAST_CLIENTS = 6
MOST_CLIENTS = 130  # more than the hundred workers that 03 and 05 have by themselves
MORE_CLIENTS = 4
ANSWER_SECONDS = 20
MEANWHILE_SECONDS = 2  # a file that has not come by then waits for the pages before it
SETTLED_SECONDS = 0.25
PATIENCE_SECONDS = 10
REPLACED_SECONDS = 3
LOOK_SECONDS = 0.02

READS = {"read", "readv", "recvfrom", "recvmsg"}
WRITES = {"write", "writev", "sendto", "sendmsg"}
CALLS = ",".join(["accept,accept4,socket,connect,execve,execveat,poll,ppoll,epoll_wait,epoll_pwait,epoll_pwait2",
                  *sorted(READS | WRITES)])
BEGINS = b"GET %s HTTP/1.1\r\nHost: localhost\r\n"
ENDS = b"Connection: close\r\n\r\n"
LEAST_READ = len(BEGINS % b"/")  # bytes of a client: who reads fewer has only looked
COMMAND = "guestbook:"  # is in each that a page sends to Redis


# ---- what the kernel shows -----------------------------------------------------------------


def inodes(port):
    """{a client's port: the inode of the server's socket} of all accepted connections to a port."""
    return {each.client: each.inode for each in diag.connections(port) if each.inode
            and each.state != diag.LISTEN}


def descriptors(pid):
    """{descriptor: what it stands for, as "socket:[4711]"}."""
    found = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/%d/fd" % pid):
            with contextlib.suppress(OSError):
                found[int(name)] = os.readlink("/proc/%d/fd/%s" % (pid, name))
    return found


def program_of(pid):
    """The path of the file that a process executes; "" if it has gone."""
    with contextlib.suppress(OSError):
        return os.readlink("/proc/%d/exe" % pid)
    return ""


def is_nonblocking(pid, descriptor):
    found = re.search(r"^flags:\s+(\d+)", fdinfo(pid, descriptor), re.MULTILINE)
    return bool(found) and bool(int(found.group(1), 8) & os.O_NONBLOCK)


def watched(pid):
    """The descriptors that the epoll instances of a process watch."""
    infos = [fdinfo(pid, descriptor) for descriptor, target in descriptors(pid).items()
             if target == "anon_inode:[eventpoll]"]
    return {int(number) for info in infos for number in re.findall(r"^tfd:\s+(\d+)", info, re.M)}


def fdinfo(pid, descriptor):
    return meter.read("/proc/%d/fdinfo/%d" % (pid, descriptor))


# ---- strace's record -----------------------------------------------------------------------

ADDRESS = re.compile(r"\bAF_(UNIX|INET6?)\b")
POLLED = re.compile(r"^\d+ +p?poll\(\[.*\], (\d+), ", re.MULTILINE)
UNFINISHED = re.compile(r"\d+ +(\w+)\((?:\[.*\], (\d+), )?")


def accepts(text):
    """{thread: how many}."""
    return Counter(call.pid for call in parse_trace(text)
                   if call.name in ("accept", "accept4") and not call.error)


def workers(text, begin, redis_path, process_of):
    """(the threads that have read LEAST_READ bytes from a descriptor which an accept gave, those that
    have written a COMMAND to Redis), from `begin` on. A look at what has come (MSG_PEEK) reads nothing.
    process_of(thread): the process that has its descriptors; what that did not open itself, it has from
    the first one."""
    kinds, read, askers = {}, Counter(), set()
    before, calls = len(list(parse_trace(text[:begin]))), list(parse_trace(text))
    first = process_of(calls[0].pid) if calls else None
    for number, call in enumerate(calls):
        process, descriptor = process_of(call.pid), call.arguments.partition(",")[0]
        kind = kinds.get((process, descriptor)) or kinds.get((first, descriptor))
        done = number >= before and (call.result or 0) > 0
        if call.name in ("accept", "accept4", "socket") and not call.error:
            kinds[process, str(call.result)] = call.name[:6]
        elif call.name == "connect" and '"%s"' % redis_path in call.arguments:
            kinds[process, descriptor] = "redis"
        elif call.name in READS and done and kind == "accept" and "MSG_PEEK" not in call.arguments:
            read[call.pid, descriptor] += call.result
        elif call.name in WRITES and done and kind == "redis" and COMMAND in call.arguments:
            askers.add(call.pid)
    return {thread for (thread, _), bytes in read.items() if bytes >= LEAST_READ}, askers


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


OTHERS = re.compile(r'sun_path="(/dev/log|(/var)?/run/nscd/socket)"')  # the C library asks them


SENT = re.compile(r'"(?:[^"\\]|\\.)*"')  # bytes, which may look like an address


def elsewhere(text, redis_path):
    """To whom a server connected or sent something that is not Redis, each once: sendto(2) may
    connect, too (MSG_FASTOPEN)."""
    addresses = {call.arguments if call.name == "connect" else SENT.sub('""', call.arguments)
                 for call in parse_trace(text) if call.name in ("connect", "sendto", "sendmsg")}
    return sorted({address.partition(", ")[2] for address in addresses if ADDRESS.search(address)
                   and '"%s"' % redis_path not in address and not OTHERS.search(address)})


def executed(text, program):
    """What was executed after the program itself, each once."""
    paths = [call.arguments.split('"')[1] for call in parse_trace(text)
             if call.name in ("execve", "execveat") and not call.error]
    return sorted(set(paths[paths.index(program) + 1 if program in paths else 0:]))


def most_polled(text):
    return max(map(int, POLLED.findall(text)), default=0)


def sleeps_in(text):
    """The call whose line has no end yet, and how many descriptors it has, if that is a poll()."""
    found = UNFINISHED.match(text.rpartition("\n")[2])
    return (found[1], int(found[2] or 0)) if found else ("another call", 0)


# ---- the scenes ----------------------------------------------------------------------------

Look = namedtuple("Look", "threads children asleep")  # ids of the first process', {pid: state}


def tasks(look):
    """Children of the first process, and its threads."""
    zombies = list(look.children.values()).count("Z")
    return Seen(children=len(look.children) - zombies, threads=len(look.threads), zombies=zombies)


def changed(look, rest):
    """Processes and threads that are there in one of them only."""
    return len(look.threads ^ rest.threads) + len(look.children.keys() ^ rest.children.keys())


class Painter:
    """Leads a server through the scenes, and fills the portrait."""

    def __init__(self, server, program, redis_server, trace, portrait, chance, before):
        self._server = server
        self._program = program  # the file that the server was started from
        self._before = before  # pids of what has nothing to do with it
        self._redis = redis_server
        self._trace = trace
        self._portrait = portrait
        self._chance = chance
        self._threads = set()  # all that the first process had so far
        self._programs = set()  # that were seen in its family
        self._left = set()  # programs of processes that have come from it, and left its family
        self._redis_pid = int(re.search(r"process_id:(\d+)", redis_server.ask("INFO", "server"))
                              .group(1))
        self._redis_path = redis_server.where.partition(":")[2]

    def paint(self):
        with contextlib.ExitStack() as self._clients:
            rest = self._rest()
            scenes = [lambda: self._hold(rest), self._ask_redis]
            self._chance.shuffle(scenes)
            for scene in scenes:
                time.sleep(self._chance.uniform(0, SETTLED_SECONDS))
                scene()
            self._kill(len(rest.children))
            self._portrait.honest = Seen(
                programs=sorted(self._programs - {""}), left=sorted(self._left),
                elsewhere=elsewhere(self._record(), self._redis_path),
                executed=executed(self._record(), self._program))

    # -- tools

    def _come(self, text):
        client = Client("127.0.0.1", self._server.port, ANSWER_SECONDS)
        self._clients.callback(client.close)
        client.say(text)
        return client

    def _record(self):
        return meter.read(self._trace)

    def _mark(self):
        """Where the record goes on. Its last line may be half a call: a thread sleeps in it."""
        return self._record().rfind("\n") + 1

    def _note_who_left(self):
        """Its orphans become our children (see cage), like strace, and Redis from before."""
        stats = cage.descendants()
        status = meter.read("/proc/%d/status" % self._server.pid)
        tracer = re.findall(r"^TracerPid:\s+(\d+)", status, re.MULTILINE)
        family = meter.below({self._server.pid}, stats)
        self._programs |= {program_of(pid) for pid in family}
        known = self._before | family | meter.below({*map(int, tracer)}, stats)
        self._left |= {program_of(stat.pid) for stat in stats
                       if stat.pid not in known and stat.state != "Z"}

    def _look(self):
        self._note_who_left()
        threads = self._server.thread_states()
        children = {stat.pid: stat.state for stat in self._server.child_stats()}
        self._threads |= threads.keys()
        awake = {*threads.values(), *children.values()} & set("RDtT")
        return Look(set(threads), children, not awake)

    def _settle(self):
        """Waits until nothing changes any more. Returns the last Look."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        before, since = None, 0
        while True:
            self._server.must_live()
            look = self._look()
            pids = [self._server.pid, *look.children]
            now = (look.threads, set(pids), inodes(self._server.port),
                   [len(descriptors(pid)) for pid in pids])
            if now != before:
                before, since = now, time.monotonic()
            quiet = time.monotonic() - since >= SETTLED_SECONDS and look.asleep
            if quiet or time.monotonic() > deadline:
                return look
            time.sleep(LOOK_SECONDS)

    # -- rest

    def _rest(self):
        self._must_serve()
        self._portrait.has_status = status_of(self._come(BEGINS % b"/status.json" + ENDS)) == 200
        look = self._settle()
        self._portrait.rest = tasks(look)
        return look

    def _must_serve(self):
        status = status_of(self._come(BEGINS % b"/" + ENDS))
        if status != 200:
            raise Trouble("GET / was answered with %s" % (status or "nothing"))

    # -- held

    def _hold(self, rest):
        workers = len(rest.children) + len(rest.threads)
        number = min(MOST_CLIENTS, max(LEAST_CLIENTS, workers + 1) +
                     self._chance.randrange(MORE_CLIENTS))
        record = self._mark()
        clients = [self._come(BEGINS % b"/") for _ in range(number)]
        look = self._settle()
        held = self._held(clients, look)
        held.tasks = tasks(look)
        held.most_polled = most_polled(self._record()[record:])  # descriptors in one poll()
        held.sleeps, held.polled = sleeps_in(self._record())
        held.readers = len(self._workers(record)[0])
        for client in clients:
            client.say(ENDS)
        held.served = count_served(clients)
        self._portrait.accepted = self._accepted(self._record()[record:])
        after = self._settle()
        held.changed = changed(look, rest) + changed(after, rest)
        self._portrait.after = tasks(after)
        self._portrait.held = held

    def _held(self, clients, look):
        """What descriptors tell of held clients."""
        known = inodes(self._server.port)
        ours = {"socket:[%d]" % known[client.port()] for client in clients
                if client.port() in known}
        has = {pid: {descriptor: target for descriptor, target in descriptors(pid).items()
                     if target in ours} for pid in [self._server.pid, *look.children]}
        in_first = set(has[self._server.pid].values())
        in_children = set().union(*(each.values() for pid, each in has.items()
                                    if pid != self._server.pid))
        has[self._server.pid] = {descriptor: target for descriptor, target  # but for mere copies
                                 in has[self._server.pid].items() if target not in in_children}
        return Seen(
            clients=len(clients), accepted=len(ours), in_first=len(in_first),
            in_children=len(in_children), in_both=len(in_first & in_children),
            most_in_one=max(map(len, has.values())),
            nonblocking=sum(is_nonblocking(pid, descriptor) for pid, each in has.items()
                            for descriptor in each),
            in_epoll=sum(len(each.keys() & watched(pid)) for pid, each in has.items()))

    def _accepted(self, record):
        """Which threads accepted: the one that the program began as, others of its process, or a
        child's, which was never seen in the first process."""
        found = accepts(record)
        threads = len(found)
        first = found.pop(self._server.pid, 0)
        others = sum(count for thread, count in found.items() if thread in self._threads)
        return Seen(first=first, threads=others, children=sum(found.values()) - others,
                    by=threads)

    def _workers(self, begin):
        return workers(self._record(), begin, self._redis_path, lambda thread:
                       self._server.pid if thread in self._threads else thread)

    # -- redis

    def _ask_redis(self):
        record = self._mark()
        files, (readers, askers) = self._ask_frozen_redis()
        first = connects(self._record()[record:])
        self._ask_frozen_redis()
        both = connects(self._record()[record:])
        self._portrait.redis = Seen(
            opened=sum(first.values()), again=sum((both - first).values()),  # connections
            most_by_one=max(both.values(), default=0),  # process or thread
            kept=len(self._redis.ask("CLIENT", "LIST").splitlines()) - 1,  # one is ours
            files=files, askers=len(askers), strangers=len(askers - readers))

    def _ask_frozen_redis(self):
        """How many files were served meanwhile, of one; and who read the requests before, and asked."""
        record = self._mark()
        os.kill(self._redis_pid, signal.SIGSTOP)
        try:
            pages = [self._come(BEGINS % b"/guestbook" + ENDS) for _ in range(PAGES)]
            self._settle()
            file = self._come(BEGINS % b"/" + ENDS)
            file.seconds = MEANWHILE_SECONDS
            files = count_served([file])
        finally:
            os.kill(self._redis_pid, signal.SIGCONT)
        count_served(pages)  # waits for them
        self._settle()
        return files, self._workers(record)

    # -- death

    def _kill(self, children):
        clients = [self._come(BEGINS % b"/") for _ in range(PAGES)]
        look = self._settle()
        socket = "socket:[%s]" % inodes(self._server.port).get(clients[0].port())
        victim = next((pid for pid in look.children if socket in descriptors(pid).values()), None)
        self._portrait.death = death = Seen(killed=int(victim is not None), others_served=0,
                                            next_served=0, children=0)
        if victim is None:
            return
        os.kill(victim, signal.SIGKILL)
        for client in clients[1:]:
            client.say(ENDS)
        death.others_served = count_served(clients[1:])
        with contextlib.suppress(Trouble, Missed, OSError):
            self._must_serve()
            death.next_served = 1
        deadline = time.monotonic() + REPLACED_SECONDS
        while True:
            death.children = len(self._server.children())
            if death.children == children or time.monotonic() > deadline:
                return
            time.sleep(LOOK_SECONDS)


def count_served(clients):
    return [*map(status_of, clients)].count(200)


def status_of(client):
    """That of the next answer, when it is whole; None if there is none in time."""
    with contextlib.suppress(Missed, OSError):
        answer = client.hear()
        return answer and answer.status
    return None


# ---- of a program --------------------------------------------------------------------------


def some_options(chance, has_workers):
    pairs = [("--timeout", WAIT_SECONDS), ("--keep-alive", WAIT_SECONDS)]
    pairs += [("--workers", WORKERS)] if has_workers else []
    chance.shuffle(pairs)
    return [word for name, limits in pairs for word in (name, str(chance.randint(*limits)))]


def paint(binary, store, folder, has_workers):
    """What was seen of a server: numbers, by scene. `trouble` says why a scene is missing."""
    chance = random.Random(int(os.environ.pop("SEED")))
    cage.adopt_orphans()
    options = some_options(chance, has_workers == "yes")
    before = {stat.pid for stat in cage.descendants()}
    traced = Traced(CALLS, os.path.join(folder, "trace"))
    portrait = Seen(name="", trouble="")
    try:
        with Server(binary, store.where, os.path.join(folder, "server"), options,
                    [*cage.LIMITS, *traced]) as server:
            portrait.name = server.printed().partition(":")[0]
            Painter(server, os.environ.get("PROGRAM", binary), store, traced.trace, portrait, chance,
                    before).paint()
    except (Trouble, Missed, OSError) as error:
        portrait.trouble = str(error)
    return portrait
