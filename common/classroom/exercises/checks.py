"""checks: what the check of an exercise is given, as `ex`.

    REASON = "replaced"        # the expectation that the starting file misses

    def check(ex):
        server = ex.serve("--workers", "4")
        victim = server.children()[0]
        ex.did("killed worker %d" % victim)
        os.kill(victim, signal.SIGKILL)
        ex.expect("replaced", "a fourth worker again within a second",
                  lambda: len(server.children()) == 4, saw=lambda: len(server.children()),
                  within=1, hint=2, read="waitpid(2)")

    SAN = "address,undefined"  # optional: the program is built with these sanitizers

A check does something to the learner's program, from outside, and says what it expects then. It
waits for events, with limits that end it and measure nothing (see outcome). If it has no verdict
after two minutes, that is one. Whatever it starts ends with it, however it ends.
"""

import contextlib
import glob
import importlib.util
import os
import random
import re
import shlex
import signal
import subprocess
import tempfile
from collections import namedtuple
from pathlib import Path

import exercises  # first: it says where the shared library is
import client
import processes
import redis
import served
import top
from redises import CountingRedis, HeldRedis
from top import Trouble
from waiting import Missed, Skipped, clock, patient, until
from words import how_many

NOBODY = "127.0.0.1:1"  # a port where no Redis is
RUN_SECONDS = 10
CHECK_SECONDS = 120
MOST_PRINTED = 1 << 16  # bytes
LEAKS = "ASAN_OPTIONS", "detect_leaks=0"  # leaks cannot be looked for under strace
AN_END = "an end of the connection, and no answer"
NO_ANSWER = "'NoneType' object has no attribute"  # client.hear().status, where hear() gave None

__all__ = ["Exercise", "Missed", "Skipped", "Trouble", "judge", "load"]

Finished = namedtuple("Finished", "status stdout stderr")  # of a program's run; -N: signal N ended it


class Exercise:
    """One check of one program, for the time of a `with`."""

    def __init__(self, program, say=print):
        self.program = program  # the path of the learner's program, built
        self.folder = None  # for the check's own files; it goes with it
        self._say = say
        self._stack = contextlib.ExitStack()
        self._redis = None
        self._servers = []

    def __enter__(self):
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="zerohttpd.", dir="/tmp"))
        self.folder = folder
        return self

    def __exit__(self, *exception):
        self._stack.close()

    # ---- programs ------------------------------------------------------------------------

    def serve(self, *options, redis=None, under=(), env=None, built=None):
        """Starts the learner's program on a free port, and returns its Server when it has printed
        its banner. `redis`: what ex.redis() and its like return; without it there is none. `under`:
        what comes before the command, as ex.traced(). `env`: further variables of its environment.
        `built`: another program of make's instead, as "build/plain/loadtest/floor"."""
        program = make(built) if built else self.program
        return self._serve(program, options, redis, under, env)

    def project(self, name, *options, redis=None, under=(), env=None):
        """The same for one of the project's seven servers."""
        make(name)
        return self._serve(top.path_of(name), options, redis, under, env)

    def _serve(self, program, options, redis, under, env):
        variables = ["%s=%s" % pair for pair in (env or {}).items()]
        self.did("started %s" % " ".join([*variables, os.path.basename(program), *options]))
        prefix = [*(["env", *variables] if variables else []), *for_races(program), *under]
        log = os.path.join(self.folder, "server-%d" % len(self._servers))
        server = served.Server(program, redis.where if redis else NOBODY, log, options, prefix,
                               getattr(under, "trace", None))
        self._servers.append(self._stack.enter_context(server))
        if env and "RARE" in env:
            server.must_have_rare()
        return server

    def traced(self, calls):
        """For `under`: strace writes down these system calls, "accept4,recvfrom"; server.calls has
        them when it has ended."""
        return served.Traced(calls, os.path.join(self.folder, "trace-%d" % len(self._servers)))

    def rare(self, what):
        """For `env`: what happens in the server, as "thread,early" (rare.c). Nothing in a program with
        sanitizers, whose own library has to be the first that is loaded."""
        return {} if os.environ.get("SAN") else served.rare(what, self.folder)

    def run(self, *arguments, limit=RUN_SECONDS, descriptors=None):
        """Runs the learner's program to its end. Returns .status, .stdout and .stderr.
        `descriptors`: how many it may have open at a time, its first three among them."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            process = self._start(arguments, descriptors, out, errors)
            ended = processes.wait(process, patient(limit))
            if not ended:
                process.kill()
            status = processes.end(process)
            said = [read_all(file) for file in (out, errors)]
        if not ended:
            raise Missed("ends", "a program that ends by itself",
                         "that it still ran after %g s" % patient(limit))
        self.did("ran %s" % " ".join([os.path.basename(self.program), *map(str, arguments)]))
        return Finished(status, *said)

    @contextlib.contextmanager
    def running(self, *arguments, descriptors=None):
        """The learner's program, for the time of a `with`. Gives a function that says what it has
        printed so far."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            process = self._start(arguments, descriptors, out, errors)
            self.did("started %s" % " ".join([os.path.basename(self.program),
                                              *map(str, arguments)]))
            try:
                yield lambda: os.pread(out.fileno(), MOST_PRINTED, 0).decode("utf-8", "replace")
            finally:
                processes.end(process)

    def _start(self, arguments, descriptors, out, errors):
        limit = ["prlimit", "--nofile=%d" % descriptors] if descriptors else []
        return processes.start([*limit, self.program, *map(str, arguments)],
                               cwd=top.TOP, stdin=subprocess.DEVNULL, stdout=out,
                               stderr=errors)

    # ---- Redis ---------------------------------------------------------------------------

    def redis(self):
        """A HeldRedis for this check alone; the same each time."""
        if not self._redis:
            self._redis = HeldRedis(redis.start_private(os.path.join(self.folder, "redis")).where)
        return self._redis

    def slow_redis(self, ms):
        """The same Redis, each answer so many ms later."""
        make("instruments")
        return self._stack.enter_context(redis.SlowRedis(self.redis(), ms, self.folder))

    def counting_redis(self):
        """A CountingRedis for this check alone; one is all it may have."""
        return self._stack.enter_context(
            contextlib.closing(CountingRedis(self.folder, self.chance())))

    # ---- clients -------------------------------------------------------------------------

    def client(self, server):
        """A new connection to a server."""
        return self._stack.enter_context(contextlib.closing(
            client.Client(server.host, server.port)))

    def hold(self, server, number, text=b"GET / HTTP/1.1\r\n"):
        """So many clients who have said that, one after the other, and then fall silent. Each is
        connected: it has been accepted, or stands in the queue."""
        clients = []
        for _ in range(number):
            clients.append(self.client(server))
            clients[-1].say(text)
        self.did("let %s %s" % (how_many(number, "client"), in_words(text)))
        return clients

    # ---- the verdict ---------------------------------------------------------------------

    def did(self, text):
        """Says what the check has done."""
        self._say("  did     %s" % text)

    def chance(self):
        """A random.Random for the numbers of this check, so that none can be known before. With
        SEED in the environment they are the same again."""
        seed = int(os.environ.get("SEED") or random.randrange(1000000))
        self.did("chose numbers by chance (SEED=%d chooses the same)" % seed)
        return random.Random(seed)

    def wait(self, test, seconds=5):
        """Waits until it is true, for so long at most, and says whether it is: between two steps of
        a check, where nothing is expected."""
        return until(test, seconds)

    def expect(self, key, expected, test, saw=None, within=0, hint=None, read=None):
        """Tests until it is true, for `within` seconds at most. If it never is: Missed, with what
        was seen instead, the hint to open and the man page to read. A test may raise what a client
        raises, or /proc, or int() of what the program said: that is not true, and the error is what
        was seen."""
        error = None

        def holds():
            nonlocal error
            try:
                error = None
                return test()
            except (Missed, OSError, ValueError) as raised:
                error = raised
            except AttributeError as raised:
                if NO_ANSWER not in str(raised):
                    raise
                error = Missed(key, expected, AN_END)
            return False

        if until(holds, within):
            others = {name for server in self._servers for name in server.strangers()}
            if others:
                raise Missed("own program", "that only your program runs, and executes no other",
                             ", ".join(sorted(others)))
            self._say("  ok      %s" % expected)
            return
        raise Missed(key, expected, self._what_was_seen(saw, error), hint, read)

    # What many checks expect.

    def expect_children(self, key, expected, server, number, within=2, hint=None, read=None):
        """So many child processes live."""
        self.expect(key, expected, lambda: len(server.children()) == number, within=within, hint=hint,
                    saw=lambda: how_many(len(server.children()), "child", "children"), read=read)

    def expect_descriptors(self, key, expected, server, most, within=1, hint=None):
        """No more than so many are open."""
        self.expect(key, expected, lambda: server.descriptors() <= most, within=within, hint=hint,
                    saw=lambda: "%d, after %d" % (server.descriptors(), most), read="close(2)")

    def expect_status(self, key, expected, client, status, within=5, hint=None, read=None):
        """A client's first answer has it."""
        self.expect(key, expected, lambda: client.status() == status, within=within, hint=hint,
                    saw=lambda: client.first() or "no answer", read=read)

    def expect_pages(self, key, expected, clients, within=3, hint=None, read=None):
        """Each of so many clients is answered with 200."""
        self.expect(key, expected, lambda: client.count(clients) == len(clients), within=within, hint=hint, read=read,
                    saw=lambda: "%d of %d" % (client.count(clients), len(clients)))

    def expect_refused(self, key, server, number, seconds, hint=None, read=None):
        """503 for so many clients, one after the other, each at once. If the server sleeps first, all
        others wait. Its sleep is measured."""
        told, begun = 0, server.slept(clock)

        def all_told():
            nonlocal told
            for _ in range(2 * number):  # on a busy machine one may speak too late, and be told nothing
                status = self.client(server).visit()
                told += status == 503
                if (told == number or status not in (503, None)
                        or server.slept(clock) - begun > patient(seconds)):
                    break
            return told == number

        self.expect(key, "%d more, one after the other, each told at once" % number, all_told, hint=hint,
                    saw=lambda: "%d of them told, in %.1f s" % (told, server.slept(clock) - begun), read=read)

    def expect_end(self, key, server, number=signal.SIGTERM, hint=None, read=None):
        """After such a signal (None: it was told before) it ends."""
        self.expect(key, "an end with status 0", lambda: server.end(number) == 0, hint=hint, read=read,
                    saw=lambda: "status %d" % server.end(number))

    def _what_was_seen(self, saw, error):
        try:
            seen = saw() if saw else ""
            seen = AN_END if seen is None else str(seen)  # None: what hear() gave
        except (Missed, OSError, LookupError, ValueError, AttributeError) as raised:
            error = error or raised
            seen = None
        if error:
            seen = error.saw if isinstance(error, Missed) else str(error)
        return "; ".join(filter(None, [seen, *self.deaths()])) or "something else"

    def deaths(self):
        """How those of its servers have ended that nobody told to."""
        return list(filter(None, (server.death() for server in self._servers)))

    def skip(self, why):
        """This check cannot be made here."""
        raise Skipped(why)


def in_words(text):
    """What clients do who say that, and no more."""
    whole = re.fullmatch(r"(?:GET|HEAD) (\S+) .*\r\n\r\n", text.decode("latin-1"), re.DOTALL)
    if not text:
        return "connect, and say nothing"
    if whole:
        return "ask for %s" % whole.group(1)
    return "say %r, and no more" % text.decode("latin-1")


def read_all(file):
    file.seek(0)
    return file.read(MOST_PRINTED).decode("utf-8", "replace")


def make(target, san="", anew=()):
    """As top.make(). Skipped, if it takes a library that is not there."""
    try:
        return top.make(target, san, anew)
    except top.Lacking as lacking:
        raise Skipped(str(lacking)) from lacking


# What switches a sanitizer off, or is only good for that. Looked for in the preprocessed source, where no macro can hide it.
IN_SOURCE = re.compile(r"\w*sanitize\w*|\b__[a-z]+san_\w+|\bAnnotate[A-Z]\w+|\w+SAN_OPTIONS\b")
ASSEMBLY = re.compile(r"\b(?:__)?asm(?:__)?\b")  # no sanitizer looks into it, and it can give a function any name


def build(exercise, source, san, folder):
    """Compiles a source of this exercise into a folder, where make has built what it is linked with. Returns the
    program. Trouble, with the compiler's words; Missed, if it would switch a sanitizer off."""
    program = os.path.join(folder, exercise.name)
    words = top.make_prints("compile-command", "SAN=" + san, "EX=%s/%s" % (exercise.chapter, exercise.name),
                            "SOURCE=" + source, "PROGRAM=" + program)
    done = subprocess.run([*shlex.split(words), "-save-temps=obj"], cwd=top.TOP, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False)
    if done.returncode:
        raise Trouble(done.stdout.strip())
    if san:
        text = "\n".join(Path(path).read_text("utf-8", "replace") for path in glob.glob(os.path.join(glob.escape(folder), "*.i")))
        own = "".join(re.findall(r'^# \d+ "%s"[^\n]*\n((?:[^#\n][^\n]*\n|\n)*)' % re.escape(source), text, re.MULTILINE))
        off = IN_SOURCE.search(text) or ASSEMBLY.search(own)
        if off:
            raise Missed("sanitizer", "a program that leaves the sanitizer on", off[0])
    return program


def for_races(program):
    """What comes before one with the thread sanitizer. Where the kernel places it at too many
    addresses, the sanitizer cannot start. io_sync=0: that two threads talk to one kernel is no bridge
    between them, so a race is seen in whichever order they came. The other options are the sanitizer's
    own, and the program may not change them."""
    if not served.finds_races(program):
        return []
    fixed = ["setarch", "--addr-no-randomize"]
    may = subprocess.run([*fixed, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    options = "io_sync=0:report_bugs=1:log_path=stderr:exitcode=%d" % served.RACES
    return ["env", "TSAN_OPTIONS=" + options, *(fixed if may else [])]


def load(exercise):
    """The check of an exercise, as a module."""
    name = "check_%s_%s" % (exercise.chapter, exercise.name)
    spec = importlib.util.spec_from_file_location(name, exercise.at(exercise.check))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sanitizers(exercise):
    """Those that its check asks for, as make's SAN has them; "" for none."""
    return getattr(load(exercise), "SAN", "")


def judge(exercise, program, say=print):
    """Checks a program. Returns None if it passes, or the Missed; raises Skipped."""
    module = load(exercise)
    if getattr(module, "SAN", ""):
        os.environ.setdefault(*LEAKS)
    with Exercise(program, say) as ex:
        try:
            with ended_after(max(patient(CHECK_SECONDS) / 2, CHECK_SECONDS)):
                module.check(ex)
        except Missed as missed:
            if missed.key == "connects":  # a socket is closed a moment before its process has ended
                until(ex.deaths, 1)
            missed.saw = "; ".join([missed.saw, *(death for death in ex.deaths()
                                                  if death not in missed.saw)])
            return missed
    return None


@contextlib.contextmanager
def ended_after(seconds):
    """What is not done by then has missed."""
    deadline = clock() + seconds

    def too_long(_number, _frame):
        if clock() < deadline:
            return signal.setitimer(signal.ITIMER_REAL, max(deadline - clock(), 0.1))
        raise Missed("time", "a verdict within %d s" % seconds, "none")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
