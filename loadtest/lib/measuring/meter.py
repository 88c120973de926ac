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

OTHERS_PERCENT = 15  # of a core; if strangers take more, a cell is disturbed

def off(clients, rate, mean_ms):
    """How far a figure is from Little's law, as a share. The law says that a system holds as many
    clients as come in a second, times the seconds that each stays."""
    return abs(clients - rate * mean_ms / 1000) / clients


# ---- all of it ------------------------------------------------------------------------------

COLUMNS = ["metered_seconds", "server_cpu_us", "voluntary_switches", "involuntary_switches",
           "server_core_busy", "client_core_busy", "redis_core_busy", *RECORD.values(), "server_percent",
           "client_percent", "redis_percent", "others_percent", "steal_percent", "throttled"]


Account = namedtuple("Account", "clock cores client redis server")  # seconds of CPU time


class Meter:
    """Measures the server whose first processes are `pids`, for the time of a `with`. After it `figures` has
    one for each of COLUMNS, None if it is not known. (Context switches the server tells itself.) `redis`: the first
    processes of Redis and its relay. Any other process of ours is the load generator's."""

    def __init__(self, pids, cores, redis=()):
        self.figures = None
        self._pinned, self._redis = cores, [*redis]
        self._tree = Tree(*pids)

    def __enter__(self):
        self._before = self._threads(), network_record(), machine.throttled()
        self._began = self._look()  # last before the load, and first after it
        return self

    def __exit__(self, kind, *exception):
        if kind is None and not self.figures:
            self.figures = self._read(self._began, self._look())

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
        thread = busiest(threads_before, self._threads())
        server, client, redis, thread = (100 * used / seconds for used in (
            cpu, ended.client - began.client, ended.redis - began.redis, thread))
        busy = [core_between(_together(own, began.cores), _together(own, ended.cores)).busy for own in self._pinned]
        if busy[0] is not None:  # the kernel only samples it; CPU time is measured, and one thread has one core
            busy[0] = max(busy[0], min(100.0, max(server / len(self._pinned.server), thread)))
        cores = [core_between(began.cores[core], ended.cores[core]) for core in began.cores]
        others = max(0.0, sum(core.programs for core in cores) - server - client - redis) if (
            self._redis or not self._pinned.redis) else 0.0
        figures = dict(zip(COLUMNS, [seconds, 1e6 * cpu, None, None, *busy]))
        figures.update(more_of(network_record(), record_before), server_percent=server, client_percent=client,
                       redis_percent=redis, others_percent=others, steal_percent=sum(core.steal or 0.0 for core in cores),
                       throttled=machine.throttled() - throttled_before)
        return figures
