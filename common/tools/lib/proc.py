"""proc: processes and sockets as the kernel sees them, which disturbs nobody. proc(5), ss(8)."""

import contextlib
import os
import re
import subprocess
import time
from collections import namedtuple

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
PF_EXITING = 0x4  # of Stat.flags; the kernel's include/linux/sched.h

# Times in ticks; born: since the machine started; reaped: of children that have ended
Stat = namedtuple("Stat", "pid parent session user system reaped threads state flags born")


def read(path):
    """The text of a file of the kernel; "" if it is missing, or not readable for us."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def parse_stat(text):
    """Reads /proc/PID/stat. The name in it may hold anything, brackets and blanks included."""
    pid, _, rest = text.partition(" (")
    words = rest.rpartition(") ")[2].split()
    return Stat(pid=int(pid), parent=int(words[1]), session=int(words[3]), user=int(words[11]),
                system=int(words[12]), reaped=int(words[13]) + int(words[14]), threads=int(words[17]),
                state=words[0], flags=int(words[6]), born=int(words[19]))


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


def family(root, stats=None, known=()):
    """The pids of all that has come from `root`, itself included: its descendants, and the processes of
    its session whose parents are gone. Those in `known` are known to have."""
    stats = everybody() if stats is None else stats
    return below({*known, *(stat.pid for stat in stats if root in (stat.pid, stat.session))}, stats)


def threads(pid):
    """A Stat of each thread of a process; .pid is the thread's own number."""
    folder = "/proc/%d/task" % pid
    return [parse_stat(text) for text in (
        read("%s/%s/stat" % (folder, name)) for name in os.listdir(folder)) if text]


def witness(pid):
    """The number under which /proc shows what a process has: its own, or that of another of its threads, if its
    main thread has ended before them, as with pthread_exit(3)."""
    if any(stat.state == "Z" and stat.threads > 1 for stat in everybody([pid])):
        return next((each.pid for each in threads(pid) if each.state != "Z"), pid)
    return pid


def status(pid, field):
    """A line of /proc/PID/status: a number (kB, if it is memory) or a text."""
    found = re.search(r"^%s:\s*(.*)$" % field, read("/proc/%d/status" % witness(pid)), re.MULTILINE)
    if not found:
        raise ProcessLookupError("no %s in /proc/%d/status" % (field, pid))
    number = re.fullmatch(r"(\d+)(?: kB)?", found.group(1))
    return int(number.group(1)) if number else found.group(1)


def kib(text, name):
    """Bytes, from a line as in "VmPTE:      52 kB"; None if there is none: the process is gone, or
    not readable for us."""
    found = re.search(r"^%s:\s+(\d+) kB$" % name, text, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else None


def descriptors(pid):
    """{open descriptor: what it leads to}, as "socket:[4711]" or "anon_inode:[eventpoll]"."""
    folder, found = "/proc/%d/fd" % witness(pid), {}
    for name in os.listdir(folder):
        try:
            found[int(name)] = os.readlink(os.path.join(folder, name))
        except FileNotFoundError:
            pass  # closed since
    return found


# ---- CPU time -------------------------------------------------------------------------------


def schedule(pid="self"):
    """How many seconds a process's main thread has run so far, and how many it was ready to run and
    had no core. A kernel that does not count that says 0."""
    words = read("/proc/%s/schedstat" % pid).split()
    return [int(word) / 1e9 for word in words[:2]] or [0, 0]


def cpu_seconds(stats):
    """The CPU time of these processes, and of their children that have ended. Each process has a clock
    (clock_getcpuclockid(3)) that counts nanoseconds, its ended threads included. Only the time of ended
    children is rounded, to a tick."""
    return sum(_own_seconds(stat) + stat.reaped / TICKS_A_SECOND for stat in stats)


def _own_seconds(stat):
    scheduler = 2  # CPUCLOCK_SCHED: what the scheduler counted, in nanoseconds
    try:
        seconds = time.clock_gettime(~stat.pid << 3 | scheduler)
    except OSError:
        seconds = 0.0  # it is gone, or not here
    return seconds or (stat.user + stat.system) / TICKS_A_SECOND


# ---- sockets --------------------------------------------------------------------------------

ESTABLISHED, LISTEN = "ESTAB", "LISTEN"

# unread: how many bytes have come and not been taken; of a listener, how many stand in its queue.
# unsent: how many are on their way; of a listener, its backlog: one more may stand in its queue.
# client: the other end's port. inode: what /proc/PID/fd names a socket by; 0: nobody has accepted it
Connection = namedtuple("Connection", "state unread unsent client inode")

# ESTAB  0  0  127.0.0.1:8001  127.0.0.1:42002  ino:90406806 sk:26b203 <->
LINE = re.compile(r"(\S+) +(\d+) +(\d+) +\S+ +\S+:(\d+|\*) .*?(?:\bino:(\d+)|$)")
LISTENER = re.compile(r"LISTEN +\d+ +\d+ +(\S+):(\d+) .*?\bino:(\d+)")


def connections(port):
    """The Connections whose own port this is. /proc/net/tcp would list every connection of the machine. ss
    asks by sock_diag(7), which chooses before it tells."""
    for line in sockets("-Htane", "sport = :%d" % port):
        state, unread, unsent, client, inode = LINE.match(line).groups()
        yield Connection(state, int(unread), int(unsent), 0 if client == "*" else int(client), int(inode or 0))


def listening(pids):
    """Where these processes accept clients: {port: (address, pid of one of them)}."""
    doors = {"socket:[%s]" % door[3]: door for door in map(LISTENER.match, sockets("-Hltne"))}
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            for door in filter(None, map(doors.get, descriptors(pid).values())):
                found[int(door[2])] = door[1].strip("[]").partition("%")[0], pid
    return found


def sockets(*words):
    """The lines of ss(8)."""
    listed = subprocess.run(["ss", *words], check=False, stdin=subprocess.DEVNULL, capture_output=True, encoding="ascii")
    if listed.returncode:  # it may complain, and list them all the same
        raise OSError("ss(8) cannot list the kernel's sockets here: %s" % listed.stderr.strip())
    return listed.stdout.splitlines()
