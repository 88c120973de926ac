"""meter: what a load cost, and which cores were busy, between two moments.

The figures are the kernel's own, from /proc. They need neither root nor a cgroup. proc(5) explains
each. To trust them one must know:

- A server is everything that has come from one process: its descendants, and the processes of its
  session whose parents are gone. processes.start() makes each server lead a session of its own.
- CPU time: /proc counts in hundredths of a second, which is too coarse for many workers. But each
  process has a clock (clock_getcpuclockid(3)) that counts nanoseconds, its ended threads included.
  The time of children that have ended and were waited for is in their parent's cutime and cstime,
  exactly, rounded once. So the sum is right within 10 ms for each process that has children, and
  within 1 % of a core that is busy for 2 s. The time of children that are not waited for (SIGCHLD
  ignored) is not known.
- Read them when it is quiet, before and after the load. A child that ends meanwhile may be missed.
- User and system time apart: the account of a process that lives less than a tick of the kernel's
  clock is a guess. So the server's core is asked instead, if no other process uses it.
- Context switches are counted by thread, and the count ends with the thread. So they are known
  only if the threads that did the work are still there, as in a pool or a loop.
- Memory is PSS: a page that n processes share counts as 1/n for each of them. Reading it takes the
  kernel some 50 microseconds a process. So of many processes only some are read, and at most 2 %
  of a core goes into it.
"""

import os
import random
import re
import threading
import time
from collections import Counter, namedtuple
from dataclasses import dataclass

from lib.measuring import machine, processes
from lib.measuring.machine import read

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")

# ---- a process and its family ---------------------------------------------------------------

Stat = namedtuple("Stat", "pid parent session user system reaped threads state")  # times in ticks


def parse_stat(text):
    """Reads /proc/PID/stat. The name in it may hold anything, brackets and blanks included."""
    pid, _, rest = text.partition(" (")
    words = rest.rpartition(") ")[2].split()
    return Stat(pid=int(pid), parent=int(words[1]), session=int(words[3]), user=int(words[11]),
                system=int(words[12]), reaped=int(words[13]) + int(words[14]),
                threads=int(words[17]), state=words[0])


def everybody(pids=None):
    """A Stat of each of these processes that exists, or of all processes if none are named."""
    listed = os.listdir("/proc") if pids is None else map(str, pids)
    texts = (read("/proc/%s/stat" % name) for name in listed if name.isdecimal())
    return [parse_stat(text) for text in texts if text]


def below(roots, stats):
    """The pids of these processes, and of all their descendants."""
    children = {}
    for stat in stats:
        children.setdefault(stat.parent, set()).add(stat.pid)
    found = new = set(roots)
    while new:
        new = set().union(*(children.get(parent, ()) for parent in new)) - found
        found |= new
    return found


def family(root, stats, known=()):
    """The pids of all that has come from `root`, itself included. Those in `known` are known to
    have."""
    return below({*known, *(stat.pid for stat in stats if root in (stat.pid, stat.session))}, stats)


class Tree:
    """The living processes of a server. A process is checked once for whether it belongs to it,
    because the kernel gives out its number again only after all others."""

    def __init__(self, root, others=()):
        self._root = root
        self.others = others
        self._ours = set(others)
        self._strangers = set()
        self._lock = threading.Lock()  # Memory looks in a thread of its own

    def pids(self):
        """The pids of all its processes now."""
        with self._lock:
            listed = {int(name) for name in os.listdir("/proc") if name.isdecimal()}
            self._ours &= listed
            self._strangers &= listed
            new = everybody(listed - self._ours - self._strangers)
            self._ours = family(self._root, new, self._ours)
            self._strangers.update(stat.pid for stat in new if stat.pid not in self._ours)
            return list(self._ours)

    def stats(self):
        return everybody(self.pids())


# ---- CPU time -------------------------------------------------------------------------------


def cpu_seconds(stats):
    """The CPU time of these processes, and of their children that have ended."""
    return sum(_own_seconds(stat) + stat.reaped / TICKS_A_SECOND for stat in stats)


def _own_seconds(stat):
    """The CPU time by the process's own clock, as clock_getcpuclockid(3) numbers it, or else by its
    ticks."""
    scheduler = 2  # CPUCLOCK_SCHED: what the scheduler counted, in nanoseconds
    try:
        seconds = time.clock_gettime(~stat.pid << 3 | scheduler)
    except OSError:
        seconds = 0.0  # it is gone, or not here
    return seconds or (stat.user + stat.system) / TICKS_A_SECOND


def _with_children(pid):
    return cpu_seconds(everybody([pid]))


# ---- context switches -----------------------------------------------------------------------

Switches = namedtuple("Switches", "voluntary involuntary")  # it waited; another thread got its core
Thread = namedtuple("Thread", "seconds switches")
KNOWN_SHARE = 0.95  # a share of CPU time: if the living threads have used less, others have ended


def threads_of(pids):
    """{number: Thread} of all threads of these processes."""
    found = {}
    for pid in pids:
        folder = "/proc/%d/task" % pid
        try:
            names = os.listdir(folder)
        except OSError:
            continue  # it is gone
        for name in names:
            counts = re.findall(r"ctxt_switches:\s+(\d+)", read("%s/%s/status" % (folder, name)))
            ran = read("%s/%s/schedstat" % (folder, name)).split()
            if len(counts) == 2 and ran:
                found[int(name)] = Thread(int(ran[0]) / 1e9, Switches(*map(int, counts)))
    return found


def threads_between(before, after):
    """What each of the threads that exist at the end has done, as a Thread."""
    nothing = Thread(0.0, Switches(0, 0))
    pairs = [(before.get(name, nothing), thread) for name, thread in after.items()]
    return [Thread(late.seconds - early.seconds, Switches(*(
        now - then for now, then in zip(late.switches, early.switches)))) for early, late in pairs]


def switches_of(threads, cpu_seconds_used):
    """The Switches of all threads. None if much of the CPU time was not theirs: other threads have
    come and gone, and their switches are not counted."""
    seconds = sum(thread.seconds for thread in threads)
    if not threads or seconds < KNOWN_SHARE * cpu_seconds_used:
        return None
    return Switches(*map(sum, zip(*(thread.switches for thread in threads))))


# ---- memory ---------------------------------------------------------------------------------


class Memory(threading.Thread):
    """Reads again and again how much memory the tree uses, and remembers the most.

    It begins a little after the load. After each reading it rests 49 times as long as that took."""

    EVERY_SECONDS = 0.1
    MOST_SHARE = 0.02  # of one core
    MOST_ASKED = 64  # processes; the others are assumed to be like them

    def __init__(self, tree, cores):
        super().__init__(daemon=True)
        self.looks = self.processes = self.threads = 0
        self.peak_pss = None  # bytes
        self.seconds = 0.0  # CPU seconds spent on reading
        self._tree = tree
        self._cores = cores
        self._over = threading.Event()

    def run(self):
        if self._cores:
            os.sched_setaffinity(0, self._cores)  # this thread's alone
        rest = self.EVERY_SECONDS
        while not self._over.wait(rest):
            began = time.thread_time()
            self.look()
            took = time.thread_time() - began
            self.seconds += took
            rest = max(self.EVERY_SECONDS, took * (1 / self.MOST_SHARE - 1))

    def stop(self):
        self._over.set()
        self.join()
        if not self.looks:
            self.look()  # the load was short

    def look(self):
        pids = self._tree.pids()
        asked = random.sample(pids, min(len(pids), self.MOST_ASKED))
        scale = len(pids) / len(asked) if asked else 0
        pss = [kib(read("/proc/%d/smaps_rollup" % pid), "Pss") for pid in asked]
        self.looks += 1
        self.processes = max(self.processes, len(pids))
        self.threads = max(self.threads, round(scale * sum(
            stat.threads for stat in everybody(asked))))
        known = [each for each in pss if each is not None]
        if known:
            self.peak_pss = max(self.peak_pss or 0, round(scale * sum(known)))


def kib(text, name):
    """Bytes, from a line as in "VmPTE:      52 kB"; None if there is none: the process is gone, or
    not readable for us."""
    found = re.search(r"^%s:\s+(\d+) kB$" % name, text, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else None


def available_memory():
    """The available memory in bytes, as the kernel estimates it; None if it does not say."""
    return kib(read("/proc/meminfo"), "MemAvailable")


# ---- the cores ------------------------------------------------------------------------------

Core = namedtuple("Core", "busy steal user")
Core.__doc__ = """Percent of the time: at work; wanted, but given to another machine by the
hypervisor; and how much of the work was the programs' own, not the kernel's for them."""

UNKNOWN = Core(None, None, None)


def core_ticks(core, text):
    """The kernel's account of a core, from /proc/stat; None if there is no such core."""
    found = re.search(r"^cpu%s +([\d ]+)$" % core, text, re.MULTILINE)
    return [int(word) for word in found.group(1).split()[:8]] if found else None


def together(accounts):
    """The sum of several cores' accounts. Figures made of it are the mean of the cores."""
    return [sum(column) for column in zip(*filter(None, accounts))]


def core_between(before, after):
    """A Core, from two such accounts."""
    if not before or not after:
        return UNKNOWN
    user, nice, system, idle, disk, irq, softirq, steal = (
        max(0, late - early) for early, late in zip(before, after))
    work = user + nice + system + irq + softirq
    every = work + idle + disk + steal
    if not every:
        return UNKNOWN
    return Core(busy=100.0 * work / every, steal=100.0 * steal / every,
                user=100.0 * (user + nice) / work if work else None)


def programs_percent(before, after):
    """How long a core worked for programs, here or on another machine's behalf. (Interrupts are no
    program's, and a client's packets come as such.)"""
    more = [max(0, late - early) for early, late in zip(before or (), after or ())]
    return 100.0 * (sum(more[:3]) + more[7]) / sum(more) if sum(more) else 0.0


def at_least(percent, core):
    """The kernel samples how busy a core is, and may miss work that ends between two of its ticks.
    The CPU time of the processes there is measured."""
    return core if core.busy is None else core._replace(busy=max(core.busy, min(100.0, percent)))


def others_percent(seconds=0.3):
    """How busy the machine is while we do nothing. Then other work is running, which will disturb
    the figures. (The load average would not do: it includes our own last minute.)"""
    before = core_ticks("", read("/proc/stat"))
    time.sleep(seconds)
    core = core_between(before, core_ticks("", read("/proc/stat")))
    return (core.busy or 0.0) + (core.steal or 0.0)


# ---- the kernel's own record ----------------------------------------------------------------

RECORD = ["ListenOverflows", "ListenDrops", "TCPTimeouts", "TCPSynRetrans"]


def parse_record(text):
    """{name: count} from /proc/PID/net/netstat: a line of names, then a line of figures."""
    lines = [line.split() for line in text.splitlines() if line.startswith("TcpExt:")]
    known = dict(zip(*lines)) if len(lines) == 2 else {}
    return {name: int(known[name]) for name in RECORD if name in known}


def network_record(pids):
    """The sum over the network namespaces of these processes. Each namespace counts once."""
    hosts = {}
    for pid in pids:
        try:
            hosts[os.stat("/proc/%s/ns/net" % pid).st_ino] = pid
        except OSError:
            pass  # it is gone
    total = Counter()
    for pid in hosts.values():
        total.update(parse_record(read("/proc/%s/net/netstat" % pid)))
    return total


def more_of(record, before):
    return {name: count - before.get(name, 0) for name, count in record.items()}


def record_text(record):
    """What the kernel has counted: "12 ListenOverflows, 12 ListenDrops"."""
    return ", ".join("%s %s" % (format(count, ","), name) for name, count in record.items()
                     if count)


# ---- what follows from it -------------------------------------------------------------------

FULL_PERCENT = 90  # of a core; the rest is lost between two ticks, or to short waits
OTHERS_PERCENT = 15  # of a core that strangers take is worth a verdict of its own

SERVER, CLIENT, BOTH, REDIS = "server full", "client full", "both full", "Redis full"
NOBODY = "nobody full"  # all wait: for one another, a distant Redis, a disk
OTHERS = "others' work"
NOT_PINNED = "not pinned"  # all share the cores: the limit cannot be told


def verdict(pinned, busy, used, others=0.0):
    """Who set the limit. `pinned`: the cores of server, client and Redis; `busy`: percent of the
    time for which these were not idle, by anybody's work;
    `used`: the CPU time of each party, in percent of a core, and `thread`, that of the server's
    busiest thread, which fills one core, however many there are.

    A party is full if its cores are, and nobody else uses more of them."""
    if not pinned.client:
        return NOT_PINNED

    def is_full(party):
        cores = set(getattr(pinned, party))
        rivals = [other for other in pinned._fields if cores & set(getattr(pinned, other))]
        return bool(cores) and (getattr(busy, party) or 0) >= FULL_PERCENT and used[party] > 0 and (
            used[party] == max(used[other] for other in rivals))

    server = is_full("server") or used["thread"] >= FULL_PERCENT
    if others >= OTHERS_PERCENT and max(each or 0 for each in busy) >= FULL_PERCENT:
        return OTHERS
    if is_full("client"):
        return BOTH if server else CLIENT
    if server:
        return SERVER
    if is_full("redis"):
        return REDIS
    return NOBODY


def taken(cores):
    """For verdict(): for how much of the time each was not idle."""
    return machine.Cores(*((core.busy or 0) + (core.steal or 0) for core in cores))


def off(clients, rate, mean_ms):
    """How far a figure is from Little's law, as a share. The law says that a system holds as many
    clients as come in a second, times the seconds that each stays. 0.1 and more is suspect."""
    return abs(clients - rate * mean_ms / 1000) / clients


# ---- all of it ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """The meter's figures. None, or nothing in `kernel`, means that a figure is not known."""

    seconds: float
    cpu_us: float | None  # of the whole tree
    cpu_user_us: float | None  # its share of these
    switches: Switches | None
    peak_pss: int | None  # bytes
    processes: int  # the most of all readings
    threads: int
    cores: machine.Cores  # a Core for each: of several cores, their mean
    kernel: dict[str, int]  # how often each of RECORD happened
    used: dict[str, float]  # percent of a core, by party; `thread`: the server's busiest
    others: float = 0.0  # percent of a core that somebody else has taken of ours
    verdict: str = NOT_PINNED
    shared: bool = False  # does the server share a core with the load generator?

    @property
    def busy(self):
        """Percent, as Cores."""
        return machine.Cores(*(core.busy for core in self.cores))

    def raw(self):
        """One figure for each of COLUMNS; empty if unknown."""
        voluntary, involuntary = self.switches or (None, None)
        figures = [self.cpu_us, self.cpu_user_us, voluntary, involuntary, self.peak_pss,
                   self.processes, self.threads, *self.busy,
                   self.cores.server.steal, self.cores.client.steal,
                   *(self.kernel.get(name) for name in RECORD),
                   self.used["client"], self.used["redis"], self.others]
        return ["" if figure is None else "%.1f" % figure if isinstance(figure, float) else figure
                for figure in figures]


COLUMNS = ["server_cpu_us", "server_cpu_user_us", "voluntary_switches", "involuntary_switches",
           "peak_pss_bytes", "processes", "threads", "server_core_busy", "client_core_busy",
           "redis_core_busy", "server_core_steal", "client_core_steal", "listen_overflows",
           "listen_drops", "tcp_timeouts", "syn_retransmits", "client_percent", "redis_percent",
           "others_percent"]


class Meter:
    """Measures the server whose first process is `pid`, for the time of a `with`. After it,
    `reading` is there. `hosts`: a process on each host whose network counts; none means our own
    network. `others`: the first processes of its other instances; `redis`: those of Redis and its
    relay. Any other process of ours is the load generator's. A server on another machine has no
    pid, and only the load generator's core can be watched."""

    def __init__(self, pid, cores, hosts=(), others=(), redis=()):
        self.reading = None
        self._pid = pid
        self._pinned = cores
        self._hosts = hosts or [*filter(None, [pid]), "self"]
        self._tree = Tree(pid, others=others)
        self._redis = [*redis]
        self._memory = Memory(self._tree, cores.client)

    def __enter__(self):
        self._before = self._accounts()
        self._memory.start()
        self._cores_before = self._look_at_cores()  # last before the load, and first after it
        return self

    def __exit__(self, kind, *exception):
        cores = self._look_at_cores()
        self._memory.stop()
        if kind is None:
            self.reading = self._read(cores, self._accounts())

    def _look_at_cores(self):
        text = read("/proc/stat")
        every = {core: core_ticks(core, text) for cores in self._pinned for core in cores}
        client = processes.cpu_seconds(_with_children, [self._pid, *self._tree.others, *self._redis])
        redis = sum(map(_with_children, self._redis))
        server = cpu_seconds(self._tree.stats())  # last before the clock: a rate is made of the two
        return time.monotonic(), every, client, redis, server

    def _accounts(self):
        return threads_of(self._tree.pids()), network_record(self._hosts)

    def _read(self, cores, accounts):
        (began, before, client, redis, cpu_before), (ended, after, client_now, redis_now, cpu) = (
            self._cores_before, cores)
        (threads_before, record_before), (threads, record) = self._before, accounts
        percent = 100 / (ended - began)
        seconds = max(0.0, cpu - cpu_before)
        threads = threads_between(threads_before, threads)
        used = {"server": seconds * percent, "client": (client_now - client) * percent,
                "redis": (redis_now - redis) * percent,
                "thread": percent * max((thread.seconds for thread in threads), default=0.0)}
        shares = machine.Cores(*(core_between(*(together(every[core] for core in cores)
                                                for every in (before, after)))
                                 for cores in self._pinned))
        shares = shares._replace(server=at_least(
            used["server"] / max(1, len(self._pinned.server)), shares.server))
        others = sum(programs_percent(before[core], after[core]) for core in before)
        others = max(0.0, others - used["server"] - used["client"] - used["redis"]) if (
            self._redis or not self._pinned.redis) else 0.0
        user = None if machine.shared(self._pinned) else shares.server.user
        return Reading(
            seconds=ended - began,
            cpu_us=seconds * 1e6 if self._pid else None,
            cpu_user_us=None if user is None else seconds * 1e6 * user / 100,
            switches=switches_of(threads, seconds),
            peak_pss=self._memory.peak_pss,
            processes=self._memory.processes,
            threads=self._memory.threads,
            cores=shares,
            kernel=more_of(record, record_before),
            used=used,
            others=others,
            verdict=verdict(self._pinned, taken(shares), used, others),
            shared=machine.shared(self._pinned))
