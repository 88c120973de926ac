"""lanes: what each process and thread of a server waited for, from its system calls.

    watched = lanes.build(calls, ends, redis)   -> Watched(lanes, clients)
    watched.between(begin, end)                 -> the same, of that time

Descriptors are followed, not asked for: what accept() returned is a client, what was connected to
the address of Redis is Redis, and a child of fork() begins with all that its parent has. So a recv()
is known to wait for a client's bytes, and a read() for Redis.

Between two calls a thread is running, or ready and waiting for a core. The record cannot tell
which.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from calls import Call

# What may wait, what makes a process or thread, and what makes or ends a descriptor. A pattern,
# since not every architecture has every call: on arm64 there are only ppoll and epoll_pwait. What
# works and does not wait, like madvise() of Go and Java, is left out: there a thread is running.
TRACED = ("accept4?|connect|recv(from|msg|mmsg)?|send(to|msg|mmsg|file|file64)?|readv?|writev?"
          "|p?poll|_?(new)?select|pselect6|epoll_(create1?|ctl|p?wait2?)|v?fork|clone3?"
          "|exit(_group)?|futex|wait4|waitid|rt_sig(timedwait|suspend)|pause|flock|semop"
          "|(clock_)?nanosleep|sched_yield|ioctl"
          "|io_uring_enter|close|dup[23]?|fcntl|socket(pair)?|pipe2?|listen|signalfd4?|eventfd2?")

# What a call may wait for. Only the picture knows a colour.
ARRIVAL, BYTES, ROOM, REDIS = "arrival", "bytes", "room", "redis"
SEVERAL, OTHERS, NAP, UNKNOWN = "several", "others", "nap", "unknown"
WORDS = {ARRIVAL: "idle: waits for a client to connect", REDIS: "waits for Redis",
         SEVERAL: "waits for all its clients in one call", OTHERS: "waits for a process or thread",
         BYTES: "waits for a client\u2019s bytes", ROOM: "sends, or waits for room",
         NAP: "sleeps for a time, or lets others run", UNKNOWN: "in a call of another kind"}

ACCEPTS = ("accept", "accept4")
MAKES = ("clone", "clone3", "fork", "vfork")
WAITS_FOR_OTHERS = ("futex", "wait4", "waitid", "rt_sigtimedwait", "rt_sigsuspend", "pause",
                    "flock", "semop")
NAPS = ("nanosleep", "clock_nanosleep", "sched_yield")  # of Go's runtime, for example
NEVER_WAIT = re.compile("|".join(MAKES) + "|exit.*|close|dup.|dup|fcntl|listen|pipe.?|socket(pair)?"
                        "|(signal|event)fd.?|epoll_c.*|madvise|ioctl")
# A call that may wait, asked not to. The last one is a time limit, of poll() and epoll_wait().
AT_ONCE = re.compile(r"WNOHANG|MSG_DONTWAIT|FUTEX_WAKE|_REQUEUE|tv_sec=0, tv_n?u?sec=0}"
                     r"|\], \d+, 0(, NULL.*)?$")
POLLS = re.compile(r"p?poll|p?select6?|_?(new)?select|epoll_p?wait2?")
POLLED = re.compile(r"\bfd=(\d+), events|\[(\d+(?: \d+)*)\]")  # poll()'s; those of select()
IDLE = {ARRIVAL, REDIS, OTHERS}  # what an event loop without clients waits for
CLIENT = re.compile(r"Host: client-([A-Z])")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


class Thing:
    """What a descriptor stands for; a copy of the descriptor stands for the same."""

    def __init__(self, kind=UNKNOWN, at_once=False):
        self.kind = kind  # of waiting for it
        self.at_once = at_once  # it was made non-blocking
        self.watched = {}  # by an epoll instance: {descriptor: Thing}

    def __str__(self):
        return {ARRIVAL: "the listener", REDIS: "Redis", OTHERS: "signals"}.get(self.kind, "?")


class Client(Thing):
    """Whoever is at the other end of an accepted connection."""

    def __init__(self, accepted, at_once):
        super().__init__(BYTES, at_once)
        self.accepted = accepted  # when
        self.heard = ""
        self.name = None  # A, B ..., as it says itself in its Host field

    def hear(self, arguments):
        self.heard += "".join(TEXT.findall(arguments))
        found = CLIENT.search(self.heard)
        self.name = found.group(1) if found else None

    def __str__(self):
        return "client %s" % (self.name or "?")


class Bar(NamedTuple):
    start: float
    end: "float | None"  # None: the record ends before it
    kind: "str | None"  # None: it does not wait
    awaits: tuple[Thing, ...]
    serves: tuple[Client, ...]  # its thread, meanwhile: whom it read from, and nobody has closed
    call: Call
    thing: Thing  # that the call is about: its first argument, if that is a descriptor


@dataclass
class Lane:
    """A process or a thread."""

    tid: int
    pid: int
    born: float
    name: str = ""  # "process", "child 1", "thread 2"
    died: "float | None" = None
    bars: list[Bar] = field(default_factory=list)


class Watched(NamedTuple):
    lanes: list[Lane]  # the first one began as the server
    clients: list[Client]

    @property
    def asks_redis(self):
        return any(REDIS in {bar.kind, bar.thing.kind, *(each.kind for each in bar.awaits)}
                   for lane in self.lanes for bar in lane.bars)

    def between(self, begin, end):
        """Those lanes that were there at some time between, cut to it, and named in their order."""
        clients = [each for each in self.clients if begin <= each.accepted <= end]
        cut = [replace(lane, born=max(lane.born, begin), died=lane.died and min(lane.died, end),
                       bars=[bar._replace(start=max(bar.start, begin), end=min(bar.end or end, end),
                                          serves=tuple(each for each in bar.serves if each in clients))
                             for bar in lane.bars
                             if bar.start <= end and (bar.end or end) >= begin])
               for lane in self.lanes
               if lane.born <= end and (lane.died is None or lane.died >= begin)]
        give_names(cut)
        return Watched(cut, clients)


def give_names(lanes):
    """A child is numbered among the children, a thread among the threads of its process."""
    children = list(dict.fromkeys(lane.pid for lane in lanes if lane.pid != lanes[0].pid))
    first = "parent" if children else "main thread" if lanes[1:] else "process"
    threads = Counter()
    for lane in lanes:
        names = ["child %d" % (1 + children.index(lane.pid))] if lane.pid in children else []
        if lane.tid != lane.pid:
            threads[lane.pid] += 1
            names.append("thread %d" % threads[lane.pid])
        lane.name = ", ".join(names) or first


def build(calls, ends, redis, root=None):
    """Watched. `redis`: where it is, as unix:PATH or host:port. `root`: the server's first process,
    if another one has started it."""
    builder = _Builder(redis)
    moments = [(call.start, 1, builder.begin, call) for call in calls]
    moments += [(call.end, 0, builder.finish, call) for call in calls if call.end]
    for _, _, happens, call in sorted(moments, key=lambda moment: moment[:2]):
        happens(call)
    for tid, end in ends.items():
        if tid in builder.lanes:
            builder.lanes[tid].died = end.time
    lanes = sorted((lane for lane in builder.lanes.values() if builder.is_below(root, lane.pid)),
                   key=lambda lane: lane.born)
    give_names(lanes)
    return Watched(lanes, builder.clients)


class _Builder:
    """Goes through the calls. What a call waits for is decided when it begins; what it changes is
    changed when it returns. A child gets its descriptors when its parent calls fork(): the child's
    first call may come before that returns, and so may the parent's next."""

    def __init__(self, redis):
        kind, _, rest = redis.partition(":")
        self._redis = 'sun_path="%s"' % rest if kind == "unix" else "htons(%s)" % rest
        self.lanes = {}
        self.clients = []
        self._parents = {}  # of a process
        self._things = {}  # of a thread: {descriptor: Thing}, shared by the threads of a process
        self._sent = []  # Things whose descriptors are on their way to another process: unix(7), SCM_RIGHTS
        self._serves = defaultdict(set)  # by a thread: Clients that its process has not closed yet

    def is_below(self, root, pid):
        """Is the process `root`, or did it come from it? All did, if there is no root."""
        while root and pid not in (root, None):
            pid = self._parents.get(pid)
        return pid == root or not root

    def begin(self, call):
        tid = call.tid
        lane = self.lanes.setdefault(tid, Lane(tid, tid, call.start))
        things = self._things.setdefault(tid, {})
        if call.name in MAKES and call.result and call.result > 0:
            pid = lane.pid if "CLONE_THREAD" in call.arguments else call.result
            self.lanes[call.result] = Lane(call.result, pid, call.start)
            if pid != lane.pid:
                self._parents[pid] = lane.pid
            self._things[call.result] = things if "CLONE_FILES" in call.arguments else dict(things)
        thing = things.setdefault(first_number(call), Thing())
        if call.name == "connect" and self._redis in call.arguments:
            thing.kind = REDIS
        if call.name == "sendmsg":
            self._sent += [things.setdefault(each, Thing()) for each in passed(call)]
        if isinstance(thing, Client) and call.name != "close":
            self._serves[tid].add(thing)
        serves = tuple(self._serves[tid])
        kind, awaits = what_for(call, thing, things)
        if kind == SEVERAL and not serves and {each.kind for each in awaits} <= IDLE:
            kind = ARRIVAL
        lane.bars.append(Bar(call.start, call.end, kind, awaits, serves, call, thing))

    def finish(self, call):
        things = self._things[call.tid]
        number, name = first_number(call), call.name
        thing = things.setdefault(number, Thing())
        if name == "close":
            closed = things.pop(number)
            for tid, of_its_process in self._things.items():
                if of_its_process is things:  # another thread may have read from it
                    self._serves[tid].discard(closed)
            for each in things.values():
                each.watched.pop(number, None)
        elif call.error or call.result is None:
            return
        elif name in ACCEPTS:
            thing.kind = ARRIVAL
            things[call.result] = Client(call.end, "SOCK_NONBLOCK" in call.arguments)
            self.clients.append(things[call.result])
        elif name == "listen":
            thing.kind = ARRIVAL
        elif isinstance(thing, Client) and name.startswith(("recv", "read")):
            thing.hear(call.arguments)
        elif name == "recvmsg":
            things.update((each, self._sent.pop(0)) for each in passed(call) if self._sent)
        elif name == "fcntl" and "F_SETFL" in call.arguments:
            thing.at_once = "O_NONBLOCK" in call.arguments
        elif name == "ioctl" and "FIONBIO" in call.arguments:
            thing.at_once = "[0]" not in call.arguments
        elif name.startswith("dup") or "F_DUPFD" in call.arguments:
            things[call.result] = thing
        elif name in ("socket", "epoll_create", "epoll_create1"):
            things[call.result] = Thing(at_once="SOCK_NONBLOCK" in call.arguments)
        elif name.startswith(("signalfd", "eventfd")):
            things[call.result] = Thing(OTHERS)
        elif name.startswith(("pipe", "socketpair")):
            for each in re.findall(r"\d+", call.arguments.rpartition("[")[2].partition("]")[0]):
                things[int(each)] = Thing(OTHERS)
        elif name == "epoll_ctl":
            watch(thing.watched, call.arguments, things)


def first_number(call):
    found = re.match(r"\d+", call.arguments)
    return int(found.group()) if found else None


def passed(call):
    """The descriptors that a message carries."""
    return map(int, re.findall(r"\d+", "".join(re.findall(r"SCM_RIGHTS, cmsg_data=\[([\d, ]*)\]", call.arguments))))


def watch(watched, arguments, things):
    """epoll_ctl()"""
    what, number = re.match(r"\d+, EPOLL_CTL_(\w+), (\d+)", arguments).groups()
    watched.pop(int(number), None)
    if what != "DEL":
        watched[int(number)] = things.setdefault(int(number), Thing())


def what_for(call, thing, things):
    """Its kind, and all that it waits for."""
    name = call.name
    if NEVER_WAIT.fullmatch(name) or AT_ONCE.search(call.arguments):
        return None, ()
    if name in WAITS_FOR_OTHERS:
        return OTHERS, ()
    if name in NAPS:
        return NAP, ()
    if POLLS.fullmatch(name):
        numbers = " ".join(map(" ".join, POLLED.findall(call.arguments))).split()
        awaits = tuple(thing.watched.values()) if name.startswith("epoll") else tuple(
            things.setdefault(int(number), Thing()) for number in numbers)
        kinds = {each.kind for each in awaits} - {OTHERS}  # the word that the server shall stop
        if not kinds and (awaits or not name.startswith("epoll")):
            return OTHERS if awaits else NAP, awaits
        return kinds.pop() if len(kinds) == 1 else SEVERAL, awaits
    if thing.at_once:
        return None, ()
    if name in ACCEPTS:
        return ARRIVAL, ()
    if isinstance(thing, Client) and name.startswith(("send", "write")):
        return ROOM, (thing,)
    return thing.kind, (thing,) if isinstance(thing, Client) else ()


def awaited(bar):
    """In words: what a bar waits for."""
    if bar.kind is None:
        return "does not wait"
    words = WORDS[bar.kind]
    if POLLS.fullmatch(bar.call.name):
        return "%s: %s" % (words, ", ".join(sorted(map(str, bar.awaits), key=str.lower)))
    return "%s (%s)" % (words, bar.serves[0]) if len(bar.serves) == 1 else words
