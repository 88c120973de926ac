"""processes: what we start, we end.

Whoever is interrupted must not leave a server, a Redis or an ab behind. So every process is started
here, and listed from the same moment on. A signal becomes an exception, which unwinds to tidied(), and
that ends all processes on the list. If we are killed, the kernel kills them (PR_SET_PDEATHSIG).

Each process leads a session of its own, for two reasons. Ctrl-C, which the terminal sends to
its whole foreground group, then reaches only us, and we end the others in order. And a process's
children can be ended with it, by its process group.
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time

from top import Trouble

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)  # found before a fork, because a child should not look for it
MARK = "STARTED_BY", str(os.getpid())  # in the environment of all that we start: a daemon leaves its group
PATIENCE_SECONDS = 6.0  # a server may finish what is in flight: 5 s
POLL_SECONDS = 0.005
SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}

_running = []  # oldest first


class Stopped(BaseException):
    """A signal asked us to stop. Not an Exception, so that it is never taken for a failed cell."""

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number  # the status that a shell gives to a process ended by a signal


@contextlib.contextmanager
def signals_held():
    """A signal that comes during the `with` takes effect at its end. Between starting a process and
    listing it, for example, the signal would lose the process. It is not blocked, because a child
    inherits a blocked signal, and nothing between fork and exec may unblock it beside a running
    thread. Python runs handlers in the main thread only, so no other thread needs this."""
    came = []
    ours = threading.current_thread() is threading.main_thread()
    before = {each: signal.signal(each, lambda number, _frame: came.append(number))
              for each in SIGNALS if ours and signal.getsignal(each) != signal.SIG_IGN}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        for number in came[:1]:
            signal.raise_signal(number)


@contextlib.contextmanager
def _on(cores):
    """This thread runs on these cores, if any are given. So do its children, and theirs, because
    they inherit the cores."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def start(command, cores=(), dies=True, env=None, **popen_options):
    """Starts a process, on these cores if any are given, and lists it. Returns its Popen, which
    belongs to end(). It is killed if the thread that calls this ends before it; not so with dies=False,
    for what tidies up by itself when its input ends."""
    us = os.getpid()

    def end_with_us():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != us:  # we had ended before it was told
            os._exit(1)

    with signals_held(), _on(cores):
        process = subprocess.Popen(command, start_new_session=True, preexec_fn=end_with_us if dies else None,
                                   env={**(os.environ if env is None else env), MARK[0]: MARK[1]}, **popen_options)
        _running.append(process)
    return process


def output_of(command, seconds=5, environment=None):
    """Runs a short command and returns what it prints. Trouble if it fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=seconds, encoding="utf-8",
                              errors="replace", check=False, env=environment)
    except subprocess.TimeoutExpired as error:
        raise Trouble("%s: no end within %g s" % (command[0], seconds)) from error
    except FileNotFoundError as error:
        raise Trouble("%s is missing" % command[0]) from error
    except OSError as error:
        raise Trouble("%s: %s" % (command[0], error)) from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise Trouble("%s: %s" % (command[0], last[0] if last else "status %d" % done.returncode))
    return done.stdout.strip()


def printed(path):
    """The text that a process has written to a file of its own so far."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def has_ended(process):
    """Has it ended? Checks without reaping it. As long as its zombie exists, neither its number nor
    its group's can be given to another process."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def wait(process, seconds=None):
    """Waits for its end, for `seconds` at most (None: no limit). True if it ended."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while not has_ended(process):
        if deadline is not None and time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def end(process, asked=None):
    """The end of its input, if that is a pipe of ours, or else SIGTERM, to the process `asked` if it
    is another. Then patience, and SIGKILL for the rest of its group. Returns the exit status; -N
    means that signal N ended it."""
    if process.stdin:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    if process.returncode is None:
        if not has_ended(process):
            if not process.stdin:
                with contextlib.suppress(ProcessLookupError):  # `asked` may be gone
                    os.kill(asked or process.pid, signal.SIGTERM)  # terminate() might reap it
            wait(process, PATIENCE_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _running.remove(process)
    return process.returncode


def cpu_seconds(of, without=()):
    """The CPU time of what we have started that has ended, and of its children; and `of(pid)` of each that
    still runs. Those that are named are left out."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + sum(of(each.pid) for each in _running if each.pid not in without)


def end_all():
    """Ends what is still running, the youngest first, a server before the Redis it asks. Then what has made itself
    a daemon."""
    for process in reversed(list(_running)):
        end(process)
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open("/proc/%s/environ" % pid, "rb") as file:
                if "=".join(MARK).encode() in file.read().split(b"\0"):
                    os.kill(int(pid), signal.SIGKILL)


@contextlib.contextmanager
def tidied():
    """For a whole program. The first SIGINT, SIGTERM or SIGHUP raises Stopped, and the program ends
    with the status that a shell expects. Later signals are ignored, because they would interrupt
    the tidying up. However the program ends, everything that it has started ends with it. It also ends
    when nobody reads on what it prints, as with head(1)."""

    def stop(number, _frame):
        _ignore_signals()
        raise Stopped(number)

    for each in SIGNALS:
        signal.signal(each, stop)
    try:
        yield
    except Stopped as stopped:
        sys.exit(stopped.status)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is left to be printed
        sys.exit(128 + signal.SIGPIPE)
    finally:
        _ignore_signals()
        end_all()


def _ignore_signals():
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
