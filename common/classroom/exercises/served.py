"""served: a program under test, from its banner to its end, as the kernel sees it.

All that is asked here comes from the kernel (proc(5), sock_diag(7)) or was printed by the program
itself, so that it can be asked at any time, and disturbs nobody.
"""

import contextlib
import functools
import os
import re
import signal
import time
from collections import namedtuple

import diag
from lib import Trouble
from lib.measuring import machine, meter, processes
from lib.subjects import servers
from outcome import Missed, Skipped, patient, schedule, until

END_SECONDS = 8  # a server may finish what is in flight: 5 s
SANITIZER = re.compile("ERROR: [A-Z][A-Za-z]+Sanitizer: |: runtime error: ")
ADDRESS = re.compile(r"http://(\[[0-9A-Fa-f:.]+\]|[0-9.]+|localhost):[0-9]{1,5}")
HELPERS = re.compile("/(strace|addr2line|llvm-symbolizer[^/]*)$")  # ours, or a sanitizer's
PF_EXITING = 0x4
RACES = 66  # the exit status with which the thread sanitizer says that it has seen some
Call = namedtuple("Call", "pid name arguments result error")  # result: an int or None


class Server(servers.Server):
    """Made by ex.serve() or ex.project(), and ended with the check."""

    def __init__(self, binary, redis, log, options, prefix=(), trace=None):
        super().__init__(binary, redis, None, log + ".out", options, prefix, errors=log + ".err")
        for path in (log + ".out", log + ".err"):  # another user may open them, as /dev/stdout
            with open(path, "w", encoding="ascii"):
                os.chmod(path, 0o622)
        self._own = os.stat(binary)
        self._binary = binary
        self._trace = trace  # where strace writes
        self._status = None  # the one it ended with

    def __enter__(self):
        servers.START_SECONDS = patient(5)
        try:
            super().__enter__()
            if not ADDRESS.fullmatch(self.url) or self.port >= 1 << 16:
                raise Trouble("it says it listens on %s" % self.url)
            return self
        except (Trouble, Missed) as trouble:
            self.__exit__()
            raise Missed("starts", "a server that says where it listens", str(trouble)) from trouble

    def __exit__(self, *exception):
        """What is left of it goes at once: nothing is looked at any more."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            processes.end(self._process)

    @property
    def host(self):
        return re.match(r"http://\[?(.*?)\]?:\d+$", self.url).group(1)

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    # ---- its processes and threads -------------------------------------------------------

    def children(self):
        """The pids of its child processes, zombies left out."""
        return [stat.pid for stat in self.child_stats() if stat.state != "Z"]

    def zombies(self):
        """The pids of its children that have ended and that it has not waited for."""
        return [stat.pid for stat in self.child_stats() if stat.state == "Z"]

    def child_stats(self):
        """A meter.Stat of each of its child processes."""
        return [stat for stat in meter.everybody() if stat.parent == self.pid]

    def strangers(self):
        """What its processes run, if it is another program than this one: they have called exec."""
        for pid in meter.family(self.pid, meter.everybody()):
            with contextlib.suppress(OSError):  # it has ended
                exe = "/proc/%d/exe" % pid
                name = os.readlink(exe)
                if not os.path.samestat(os.stat(exe), self._own) and not HELPERS.search(name):
                    yield name

    def _tasks(self, pid):
        """The numbers of a process's threads. The thread sanitizer's own, which it starts before any of
        the program's, is left out."""
        def born(task):
            words = meter.read("/proc/%d/task/%d/stat" % (pid, task)).rpartition(") ")[2].split()
            return task != pid, int(words[19]) if words else float("inf"), task

        tasks = list(map(int, os.listdir("/proc/%d/task" % pid)))
        if finds_races(self._binary):
            tasks.sort(key=born)
            del tasks[1:2]
        return tasks

    def threads(self, pid=None):
        """How many it has, or another process of its own has."""
        return len(self._tasks(pid or self.pid))

    def thread_states(self):
        """{thread id: a letter}, as ps(1) shows it: R runs, S sleeps, T is stopped (t under strace),
        Z has ended."""
        texts = {task: meter.read("/proc/%d/task/%d/stat" % (self.pid, task))
                 for task in self._tasks(self.pid)}
        return {thread: text.rpartition(") ")[2][0] for thread, text in texts.items() if text}

    def asleep(self):
        """Do all its threads sleep? A worker that looks up at each tick does so nearly always."""
        return set(self.thread_states().values()) == {"S"}

    @contextlib.contextmanager
    def frozen(self):
        """For the time of a `with` none of its threads goes a step further: what comes meanwhile
        will be found all at once."""
        os.kill(self.pid, signal.SIGSTOP)
        until(lambda: set(self.thread_states().values()) <= set("TtZ"), END_SECONDS)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def descriptors(self, pid=None):
        return len(os.listdir("/proc/%d/fd" % (pid or self.pid)))

    def status(self, field, pid=None):
        """A line of /proc/PID/status: a number (kB, if it is memory) or a text."""
        text = meter.read("/proc/%d/status" % (pid or self.pid))
        found = re.search(r"^%s:\s*(.*)$" % field, text, re.MULTILINE)
        if not found:
            raise ProcessLookupError("no %s in /proc/%d/status" % (field, pid or self.pid))
        number = re.fullmatch(r"(\d+)(?: kB)?", found.group(1))
        return int(number.group(1)) if number else found.group(1)

    def naps(self, tasks):
        """{a process or thread: how often it has gone to sleep so far} of those that live."""
        found = {}
        for task in tasks:
            with contextlib.suppress(ProcessLookupError):
                found[task] = self.status("voluntary_ctxt_switches", task)
        return found

    def cpu_seconds(self):
        """What it has used, its children included, those that have ended as well."""
        return meter.cpu_seconds(meter.Tree(self.pid).stats())

    def ran(self, pid=None):
        """The seconds that its main thread has run, or that of another process of its own."""
        return schedule(pid or self.pid)[0]

    def slept(self, clock=time.monotonic):
        """The seconds of a clock in which its main thread did not run and did not wait for a core: by how
        much they grow, it has slept."""
        return clock() - sum(schedule(self.pid))

    def listeners(self):
        """How many sockets would take another client at its port, as `ss -ltn` shows them."""
        return sum(each.state == diag.LISTEN for each in diag.connections(self.port))

    def waiting(self):
        """How many stand in the accept queue of its port: Recv-Q, as ss(8) shows it."""
        return sum(each.unread for each in diag.connections(self.port) if each.state == diag.LISTEN)

    def family(self):
        """Those of its session that live, itself left out: whatever has become of their parents."""
        return [stat.pid for stat in meter.everybody()
                if stat.session == self.pid and stat.state != "Z" and stat.pid != self.pid]

    def unread(self):
        """How many bytes have come from its clients that it has not taken yet."""
        return sum(each.unread for each in diag.connections(self.port)
                   if each.state == diag.ESTABLISHED)

    def remembered(self):
        """How many connections that it has ended the kernel keeps in TIME_WAIT."""
        return sum(each.state == diag.TIME_WAIT for each in diag.connections(self.port))

    # ---- what waiting and forgetting cost ------------------------------------------------

    def wakeups(self, seconds):
        """How often its threads wake up in so many seconds, and how many do not sleep at the end.
        The main thread is left out: it ticks."""
        before = self._switches()
        time.sleep(seconds)  # a measurement needs this time; nothing is waited for
        after = self._switches()
        awake = sum(state != "S" for thread, state in self.thread_states().items()
                    if thread != self.pid)
        return sum(after[thread] - before.get(thread, 0) for thread in after) + awake

    def _switches(self):
        """{thread: how often its core was given to another}."""
        return {thread: self.status("voluntary_ctxt_switches", thread)
                + self.status("nonvoluntary_ctxt_switches", thread)
                for thread in self.thread_states() if thread != self.pid}

    def own_memory(self):
        """Bytes of memory that belong to no file. Exact: VmRSS may lack pages of each thread."""
        return meter.kib(meter.read("/proc/%d/smaps_rollup" % self.pid), "Anonymous")

    # ---- what it says --------------------------------------------------------------------

    def printed(self):
        return processes.printed(self._log)

    def errors(self):
        return processes.printed(self._errors)

    # ---- its end -------------------------------------------------------------------------

    def alive(self):
        return not processes.has_ended(self._process)

    def _exits(self):
        """Has it ended, or begun to? The flags are those of the kernel's include/linux/sched.h."""
        flags = meter.read("/proc/%d/stat" % self.pid).rpartition(") ")[2].split()[6]
        return bool(int(flags) & PF_EXITING)

    def end(self, number=signal.SIGTERM):
        """Sends a signal (None: it is ending by itself) and waits. Returns the exit status; -N
        means that signal N ended it. Whatever it leaves behind can still be looked at."""
        if self._status is None:
            if number is not None and self.alive():
                os.kill(self.pid, number)
            if not until(lambda: not self.alive(), END_SECONDS):
                raise Missed("ends", "an end after %s" % name_of(number),
                             "a server that still runs %g s later" % patient(END_SECONDS))
            self._status = status_of(self.pid)
        return self._status

    def death(self):
        """How it has ended by itself, and what it said at last; "" if it lives, or was told to
        end. Its clients see their connections end a moment before it has."""
        if self._status is None and self._exits():
            until(lambda: not self.alive(), END_SECONDS)
        if self._status is not None or self.alive():
            return ""
        status = status_of(self.pid)
        said = (self.errors().strip() or "nothing").splitlines()
        said += [line for line in said if SANITIZER.search(line)][:1]  # what it says first counts
        how = "signal %s" % name_of(-status) if status < 0 else "status %d" % status
        return "%s has ended with %s; on standard error: %s" % (self.name, how, said[-1])

    @property
    def calls(self):
        """The Calls it has made, in order, if it was started with under=ex.traced(...) and has
        ended."""
        end = re.compile(r"^%d +\+\+\+ " % self.pid, re.MULTILINE)
        until(lambda: end.search(processes.printed(self._trace)), END_SECONDS)
        return list(parse_trace(processes.printed(self._trace)))


@functools.lru_cache()
def finds_races(program):
    """Is it built with the thread sanitizer?"""
    with open(program, "rb") as file:
        return b"__tsan_init" in file.read()


def status_of(pid):
    """The exit status of a child of ours that has ended, which stays to be waited for."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def name_of(number):
    return "its own accord" if number is None else signal.Signals(number).name


# ---- strace --------------------------------------------------------------------------------

BEGUN = re.compile(r"^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
WHOLE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (\S+)(?: (E[A-Z0-9]+))?.*$")


class Traced(list):
    """The command that strace(1) is put before a server with, and where it writes. -D: the process
    that is started is the server itself, and strace a grandchild. A `?` before a name: where the
    machine has no such call, it is not missed. Other calls cost nothing: --seccomp-bpf."""

    def __init__(self, calls, trace):
        names = [name if name[0] in "?/%" else "?" + name for name in calls.split(",")]
        super().__init__(["strace", "-D", "-f", "--seccomp-bpf", "-q", "-s", "64", "-o", trace,
                          "-e", "trace=" + ",".join(names)])
        self.trace = trace


def need_strace():
    """Skipped if strace is not there, or may not trace here."""
    try:
        machine.output_of(["strace", "-o", os.devnull, "true"])
    except Trouble as trouble:
        raise Skipped("strace is missing, or may not trace here: %s" % trouble) from trouble


def parse_trace(text):
    """The Calls in what strace -f has written. A call that another thread's cut in two is joined;
    it stands where it returned."""
    halves = {}
    for line in text.splitlines():
        begun = BEGUN.match(line)
        if begun:
            halves[begun.group(1)] = begun.group(3)
            continue
        resumed = RESUMED.match(line)
        if resumed:
            pid, name, rest = resumed.groups()
            line = "%s %s(%s%s" % (pid, name, halves.pop(pid, ""), rest)
        whole = WHOLE.match(line)
        if whole:
            pid, name, arguments, result, error = whole.groups()
            yield Call(int(pid), name, arguments, number_of(result), error)


def number_of(result):
    try:
        return int(result, 0)
    except ValueError:
        return None  # "?"
