"""cage: runs a program that may do anything, and lets it harm nobody.

A server that is graded may hang, crash, fork without end, eat memory, or write until the disk is
full. So the program that starts it runs in here:

- for a limited time;
- with a limited number of processes and threads: in a control group of its own, where one may be
  made (pids.max), and counted and ended everywhere else, since RLIMIT_NPROC does not bind root;
- with a limit for its address space, for a file's size, and without core files (LIMITS: words to
  put before a server's command);
- as long as its folder is small and the machine has memory left, and it takes no more of that than
  it was given.

Afterwards everything that has come from it is ended, by number, wherever its parents have gone:
orphans come to us (PR_SET_CHILD_SUBREAPER).
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import time

import places  # noqa: F401  (finds lib)
from lib.measuring import meter, processes

PR_SET_CHILD_SUBREAPER = 36
LOOK_SECONDS = 0.05
MOST_TASKS = 1200  # eight servers at a time with a hundred workers each are 800
MOST_FOLDER = 1 << 30
LEAST_MEMORY = 200 << 20  # that the machine must have left
MOST_OUTPUT = 64 << 20
GIB = 1 << 30
TOO_LONG = "it was not done"  # begins the reason for a program that needs more time, and no other

# Address space is not memory: a hundred threads reserve 7 GiB, stacks and arenas, and touch little.
LIMITS = ["prlimit", "--core=0", "--fsize=%d" % MOST_OUTPUT, "--as=%d" % (24 * GIB)]


def adopt_orphans():
    """From here on, a descendant of ours that loses its parent becomes our child."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def watch_first():
    """As root we come before a thousand processes that never sleep. What we start is scheduled as
    ever."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def descendants():
    """The Stats of all that has come from us and still lives."""
    stats = meter.everybody()
    family = meter.below({os.getpid()}, stats) - {os.getpid()}
    return [stat for stat in stats if stat.pid in family]


def end_descendants():
    """SIGKILL for all of them, again and again, until none is left: a fork may be under way. They
    are stopped first, so that none can make more while we go through the list, and so that those
    that have to die need not wait for those that run."""
    while True:
        living = [stat.pid for stat in descendants() if not _is_over(stat.pid)]
        if not living:
            return
        _signal(living, signal.SIGSTOP)
        _signal(living, signal.SIGKILL)
        time.sleep(0.002)


def _signal(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _is_over(pid):
    """Reaps it, if it is our child."""
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    stat = meter.read("/proc/%d/stat" % pid)
    return not stat or ") Z " in stat


# ---- how many there may be -----------------------------------------------------------------


class Group:
    """A control group with pids.max. Where none may be made, its path is None."""

    def __init__(self, most):
        self.path = None
        for parent in self._parents():
            path = os.path.join(parent, "zerohttpd-grade-%d" % os.getpid())
            with contextlib.suppress(OSError):
                os.mkdir(path)
                try:
                    write(path, "pids.max", most)
                    self.path = path
                    return
                except OSError:
                    os.rmdir(path)

    @staticmethod
    def _parents():
        """Our own group in each hierarchy that may count processes: version 1, then version 2."""
        for line in meter.read("/proc/self/cgroup").splitlines():
            _, controllers, own = line.split(":", 2)
            if controllers == "pids":
                yield "/sys/fs/cgroup/pids" + own
            elif not controllers:
                yield "/sys/fs/cgroup" + own

    def entered(self):
        """Words to put before a command, which enter the group first."""
        procs = self.path and os.path.join(self.path, "cgroup.procs")
        return ["sh", "-c", 'echo 0 >"$0" && exec "$@"', procs] if procs else []

    def close(self):
        """From here on none in it gets a process, so that all can be ended."""
        if self.path:
            write(self.path, "pids.max", 0)

    def is_full(self):
        events = meter.read(os.path.join(self.path, "pids.events")) if self.path else ""
        return any(int(word) for word in events.split() if word.isdecimal())

    def remove(self):
        for _ in range(100 if self.path else 0):  # its last process may still be on its way out
            with contextlib.suppress(OSError):
                os.rmdir(self.path)
                return
            time.sleep(LOOK_SECONDS)


def write(folder, name, number):
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.write(str(number))


# ---- what may be too much ------------------------------------------------------------------


def _tasks_everywhere():
    """All threads of the machine: quickly read."""
    return int(meter.read("/proc/loadavg").split()[3].partition("/")[2])


def _own_memory():
    """What all of them have in memory together: statm of proc(5), its second number."""
    texts = (meter.read("/proc/%d/statm" % stat.pid) for stat in descendants())
    return sum(int(text.split()[1]) for text in texts if text) * os.sysconf("SC_PAGE_SIZE")


def _folder_size(folder):
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(path, name)).st_blocks * 512
    return size


class Watch:
    """Looks for what is too much. excess() says it in words, or None. What is slow to count is
    counted at every fifth look, or when the machine as a whole shows that it may be too much."""

    def __init__(self, folder, group, most_tasks, most_memory):
        self._folder = folder
        self._group = group
        self._most_tasks = most_tasks
        self._most_memory = most_memory
        self._tasks_before = _tasks_everywhere()
        self._looks = 0

    def excess(self):
        self._looks += 1
        if self._group.is_full():
            return "more than %d processes and threads were wanted" % self._most_tasks
        if _tasks_everywhere() - self._tasks_before > self._most_tasks:
            tasks = sum(stat.threads for stat in descendants())
            if tasks > self._most_tasks:
                return "%d processes and threads" % tasks
        return self._slow_excess() if self._looks % 5 == 0 else None

    def _slow_excess(self):
        size = _folder_size(self._folder)
        if size > MOST_FOLDER:
            return "%d MiB were written" % (size >> 20)
        memory = _own_memory() if self._most_memory else 0
        if self._most_memory and memory > self._most_memory:
            return "%d MiB of memory" % (memory >> 20)
        left = meter.available_memory()
        if left is not None and left < LEAST_MEMORY:
            return "the machine has hardly any memory left"
        return None


# ---- a program in it -----------------------------------------------------------------------


def run(command, folder, log, seconds, most_tasks=MOST_TASKS, environment=None, most_memory=None):
    """Runs it to its end, with what it prints in the file `log`, and ends all that it leaves
    behind. Returns (its status, why it was stopped or None)."""
    group = Group(most_tasks)
    watch = Watch(folder, group, most_tasks, most_memory)
    deadline = time.monotonic() + seconds
    with open(log, "wb") as out:
        process = subprocess.Popen([*group.entered(), *command], cwd=places.TOP, env=environment,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                   start_new_session=True)
    why = None
    try:
        while not why and not processes.wait(process, LOOK_SECONDS):
            why = watch.excess()
            if time.monotonic() > deadline:
                why = why or "%s within %d s" % (TOO_LONG, seconds)
        why = why or watch.excess()  # the end of it all may have been its doing
    finally:
        with processes.signals_held():
            group.close()
            _signal([stat.pid for stat in descendants()], signal.SIGSTOP)
            if not processes.has_ended(process):
                process.kill()
            status = process.wait()
            end_descendants()
            group.remove()
    return status, why
