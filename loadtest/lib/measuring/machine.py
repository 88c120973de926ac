"""machine: cores to pin to, limits, and what a report must say of the machine."""

import glob
import hashlib
import os
import platform
import re
import resource
import subprocess
from collections import namedtuple

from lib import Trouble

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
PLAIN = os.path.join(TOP, os.environ.get("PLAIN") or "build/plain")  # make's objects and programs
IN_PLACE = PLAIN == os.path.join(TOP, "build/plain")  # not so with make's OUT=
SERVERS = TOP if IN_PLACE else PLAIN
BUILD = os.path.dirname(PLAIN) if IN_PLACE else PLAIN  # where a run leaves its results
SPARE_DESCRIPTORS = 64  # descriptors that ab or a server needs besides its clients
AB_MOST_CLIENTS = 20000  # ab refuses more
CPU = "/sys/devices/system/cpu/"
UNKNOWN = "unknown"

Cores = namedtuple("Cores", "server client redis")  # a tuple of numbers each; empty: not pinned


def choose_cores(count=1, most=None):
    """The first `count` cores for the server, the last for Redis, which is started once and stays,
    and all between them for the load generator, `most` of them at most. If too few are left, these
    two share the last core, and if the server has all cores, all three do. On a single core nothing
    is pinned."""
    usable = usable_cores()
    if len(usable) < 2:
        return Cores((), (), ())
    return Cores(tuple(usable[:count]), tuple(usable[count:-1][:most] or usable[-1:]),
                 (usable[-1],))


def named(cores):
    """As in "core 3" and "cores 1, 2"."""
    return "core%s %s" % ("s" * (len(cores) > 1), ", ".join(map(str, cores)))


def shared(cores):
    """Does the server share its cores with the load generator?"""
    return bool({*cores.server} & {*cores.client})


def usable_cores(listed=None):
    """The cores that we may use: one hardware thread of each, because two of them share its units;
    of the socket that has most of them, because another's memory is far away; and of the fastest
    kind only, if there are three of it. `listed`: what lscpu(1) says of each."""
    rows = [line.split(",") for line in (listed or _lscpu()).splitlines() if line[:1].isdigit()]
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


def _lscpu():
    try:
        return output_of(["lscpu", "-p=CPU,CORE,SOCKET,MAXMHZ"])
    except Trouble:  # in a container without it
        return "".join("%d,%d,0,\n" % (core, core) for core in os.sched_getaffinity(0))


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


def processor():
    found = re.search(r"^model name\s*:\s*(.+)$", read("/proc/cpuinfo"), re.MULTILINE)
    return found.group(1) if found else platform.machine()  # ARM has no such line


def cores_text():
    """How many cores we may use."""
    count = len(os.sched_getaffinity(0))
    return "1 core" if count == 1 else "%d cores" % count


def environment():
    """A list of (name, value) that a reader needs to judge the figures."""
    return [
        ("processor", processor()),
        ("cores", cores_text()),
        ("kernel", "%s %s" % (platform.system(), platform.release())),
        *_speed(), *_built(read(os.path.join(SERVERS, "epoll"))),
        ("load average", read("/proc/loadavg").strip()),
        ("descriptors", str(resource.getrlimit(resource.RLIMIT_NOFILE)[1])),
        ("somaxconn", read("/proc/sys/net/core/somaxconn").strip()),
        ("ports", read("/proc/sys/net/ipv4/ip_local_port_range").strip()),
        ("tcp_tw_reuse", read("/proc/sys/net/ipv4/tcp_tw_reuse").strip()),
        ("ZeroHTTPd", _revision()),
        ("sources", sources()),
        ("measured by", measured_by()),
        ("python", platform.python_version()),
    ]


def _speed():
    """What makes two machines with the same processor differ. Pairs."""
    governors = _each(CPU + "cpu[0-9]*/cpufreq/scaling_governor")
    turbo = _setting(CPU + "intel_pstate/no_turbo", "on", "off") or _setting(
        CPU + "cpufreq/boost", "off", "on")
    guards = ["%s: %s" % (os.path.basename(path), read(path).strip().split(";")[0])
              for path in sorted(glob.glob(CPU + "vulnerabilities/*"))]
    memory = re.search(r"^MemTotal:\s*(\d+)", read("/proc/meminfo"), re.MULTILINE)
    nodes = len(glob.glob("/sys/devices/system/node/node[0-9]*"))
    return [
        ("governor", ", ".join(governors) or UNKNOWN),
        ("turbo", turbo or UNKNOWN),
        ("SMT", _setting(CPU + "smt/active", "off", "on") or UNKNOWN),
        ("mitigations", "; ".join(each.replace("Mitigation: ", "") for each in guards
                                  if "Not affected" not in each) or (
                                      "none needed" if guards else UNKNOWN)),
        ("hypervisor", _hypervisor()),
        ("NUMA", "%d node%s" % (nodes, "s" * (nodes > 1)) if nodes else UNKNOWN),
        ("memory", "%.1f GiB" % (int(memory[1]) / 2**20) if memory else UNKNOWN),
    ]


def _each(pattern):
    """The different texts of some files of the kernel."""
    return sorted({read(path).strip() for path in glob.glob(pattern)} - {""})


def _setting(path, zero, one):
    return {"0": zero, "1": one}.get(read(path).strip(), "")


def _hypervisor():
    try:
        vendor = re.search(r"^Hypervisor vendor:\s*(.+)", output_of(["env", "LC_ALL=C", "lscpu"]),
                           re.MULTILINE)
    except Trouble:
        vendor = None
    flags = re.search(r"^flags\s*:(.*)", read("/proc/cpuinfo"), re.MULTILINE)  # ARM has none
    return vendor[1] if vendor else "none" if flags and "hypervisor" not in flags[1] else UNKNOWN


def _built(program):
    """The compiler and its flags, as a compiled program itself names them (-g). Pairs."""
    made = re.search(r"GNU C\d+ ([\d.]+) ([^\0]*)", program)
    name = "gcc " + made[1] if made else "".join(re.findall(
        r"[^\0]*?(clang version [\d.]+)", program)[:1])
    flags = made[2] if made else UNKNOWN
    return [("compiler", name or UNKNOWN),
            ("flags", flags + " -D_FORTIFY_SOURCE" * bool(re.search(r"__\w+_chk\0", program)))]


ARCHIVED = "$Format:%H$"  # `git archive` puts the commit in place of it


def _revision():
    """This project's revision, if git or its archive knows it. Takes no lock, because a commit may
    be under way."""
    if not ARCHIVED.startswith("$"):
        return ARCHIVED[:7]
    try:
        return output_of(["git", "--no-optional-locks", "-C", TOP,
                          "describe", "--always", "--dirty"])
    except Trouble:
        return "unknown revision"


NOT_CODE = re.compile(r"/\*[\s\S]*?\*/|//.*")
SENTENCE = re.compile(r'("(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"\s*)+')
VERSION = re.compile(r'(?<=ZEROHTTPD_VERSION )"[^"\n]*"')


def sources():
    """A fingerprint of the code that is measured. Comments, layout, what messages say in words, and
    the version do not change it."""
    digest = hashlib.sha256()
    for pattern in ("0*/main.c", "common/*.[ch]", "loadtest/*.c", "templates/guestbook/*"):
        for path in sorted(glob.glob(os.path.join(TOP, pattern))):
            code = SENTENCE.sub('""', NOT_CODE.sub("", read(path)))
            code = VERSION.sub("", code)
            digest.update(re.sub(r"\s+", "", code).encode())
    return digest.hexdigest()[:12]


def measured_by():
    """A fingerprint of the code that measures, without what only draws."""
    digest = hashlib.sha256()
    for pattern in ("*", "generators/*", "measuring/*", "subjects/*"):
        for path in sorted(glob.glob(os.path.join(TOP, "loadtest/lib", pattern))):
            if path.endswith((".py", ".lua")):
                digest.update(read(path).encode())
    return digest.hexdigest()[:12]


def read(path):
    """The text of a file of the kernel; "" if it is missing, or not readable for us."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def output_of(command, seconds=5, environment=None):
    """Runs a short command and returns what it prints. Trouble if it fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=seconds, encoding="utf-8",
                              errors="replace", check=False, env=environment)
    except subprocess.TimeoutExpired as error:
        raise Trouble("%s: no end within %g s" % (command[0], seconds)) from error
    except OSError as error:
        raise Trouble("%s: %s" % (command[0], error)) from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise Trouble("%s: %s" % (command[0], last[0] if last else "status %d" % done.returncode))
    return done.stdout.strip()
