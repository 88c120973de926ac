"""machine: cores to pin to, limits, and what a report must say of the machine."""

import os
import platform
import re
import resource
import subprocess
import time
from collections import namedtuple

from lib import Trouble

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLAIN = os.path.join(TOP, os.environ.get("PLAIN") or "build/plain")  # make's objects and programs
IN_PLACE = PLAIN == os.path.join(TOP, "build/plain")  # not so with make's OUT=
SERVERS = TOP if IN_PLACE else PLAIN
BUILD = os.path.dirname(PLAIN) if IN_PLACE else PLAIN  # where a run leaves its results
SPARE_DESCRIPTORS = 64  # what ab or a server has open beside its clients
AB_MOST_CLIENTS = 20000  # ab refuses more

Cores = namedtuple("Cores", "server client")  # None: not pinned


def choose_cores():
    """One core for the server; another for who asks and for Redis, so that neither steals time
    from what is measured. On a single core nothing is pinned. Two hardware threads of one core
    share its units, so the second comes from another core if there is one."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        return Cores(None, None)
    others = [core for core in allowed if core not in _hardware_threads_beside(allowed[0])]
    return Cores(allowed[0], (others or allowed[1:])[0])


def _hardware_threads_beside(core):
    """The numbers that the kernel gives to the threads of this core, its own included."""
    listed = _contents("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list" % core)
    threads = {core}
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", listed):
        threads.update(range(int(first), int(last or first) + 1))
    return threads


def _core_ticks(core):
    """The kernel's account of a core's time: (idle, all). Of all cores together, if `core` is
    empty. proc(5), /proc/stat."""
    found = re.search(r"^cpu%s +([\d ]+)$" % core, _contents("/proc/stat"), re.MULTILINE)
    ticks = [int(word) for word in found.group(1).split()[:8]] if found else [0] * 8
    return ticks[3] + ticks[4], sum(ticks)  # idle, and idle while a disk is busy


def _busy_percent(before, after):
    idle, every = after[0] - before[0], after[1] - before[1]
    return 100.0 * (every - idle) / every if every else None


def others_percent(seconds=0.3):
    """How busy the machine is while we do nothing: others are at work, and the figures will be
    theirs, too. (The load average would not do: it remembers a minute of our own past.)"""
    before = _core_ticks("")
    time.sleep(seconds)
    return _busy_percent(before, _core_ticks("")) or 0.0


def raise_descriptor_limit():
    """Raises the soft limit to the hard one, for ourselves and for all we start. Returns it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def why_not(clients, descriptors):
    """Why this many clients cannot be had here, or None."""
    if clients > AB_MOST_CLIENTS:
        return "ab has %s clients at most" % format(AB_MOST_CLIENTS, ",")
    if descriptors != resource.RLIM_INFINITY and clients + SPARE_DESCRIPTORS > descriptors:
        return "a process may have %s descriptors (ulimit -Hn)" % format(descriptors, ",")
    return None


def processor():
    """The processor's name."""
    found = re.search(r"^model name\s*:\s*(.+)$", _contents("/proc/cpuinfo"), re.MULTILINE)
    return found.group(1) if found else platform.machine()  # ARM has no such line


def cores_text():
    """How many cores we may use."""
    count = len(os.sched_getaffinity(0))
    return "1 core" if count == 1 else "%d cores" % count


def environment():
    """What a reader needs to judge the figures by: a list of (name, value)."""
    return [
        ("processor", processor()),
        ("cores", cores_text()),
        ("kernel", "%s %s" % (platform.system(), platform.release())),
        ("load average", _contents("/proc/loadavg").strip()),
        ("descriptors", str(resource.getrlimit(resource.RLIMIT_NOFILE)[1])),
        ("somaxconn", _contents("/proc/sys/net/core/somaxconn").strip()),
        ("ports", _contents("/proc/sys/net/ipv4/ip_local_port_range").strip()),
        ("tcp_tw_reuse", _contents("/proc/sys/net/ipv4/tcp_tw_reuse").strip()),
        ("ZeroHTTPd", _revision()),
        ("python", platform.python_version()),
    ]


def _revision():
    """Of this project, if git knows it. Takes no lock: somebody may be committing."""
    try:
        return output_of(["git", "--no-optional-locks", "-C", TOP,
                          "describe", "--always", "--dirty"])
    except Trouble:
        return "unknown revision"


def _contents(path):
    """Of a small file of the kernel's; nothing, if it is not there."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def output_of(command, seconds=5):
    """Runs a short command and returns what it prints. Trouble if it fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=seconds, encoding="utf-8",
                              errors="replace", check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble("%s: %s" % (command[0], error)) from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise Trouble("%s: %s" % (command[0], last[0] if last else "status %d" % done.returncode))
    return done.stdout.strip()
