"""served: a program under test, from its banner to its end, as the kernel sees it.

All that is asked here comes from the kernel (proc(5), sock_diag(7)) or was printed by the program
itself, so that it can be asked at any time, and disturbs nobody.
"""

import contextlib
import functools
import os
import re
import resource
import signal
import time

import calls
import proc
import processes
import servers
import top
from top import Trouble
from waiting import Missed, Skipped, patient, until

END_SECONDS = 8  # a server may finish what is in flight: 5 s
SANITIZER = re.compile("ERROR: [A-Z][A-Za-z]+Sanitizer: |: runtime error: ")
HELPERS = re.compile("/(strace|addr2line|llvm-symbolizer[^/]*)$")  # ours, or a sanitizer's
MOST_WRITTEN = 1 << 26  # bytes
RACES = 66  # the exit status with which the thread sanitizer says that it has seen some


class Server(servers.Server):
    """Made by ex.serve() or ex.project(), and ended with the check."""

    def __init__(self, binary, redis, log, options, prefix=(), trace=None):
        super().__init__(binary, redis, log + ".out", options, prefix, errors=log + ".err")
        self._own = os.stat(binary)
        self._binary = binary
        self._trace = trace  # where strace writes
        self._status = None  # the one it ended with

    def __enter__(self):
        servers.START_SECONDS = patient(5)
        try:
            return super().__enter__()
        except (Trouble, Missed) as trouble:
            self.__exit__()
            raise Missed("starts", "a server that says where it listens", str(trouble)) from trouble

    def __exit__(self, *exception):
        """What is left of it goes at once: nothing is looked at any more."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            processes.end(self._process)

    def must_have_rare(self):
        """Skipped, if that library is not in a server that lives, although it was to be preloaded."""
        maps = proc.read("/proc/%d/maps" % self.pid)
        if maps and "rare.so" not in maps:
            raise Skipped("rare.so could not be loaded into it before the C library. Is it linked statically?")

    # ---- its processes and threads -------------------------------------------------------

    def children(self):
        """The pids of its child processes, zombies left out."""
        return [stat.pid for stat in self.child_stats() if stat.state != "Z"]

    def zombies(self):
        """The pids of its children that have ended and that it has not waited for."""
        return [stat.pid for stat in self.child_stats() if stat.state == "Z"]

    def child_stats(self):
        """A proc.Stat of each of its child processes."""
        return [stat for stat in proc.everybody() if stat.parent == self.pid]

    def strangers(self):
        """What its processes run, if it is another program than this one: they have called exec."""
        for pid in proc.family(self.pid):
            with contextlib.suppress(OSError):  # it has ended
                exe = "/proc/%d/exe" % pid
                name = os.readlink(exe)
                if not os.path.samestat(os.stat(exe), self._own) and not HELPERS.search(name):
                    yield name

    def _threads(self, pid):
        """A Stat of each of a process's threads. The thread sanitizer's own, which it starts before any of
        the program's, is left out."""
        found = sorted(proc.threads(pid), key=lambda each: (each.pid != pid, each.born, each.pid))
        if finds_races(self._binary):
            del found[1:2]
        return found

    def threads(self, pid=None):
        """How many it has, or another process of its own has."""
        return len(self._threads(pid or self.pid))

    def thread_states(self):
        """{thread id: a letter}, as ps(1) shows it: R runs, S sleeps, T is stopped (t under strace),
        Z has ended."""
        return {each.pid: each.state for each in self._threads(self.pid)}

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
        return len(os.listdir("/proc/%d/fd" % proc.witness(pid or self.pid)))

    def status(self, field, pid=None):
        """A line of /proc/PID/status: a number (kB, if it is memory) or a text."""
        return proc.status(pid or self.pid, field)

    def naps(self, tasks):
        """{a process or thread: how often it has gone to sleep so far} of those that live."""
        found = {}
        for task in tasks:
            with contextlib.suppress(ProcessLookupError):
                found[task] = self.status("voluntary_ctxt_switches", task)
        return found

    def cpu_seconds(self):
        """What it has used, its children included, those that have ended as well."""
        return proc.cpu_seconds(proc.everybody(proc.family(self.pid)))

    def ran(self, pid=None):
        """The seconds that its main thread has run, or that of another process of its own."""
        return proc.schedule(pid or self.pid)[0]

    def slept(self, clock=time.monotonic):
        """The seconds of a clock in which its main thread did not run and did not wait for a core: by how
        much they grow, it has slept."""
        return clock() - sum(proc.schedule(self.pid))

    def listeners(self):
        """How many sockets would take another client at its port, as `ss -ltn` shows them."""
        return sum(each.state == proc.LISTEN for each in proc.connections(self.port))

    def waiting(self):
        """How many stand in the accept queue of its port: Recv-Q, as ss(8) shows it."""
        return sum(each.unread for each in proc.connections(self.port) if each.state == proc.LISTEN)

    def family(self):
        """Those of its session that live, itself left out: whatever has become of their parents."""
        return [stat.pid for stat in proc.everybody()
                if stat.session == self.pid and stat.state != "Z" and stat.pid != self.pid]

    def unread(self):
        """How many bytes have come from its clients that it has not taken yet."""
        return sum(each.unread for each in proc.connections(self.port)
                   if each.state == proc.ESTABLISHED)

    # ---- what waiting and forgetting cost ------------------------------------------------

    def wakeups(self, seconds):
        """How often its threads wake up in so many seconds, and how many do not sleep at the end.
        The main thread is left out: it ticks."""
        before = self.naps(self.thread_states())
        time.sleep(seconds)  # a measurement needs this time; nothing is waited for
        states = self.thread_states()
        del states[self.pid]
        after = self.naps(states)
        return sum(after[thread] - before.get(thread, 0) + (states[thread] != "S") for thread in after)

    def own_memory(self):
        """Bytes of memory that belong to no file. Exact: VmRSS may lack pages of each thread."""
        return proc.kib(proc.read("/proc/%d/smaps_rollup" % proc.witness(self.pid)), "Anonymous")

    # ---- what it says --------------------------------------------------------------------

    def printed(self):
        return processes.printed(self._log)

    def errors(self):
        return processes.printed(self._errors)

    # ---- its end -------------------------------------------------------------------------

    def alive(self):
        return not processes.has_ended(self._process)

    def _exits(self):
        """Has it ended, or begun to?"""
        return any(stat.flags & proc.PF_EXITING for stat in proc.everybody([self.pid]))

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
        """The Calls it has made, if it was started with under=ex.traced(...) and has ended."""
        def read():
            return calls.read(processes.printed(self._trace).splitlines())

        until(lambda: self.pid in read()[1], END_SECONDS)
        return read()[0]


def rare(what, folder):
    """Variables for a server to which such things happen: rare.c says which there are. make builds it. The path for
    LD_PRELOAD, where no blank may be, is a link, because what lies in /tmp may perhaps not be executed.
    AddressSanitizer has to bear that its own library is not the first one."""
    link = os.path.join(folder, "rare.so")
    if not os.path.islink(link):
        os.symlink(top.make("build/plain/common/classroom/rare.so"), link)
    return {"LD_PRELOAD": link, "RARE": what, "ASAN_OPTIONS": "verify_asan_link_order=0"}


def limit_files():
    """What is started from now on writes no longer file: setrlimit(2). An endless message would fill the disk."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_WRITTEN if most < 0 else min(MOST_WRITTEN, most), most))


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


def must_trace():
    """Skipped, if strace(1) cannot be used here."""
    try:
        calls.must_work()
    except Trouble as trouble:
        raise Skipped(str(trouble)) from trouble


class Traced(list):
    """The command that strace(1) is put before a server with, and where it writes."""

    def __init__(self, names, trace):
        must_trace()
        super().__init__(calls.command(trace, *names.split(",")))
        self.trace = trace
