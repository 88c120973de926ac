"""machine: cores to pin to, limits, and what a report must say of the machine."""

import hashlib
import os
import platform
import re
import resource
import tempfile
import time
from collections import namedtuple

from lib import Trouble
from proc import kib, read
from processes import output_of
from top import IN_PLACE, NAMES, PLAIN, SERVERS, TOP, path_of

BUILD = os.path.dirname(PLAIN) if IN_PLACE else PLAIN  # where a run leaves its results
SPARE_DESCRIPTORS = 64  # descriptors that ab or a server needs besides its clients
AB_MOST_CLIENTS = 20000  # ab refuses more
CPU = "/sys/devices/system/cpu/"
UNKNOWN = "unknown"
SPIN = 4000  # pieces: some 10 ms
# Raise it when a figure changes its meaning: what is counted, timed or computed, by which generator, or what
# loadtest/floor.c does. Then older runs cannot stand beside newer ones.
ENGINE = "2"

Cores = namedtuple("Cores", "server client redis")  # a tuple of numbers each; empty: not pinned


def choose_cores(count=1):
    """The first `count` cores for the server, the last for Redis, which is started once and stays,
    and all between them for the load generator. If too few are left, these
    two share the last core, and if the server has all cores, all three do. On a single core nothing
    is pinned."""
    usable = usable_cores()
    if len(usable) < 2:
        return Cores((), (), ())
    return Cores(tuple(usable[:count]), tuple(usable[count:-1] or usable[-1:]),
                 (usable[-1],))


def named(cores):
    """As in "core 3" and "cores 1, 2"."""
    return "core%s %s" % ("s" * (len(cores) > 1), ", ".join(map(str, cores)))


def are_threads_of_one(first, second):
    """Are these two hardware threads of the same core? On a machine with one core there is nothing better."""
    threads = read(CPU + "cpu%s/topology/thread_siblings_list" % first)
    return any(int(low) <= second <= int(high or low) for low, high in re.findall(r"(\d+)(?:-(\d+))?", threads))


def usable_cores(listed=None):
    """The cores that we may use: one hardware thread of each, because two of them share its units;
    of the socket that has most of them, because another's memory is far away; and of the fastest
    kind only, if there are three of it. `listed`: what lscpu(1) says of each."""
    told = listed or output_of(["lscpu", "-p=CPU,CORE,SOCKET,MAXMHZ"])
    rows = [line.split(",") for line in told.splitlines() if line[:1].isdigit()]
    allowed = os.sched_getaffinity(0) if listed is None else {int(row[0]) for row in rows}
    cores = {}  # one of its threads, by socket and core
    for number, core, socket, speed in sorted(rows, key=lambda row: int(row[0])):
        if int(number) in allowed:
            cores.setdefault((socket, core), (int(number), socket, float(speed or 0)))
    if len(cores) < 2:  # two threads of one core are better than none apart
        return sorted(allowed)
    sockets = [socket for _, socket, _ in cores.values()]
    near = [core for core in cores.values() if core[1] == max(sockets, key=sockets.count)]
    near = near if len(near) > 1 else list(cores.values())
    fast = [core for core in near if core[2] >= 0.95 * max(speed for *_, speed in near)]
    return sorted(number for number, *_ in (fast if len(fast) > 2 else near))


def spin(cores):
    """The CPU microseconds that a fixed piece of work takes on these cores: bytes, most of them through the kernel."""
    usual, out = os.sched_getaffinity(0), os.open("/dev/zero", os.O_RDONLY)
    os.sched_setaffinity(0, cores or usual)
    began = time.thread_time()
    for _ in range(SPIN):
        hashlib.sha256(os.read(out, 4096))
    used = time.thread_time() - began
    os.sched_setaffinity(0, usual)
    os.close(out)
    return 1e6 * used


def raise_descriptor_limit():
    """Raises the soft limit to the hard one, for ourselves and for all we start. Returns it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def why_not(clients, descriptors):
    """Why there cannot be so many clients here, or None."""
    if clients > AB_MOST_CLIENTS:
        return "ab has %s clients at most" % format(AB_MOST_CLIENTS, ",")
    if descriptors != resource.RLIM_INFINITY and clients + SPARE_DESCRIPTORS > descriptors:
        return "a process may have %s descriptors (ulimit -Hn)" % format(descriptors, ",")
    return None


def _groups():
    """The folders of our control group and of those it is in, cgroups(7), where CPU time may be limited."""
    for own in re.findall("^0::(.*)", read("/proc/self/cgroup"), re.MULTILINE):
        while len(own) > 1:
            yield "/sys/fs/cgroup" + own
            own = os.path.dirname(own)
        yield "/sys/fs/cgroup"  # in a container this is its own group


def quota():
    """How many cores' time we may use; None: as many as there are."""
    found = []
    for group in _groups():
        limit = re.match(r"(\d+) (\d+)", read(group + "/cpu.max"))
        if limit:
            found.append(int(limit[1]) / int(limit[2]))
    return min(found, default=None)


def throttled():
    """In how many periods so far we, or whoever shares our limit, were stopped because it was used up."""
    return sum(int(count) for group in _groups()
               for count in re.findall(r"^nr_throttled (\d+)", read(group + "/cpu.stat"), re.MULTILINE))


def environment():
    """A list of (name, value) that a reader needs to judge the figures."""
    told = output_of(["env", "LC_ALL=C", "lscpu"])
    memory, cores = kib(read("/proc/meminfo"), "MemTotal"), len(os.sched_getaffinity(0))
    guards = re.findall(r"^Vulnerability ([^:]+):\s+Mitigation; ([^;\n]+)", told, re.MULTILINE)
    limit = quota()

    def lscpu(name):
        found = re.search(r"^%s:\s*(.+)" % re.escape(name), told, re.MULTILINE)
        return found[1] if found else UNKNOWN

    return [
        ("processor", lscpu("Model name")),
        ("cores", "%d core%s" % (cores, "s" * (cores > 1))),
        ("limit of CPU time", "none" if limit is None else "%.2g cores (a container's, or a group's)" % limit),
        ("kernel", "%s %s" % (platform.system(), platform.release())),
        ("governor", read(CPU + "cpu0/cpufreq/scaling_governor").strip() or UNKNOWN),
        ("turbo", {"0": "on", "1": "off"}.get(read(CPU + "intel_pstate/no_turbo").strip(), UNKNOWN)),
        ("threads a core", lscpu("Thread(s) per core")),
        ("NUMA nodes", lscpu("NUMA node(s)")),
        ("hypervisor", lscpu("Hypervisor vendor")),
        ("mitigations", "; ".join("%s: %s" % guard for guard in guards) or UNKNOWN),
        ("memory", "%.1f GiB" % (memory / 2**30) if memory else UNKNOWN),
        ("compiler", _compiler(read(os.path.join(SERVERS, "epoll")))),
        ("load average", read("/proc/loadavg").strip()),
        ("descriptors", str(resource.getrlimit(resource.RLIMIT_NOFILE)[1])),
        *((name.rpartition("/")[2], read("/proc/sys/net/" + name).strip().replace("\t", " "))
          for name in ("core/somaxconn", "ipv4/ip_local_port_range", "ipv4/tcp_tw_reuse")),
        ("ZeroHTTPd", _revision()),
        ("release", release()),
        ("engine", ENGINE),
        ("code", ", ".join("%s %s" % (name, code_of(path_of(name))) for name in NAMES if os.path.exists(path_of(name)))),
        ("python", platform.python_version()),
    ]


def _compiler(program):
    """And its flags, as a program that it has made names them (-g)."""
    found = re.search(r"GNU C\d+ [^\0]*|clang version [\d.]+", program)
    return found[0] if found else UNKNOWN


ARCHIVED = "$Format:%H$"  # `git archive` puts the commit in place of it


def _revision():
    """This project's revision, if git or its archive knows it; -dirty, if files differ other than
    the results of the runs before. Takes no lock, because a commit may be under way."""
    if not ARCHIVED.startswith("$"):
        return ARCHIVED[:7]
    git = ["git", "--no-optional-locks", "-C", TOP]
    try:
        changed = output_of([*git, "status", "--porcelain", "--untracked-files=no", "--",
                             ".", ":!loadtest/results"])
        return output_of([*git, "describe", "--always"]) + ("-dirty" if changed else "")
    except Trouble:
        return "unknown revision"


def release():
    """The version of this project: that of the last release, or of the one that is being made."""
    return re.search(r'ZEROHTTPD_VERSION "(.+)"', read(os.path.join(TOP, "common", "options.h")))[1]


def code_of(program):
    """A hash of its machine code and read-only data. No comment, path, date or version is in it."""
    with tempfile.NamedTemporaryFile() as file:
        output_of(["objcopy", "-O", "binary", "-j.text", "-j.rodata", program, file.name])
        return hashlib.sha256(re.sub(rb"\d+\.\d+\.\d+", b"", file.read())).hexdigest()[:12]
