"""checked: makes the check of an exercise, from inside of a jail. `cell` starts it.

    checked.py EXERCISE PROGRAM WORD...

The WORDs come before the program whenever the check starts it. The exit status is the verdict: 10
passed, 11 not yet, 12 a limit of a process's ended the program, 13 skipped. How many expectations
held is noted beside the program, in a file `expectations`.
"""

import ast
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(1, os.path.join(TOP, "common", "classroom", "exercises"))
import checks
import exercises
import jail
from lib.subjects import redis

PASSED, NOT_YET, OVER, SKIPPED = 10, 11, 12, 13
LIMITS = {-signal.SIGXCPU: "CPU time", -signal.SIGXFSZ: "the size of a file"}
PR_SET_DUMPABLE = 4


class Caged(checks.Exercise):
    """A check of a program that runs as another user."""

    ended = ()  # the exit statuses of runs

    def __init__(self, program, say):
        super().__init__(program, say)
        self.held = set()  # the keys of expectations
        self.seed = os.environ.pop("SEED", "")

    def chance(self):
        """The program must not find the seed in its environment."""
        os.environ["SEED"] = self.seed
        try:
            return super().chance()
        finally:
            del os.environ["SEED"]

    def expect(self, key, *arguments, **more):
        self.held.discard(key)  # one may be expected again
        super().expect(key, *arguments, **more)
        self.held.add(key)

    def __enter__(self):
        super().__enter__()
        os.chmod(self.folder, 0o711)
        return self

    def _start_redis(self, folder):
        return jail.open_redis(redis.start_private, folder)

    def slow_redis(self, ms):
        return jail.opened(super().slow_redis(ms))

    def run(self, *arguments, **more):
        try:
            done = super().run(*arguments, **more)
        except checks.Missed:
            self.ended = (-signal.SIGXCPU,)  # it would have come to that
            raise
        self.ended = (*self.ended, done.status)
        return done

    def limit(self):
        ends = [*self.ended, *(server.end() for server in self._servers if not server.alive())]
        return next((LIMITS[status] for status in ends if status in LIMITS), None)


def prlimit_as(rights):
    """A resource.prlimit() for checks that set limits of a program that runs. In a container root
    may lack the right to set another user's; the program's own user has it."""
    ours = resource.prlimit

    def prlimit(pid, what, *limits):
        try:
            return ours(pid, what, *limits)
        except PermissionError:
            call = "import resource; print(*resource.prlimit%r)" % ((pid, int(what), *limits),)
            return tuple(map(int, subprocess.check_output([*rights, sys.executable, "-I", "-c", call]).split()))

    return prlimit


def note(exercise, ex, missed=None):
    """The check stops at the first expectation that does not hold: those behind it are known from
    its source alone."""
    with open(exercise.at(exercise.check), encoding="utf-8") as file:
        every = set(keys(ast.parse(file.read())))
    of = len(every | ex.held | {missed.key}) if missed else len(ex.held)
    with open(os.path.join(os.path.dirname(ex.program), "expectations"), "w",
              encoding="utf-8") as file:
        json.dump({"held": len(ex.held), "of": of, "missed": missed and missed.expected}, file)


def keys(tree):
    """Of all calls of ex.expect...(KEY, ...) and expect_...(ex, KEY, ...)."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1].startswith("expect"):
            for key in call.args[isinstance(call.func, ast.Name):][:1]:
                if isinstance(key, ast.Constant):
                    yield key.value


def judge(exercise, program, cage):
    module = checks.load(exercise)
    if "setpriv" in cage:
        resource.prlimit = prlimit_as(cage[cage.index("setpriv"):])
    with Caged(program, say) as ex:
        ex.cage = cage
        try:
            module.check(ex)
        except checks.Missed as missed:
            note(exercise, ex, missed)
            say("  expected: %s\n  saw:      %s" % (missed.expected, missed.saw))
            over = ex.limit()
            say("stopped: %s" % over if over else "not yet: %s" % missed.key)
            return OVER if over else NOT_YET
        except checks.Skipped as skipped:
            say("skipped: %s" % skipped)
            return SKIPPED
        note(exercise, ex)
    say("passed")
    return PASSED


def say(text):
    print(text, flush=True)


def main(key, program, *cage):
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # the same user may not trace it
    os.umask(0o022)
    exercise, = exercises.find(key, exercises.every())
    return judge(exercise, program, cage)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
