"""meter: what a load cost, and which cores were busy, between two moments.

The figures are the kernel's own, from /proc. They need neither root nor a cgroup. proc(5) explains
each. To trust them one must know:

- A server is everything that has come from one process: its descendants, and the processes of its
  session whose parents are gone. processes.start() makes each server lead a session of its own.
- CPU time: /proc counts in hundredths of a second, which is too coarse for many workers. But each
  process has a clock (clock_getcpuclockid(3)) that counts nanoseconds, its ended threads included.
  The time of children that have ended and were waited for is in their parent's account, exactly, rounded
  once. So the sum is right within 10 ms for each process that has children. The time of children that
  are not waited for (SIGCHLD ignored) is not known.
- A limit of CPU time (cpu.max of a container) stops the group for the rest of each period. The kernel
  counts those periods.
"""

import contextlib
import re
import time
from collections import namedtuple
from dataclasses import dataclass

import proc
import processes
from lib.measuring import machine
from proc import read

# ---- a process and its family ---------------------------------------------------------------


class Tree:
    """The living processes that have come from these."""

    def __init__(self, *roots):
        self.roots = roots

    def pids(self):
        stats = proc.everybody()
        return list(set().union(*(proc.family(root, stats) for root in self.roots)))

    def cpu_seconds(self):
        return proc.cpu_seconds(proc.everybody(self.pids()))


def busiest(before, after):
    """The most CPU seconds that one thread has used, from two {thread: its Stat}; to a tick."""
    used = [now.user + now.system - (then.user + then.system if then else 0)
            for tid, now in after.items() for then in [before.get(tid)]]
    return max(used, default=0) / proc.TICKS_A_SECOND


def _with_children(pid):
    return proc.cpu_seconds(proc.everybody([pid]))


# ---- the cores ------------------------------------------------------------------------------

Core = namedtuple("Core", "busy steal programs")
Core.__doc__ = """Percent of the time: at work; wanted, but given to another machine by the hypervisor; and at work
for a program, here or on another machine. (Interrupts are no program's, and a client's packets come as such.)"""


def core_ticks(core, text):
    """The kernel's account of a core, from /proc/stat; None if there is no such core."""
    found = re.search(r"^cpu%s +([\d ]+)$" % core, text, re.MULTILINE)
    return [int(word) for word in found.group(1).split()[:8]] if found else None


def core_between(before, after):
    """A Core, from two accounts, or from two sums of several cores' accounts."""
    more = [max(0, late - early) for early, late in zip(before or (), after or ())]
    if not sum(more):
        return Core(None, None, 0.0)
    user, nice, system, _idle, _disk, irq, softirq, steal = more
    work, share = user + nice + system + irq + softirq, 100.0 / sum(more)
    return Core(work * share, steal * share, (user + nice + system + steal) * share)


def _together(cores, accounts):
    return [sum(column) for column in zip(*filter(None, (accounts[core] for core in cores)))]


# ---- the kernel's own record ----------------------------------------------------------------

RECORD = {"ListenOverflows": "listen_overflows", "ListenDrops": "listen_drops", "TCPTimeouts": "tcp_timeouts",
          "TCPSynRetrans": "syn_retransmits"}


def network_record():
    """{column: count} of our network, from /proc/net/netstat: a line of names, then a line of figures."""
    lines = [line.split() for line in read("/proc/self/net/netstat").splitlines() if line.startswith("TcpExt:")]
    known = dict(zip(*lines)) if len(lines) == 2 else {}
    return {column: int(known[name]) for name, column in RECORD.items() if name in known}


def more_of(record, before):
    return {name: value - before.get(name, 0) for name, value in record.items()}


def record_text(record):
    """What the kernel has counted: "12 ListenOverflows, 12 ListenDrops"."""
    return ", ".join("%s %s" % (format(record[column], ","), name) for name, column in RECORD.items()
                     if record.get(column))


# ---- what follows from it -------------------------------------------------------------------

FULL_PERCENT = 90  # of a core; the rest is lost between two ticks, or to short waits
OTHERS_PERCENT = 15  # of a core that strangers take is worth a verdict of its own

SERVER, CLIENT, BOTH, REDIS = "server full", "client full", "both full", "Redis full"
NOBODY = "nobody full"  # all wait: for one another, a distant Redis, a disk
OTHERS = "others' work"
NOT_PINNED = "not pinned"  # all share the cores: the limit cannot be told


def verdict(pinned, taken, used, others=0.0):
    """Who set the limit. `pinned`: the cores of server, client and Redis; `taken`: percent of the time for
    which these were not idle, by anybody's work; `used`: the CPU time of each party, in percent of a core,
    and `thread`, that of the server's busiest thread, which fills one core, however many there are.

    A party is full if its cores are, and nobody else uses more of them."""
    if not pinned.client:
        return NOT_PINNED

    def is_full(party):
        cores = set(getattr(pinned, party))
        rivals = [other for other in pinned._fields if cores & set(getattr(pinned, other))]
        return bool(cores) and getattr(taken, party) >= FULL_PERCENT and used[party] > 0 and (
            used[party] == max(used[other] for other in rivals))

    if others >= OTHERS_PERCENT:
        return OTHERS
    server = is_full("server") or used["thread"] >= FULL_PERCENT
    if is_full("client"):
        return BOTH if server else CLIENT
    return SERVER if server else REDIS if is_full("redis") else NOBODY


def off(clients, rate, mean_ms):
    """How far a figure is from Little's law, as a share. The law says that a system holds as many
    clients as come in a second, times the seconds that each stays."""
    return abs(clients - rate * mean_ms / 1000) / clients


# ---- all of it ------------------------------------------------------------------------------

COLUMNS = ["metered_seconds", "server_cpu_us", "voluntary_switches", "involuntary_switches",
           "server_core_busy", "client_core_busy", "redis_core_busy", *RECORD.values(), "server_percent",
           "client_percent", "redis_percent", "others_percent", "throttled"]


@dataclass(frozen=True)
class Reading:
    """The meter's figures: `figures` has one for each of COLUMNS, None if it is not known. (Context switches the
    server tells itself.)"""

    figures: dict
    used: dict  # percent of a core, by party; `thread`: the server's busiest
    taken: machine.Cores  # percent of the time in which each party's cores were not idle
    shared: bool  # does the server share a core with the load generator?
    verdict: str

    def raw(self):
        return {name: "%.1f" % figure if isinstance(figure, float) and name != "metered_seconds" else
                "%.4f" % figure if isinstance(figure, float) else figure for name, figure in self.figures.items()}


Account = namedtuple("Account", "clock cores client redis server")  # seconds of CPU time


class Meter:
    """Measures the server whose first processes are `pids`, for the time of a `with`. After it, `reading` is
    there. `redis`: the first processes of Redis and its relay. Any other process of ours is the load
    generator's."""

    def __init__(self, pids, cores, redis=()):
        self.reading = None
        self._pinned, self._redis = cores, [*redis]
        self._tree = Tree(*pids)

    def __enter__(self):
        self._before = self._threads(), network_record(), machine.throttled()
        self._began = self._look()  # last before the load, and first after it
        return self

    def __exit__(self, kind, *exception):
        ended = self._look()
        if kind is None:
            self.reading = self._read(self._began, ended)

    def _threads(self):
        """{thread: its Stat}"""
        found = {}
        for pid in self._tree.pids():
            with contextlib.suppress(OSError):  # it is gone
                found.update((each.pid, each) for each in proc.threads(pid))
        return found

    def _look(self):
        text = read("/proc/stat")
        every = {core: core_ticks(core, text) for cores in self._pinned for core in cores}
        client = processes.cpu_seconds(_with_children, [*self._tree.roots, *self._redis])
        redis = sum(map(_with_children, self._redis))
        server = self._tree.cpu_seconds()  # last before the clock: a rate is made of the two
        return Account(time.monotonic(), every, client, redis, server)

    def _read(self, began, ended):
        threads_before, record_before, throttled_before = self._before
        seconds = ended.clock - began.clock
        cpu = max(0.0, ended.server - began.server)
        used = {"server": cpu, "client": ended.client - began.client, "redis": ended.redis - began.redis,
                "thread": busiest(threads_before, self._threads())}
        used = {party: 100 * value / seconds for party, value in used.items()}
        cores = machine.Cores(*(core_between(_together(own, began.cores), _together(own, ended.cores))
                                for own in self._pinned))
        if cores.server.busy is not None:  # the kernel only samples it; CPU time is measured
            least = min(100.0, used["server"] / len(self._pinned.server))
            cores = cores._replace(server=cores.server._replace(busy=max(cores.server.busy, least)))
        others = sum(core_between(began.cores[core], ended.cores[core]).programs for core in began.cores)
        others = max(0.0, others - used["server"] - used["client"] - used["redis"]) if (
            self._redis or not self._pinned.redis) else 0.0
        shared = machine.shared(self._pinned)
        taken = machine.Cores(*((core.busy or 0.0) + (core.steal or 0.0) for core in cores))
        figures = dict(zip(COLUMNS, [seconds, 1e6 * cpu, None, None, *(core.busy for core in cores)]))
        figures.update(more_of(network_record(), record_before), server_percent=used["server"],
                       client_percent=used["client"], redis_percent=used["redis"], others_percent=others,
                       throttled=machine.throttled() - throttled_before)
        return Reading(figures, used, taken, shared, verdict(self._pinned, taken, used, others))
