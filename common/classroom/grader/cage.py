"""cage: runs a program that may do anything, and lets it harm nobody.

A server that is graded may hang, crash, fork without end, eat memory, or write until the disk is
full. So whatever starts it runs in here:

- for a limited time;
- with so many processes and threads at most: in a control group of its own, where one may be made
  (pids.max), and counted and ended everywhere else, since RLIMIT_NPROC does not bind root;
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
from lib import meter, processes

PR_SET_CHILD_SUBREAPER = 36
LOOK_SECONDS = 0.05
MOST_TASKS = 1200  # eight servers at a time with a hundred workers each are 800
MOST_FOLDER = 1 << 30
LEAST_MEMORY = 200 << 20
MOST_OUTPUT = 64 << 20
GIB = 1 << 30
TOO_LONG = "it was not done"  # what is said of who needs more time, and of nobody else

# Address space is not memory: a hundred threads reserve 7 GiB, stacks and arenas, and touch little.
LIMITS = ["prlimit", "--core=0", "--fsize=%d" % MOST_OUTPUT, "--as=%d" % (24 * GIB)]


def adopt_orphans():
    """From here on, who loses its parent among our descendants becomes our child."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def watch_first():
    """Who watches comes before a thousand who never sleep, where we may have that: as root. What we
    start is scheduled as ever."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def descendants():
    """The Stats of all that has come from us and still lives."""
    stats = meter.everybody()
    family = meter.below({os.getpid()}, stats) - {os.getpid()}
    return [stat for stat in stats if stat.pid in family]


def _is_zombie(pid):
    return ") Z " in meter.read("/proc/%d/stat" % pid)


def end_descendants():
    """SIGKILL for all of them, again and again, until nobody is left: a fork may be under way.
    They are stopped first, so that none can make more while we go through the list, and so that
    those who have to die need not wait for those who run."""
    while True:
        living = [stat.pid for stat in descendants() if not _reap(stat.pid)]
        if not living:
            return
        _signal(living, signal.SIGSTOP)
        _signal(living, signal.SIGKILL)
        time.sleep(0.002)


def _signal(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _reap(pid):
    """Is it over? If it is our child, it is buried, too."""
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return _is_zombie(pid) or not os.path.exists("/proc/%d" % pid)


def end_for_good():
    """The last act of a program: all that is left goes, and no signal interrupts that."""
    for number in processes.SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    end_descendants()
    for group in list(_groups):
        group.remove()


# ---- how many there may be -----------------------------------------------------------------


_groups = []  # those that have not been removed


class Group:
    """A control group with pids.max, if one may be made here; else it says so, and does nothing."""

    def __init__(self, most):
        self.path = None
        _groups.append(self)
        for parent in self._parents():
            path = os.path.join(parent, "zerohttpd-grade-%d" % os.getpid())
            with contextlib.suppress(OSError):
                os.mkdir(path)
                self.path = path
                try:
                    self._write("pids.max", str(most))
                    return
                except OSError:
                    self.path = None
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
        """Words to put before a command: who runs it enters the group first."""
        procs = self.path and os.path.join(self.path, "cgroup.procs")
        return ["sh", "-c", 'echo 0 >"$0" && exec "$@"', procs] if procs else []

    def close(self):
        """From here on nobody in it gets a process; so that all can be ended."""
        self._write("pids.max", "0")

    def _write(self, name, text):
        if self.path:
            with open(os.path.join(self.path, name), "w", encoding="ascii") as file:
                file.write(text)

    def full(self):
        """How often somebody was refused a process."""
        events = meter.read(os.path.join(self.path, "pids.events")) if self.path else ""
        return sum(int(word) for word in events.split() if word.isdecimal())

    def remove(self):
        _groups.remove(self)
        if not self.path:
            return
        for _ in range(100):  # its last process may still be on its way out
            with contextlib.suppress(OSError):
                os.rmdir(self.path)
                return
            time.sleep(LOOK_SECONDS)


# ---- what may be too much ------------------------------------------------------------------


def _tasks_everywhere():
    """All threads of the machine: quickly read."""
    return int(meter.read("/proc/loadavg").split()[3].partition("/")[2])


def _own_tasks():
    return sum(stat.threads for stat in descendants())


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


def _memory_left():
    left = meter.available_memory()
    return LEAST_MEMORY if left is None else left


class Watch:
    """Looks for what is too much. excess() says it in words, or None."""

    def __init__(self, folder, group, most_tasks, most_memory=None):
        self._folder = folder
        self._group = group
        self._most_tasks = most_tasks
        self._most_memory = most_memory
        self._memory_before = _memory_left()
        self._tasks_before = _tasks_everywhere()
        self._looks = 0

    def excess(self):
        self._looks += 1
        if self._group.full():
            return "more than %d processes and threads were wanted" % self._most_tasks
        if _tasks_everywhere() - self._tasks_before > self._most_tasks:
            tasks = _own_tasks()
            if tasks > self._most_tasks:
                return "%d processes and threads" % tasks
        if self._most_memory and self._memory_before - _memory_left() > self._most_memory // 4:
            memory = _own_memory()
            if memory > self._most_memory:
                return "%d MiB of memory" % (memory >> 20)
        if self._looks % 5 == 0:
            size = _folder_size(self._folder)
            if size > MOST_FOLDER:
                return "%d MiB were written" % (size >> 20)
            if _memory_left() < LEAST_MEMORY:
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
        group.close()
        _signal([stat.pid for stat in descendants()], signal.SIGSTOP)
        if not processes.has_ended(process):
            process.kill()
        status = process.wait()
        end_descendants()
        group.remove()
    return status, why
