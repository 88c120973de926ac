"""A process, as /proc shows it: for tests that look whether what they started is gone."""

import time


def runs(pid):
    """Is it there, and not only its zombie, which init has yet to reap?"""
    stat = _stat(pid)
    return bool(stat) and stat[0] != "Z"


def gone_within(seconds, pid):
    """Is there no such process any more?"""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not runs(pid):
            return True
        time.sleep(0.01)
    return False


def cpu_seconds(pid):
    return sum(map(int, _stat(pid)[11:13])) / 100


def _stat(pid):
    """What stands behind its name in /proc/PID/stat; nothing, if it is gone."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []
