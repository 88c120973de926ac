"""cell: one program of one student, compiled and checked. `make collect` starts one for each.

    cell.py FOLDER EXERCISE MOST_TASKS MOST_MIB HIDDEN SEED

It prints the outcome as JSON, and how many expectations held. FOLDER/log has the details. Nothing
that is in the folder HIDDEN can be read: the other hand-ins. If EXERCISE is CHAPTER/server, the
source is a server, or FOLDER/server is a program, and it is graded as that chapter's model.

It belongs to a copy of the project, which the student's user can read and not change. FOLDER holds
the source. It is compiled and run as another user (see jail), each time in a cage that ends
whatever is left of it. The check itself is the copy's, runs with our rights, and says by its exit
status how it went: nothing that the program writes can be taken for that.
"""

import contextlib
import glob
import json
import os
import re
import shlex
import stat
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path[1:1] = [os.path.join(TOP, "common", "classroom", name) for name in ("exercises", "grader")]
import cage
import checks
import exercises
import jail
from lib.measuring import processes
from outcome import patient

GRADE = os.path.join(TOP, "common", "classroom", "grader", "grade")
PASSED, NOT_YET, NO_COMPILE, OVER, SKIPPED, UNCHECKED = (
    "passed", "not yet", "does not compile", "over the limit", "skipped", "not checked")
STATUSES = {10: PASSED, 11: NOT_YET, 12: OVER, 13: SKIPPED}  # checked.py's; no other is a verdict

COMPILE_SECONDS = 30
CHECK_SECONDS = 40
SPARE_TASKS = 40  # the check itself, its Redis
MOST_PROGRAM = 64 << 20

# What switches a sanitizer off, or is only good for that. Looked for when no macro, and no string of an assembler's, can
# hide it: in the preprocessed source, and among the object's symbols, of which the compiler's own are but used.
KEEP = ["-save-temps=obj"]
IN_SOURCE = re.compile(rb"\w*sanitize\w*|\b__[a-z]+san_\w+|\bAnnotate[A-Z]\w+|\w+SAN_OPTIONS\b")
IN_SYMBOLS = re.compile(rb"(?<= [^U] )__(?:[a-z]+san|sanitizer)_\w+|(?<= U )(?:Annotate[A-Z]|__lsan_|"
                        rb"__asan_(?:un)?poison_memory_region|__sanitizer_(?:annotate|finish|set|start)|"
                        rb"__tsan_(?:acquire|external|ignore|mutex|release|switch))\w*")


class Ended(Exception):
    """Before the check could say anything: the outcome, and why."""


class Cell:
    def __init__(self, folder, exercise, most_tasks, most_memory, hidden, seed):
        self._folder = folder
        self._exercise = exercise
        self._is_server = not os.path.exists(exercise.at(exercise.check))
        self._san = "" if self._is_server else checks.sanitizers(exercise)
        self._jail = jail.build()
        self._most_tasks = most_tasks
        self._most_memory = most_memory
        self._hidden = hidden
        self._seed = seed
        self._found = {}
        self._log = os.path.join(folder, "log")

    def outcome(self):
        try:
            program = self._compile()
            if program and self._is_server:
                return self._grade(program)
            return STATUSES.get(self._check(program), UNCHECKED) if program else NO_COMPILE
        except Ended as ended:
            outcome, why = ended.args
            with open(self._log, "a", encoding="utf-8") as log:
                log.write(why + "\n")
            return outcome

    def expectations(self):
        """How many held, of how many, and which one did not, as checked.py has noted it; of a server,
        all that the grader has found out."""
        with contextlib.suppress(OSError), open(os.path.join(self._folder, "expectations"),
                                                encoding="utf-8") as file:
            return json.load(file)
        return self._found

    def _compile(self):
        """The path of the program, out of the student's reach; None if there is none."""
        name = self._exercise.name
        if os.path.exists(os.path.join(self._folder, name)):  # a server in another language
            return os.path.join(self._folder, name)
        built = os.path.join(self._folder, "built")
        os.mkdir(built, 0o755)
        self._jail.give(built)
        words = [*self._jail.before(jail.COMPILER, self._most_tasks), *compiler(
            self._exercise, self._san, os.path.join(self._folder, name + ".c"),
            os.path.join(built, name))]
        if self._san:
            words += KEEP
        if self._run(words, COMPILE_SECONDS, {"TMPDIR": built}):
            return None
        program = os.path.join(self._folder, name)
        if not copy_program(os.path.join(built, name), program):
            return None
        if self._san:
            self._run([*self._jail.before(jail.COMPILER, 1), *nm(built)], COMPILE_SECONDS, {})
            off = switched_off(built, taken(self._log))
            os.remove(self._log)
            if off:
                raise Ended(NO_COMPILE, "refused: it would switch the sanitizer off, by %s" % off)
        return program

    def _grade(self, program):
        """The grader makes cells of its own."""
        hidden = ["--hide", os.path.dirname(self._folder)]  # the other cells
        hidden += ["--hide", self._hidden] if os.path.isdir(self._hidden) else []
        process = processes.start([GRADE, "--json", "--seed", self._seed, *hidden, program,
                                   self._exercise.chapter.partition("_")[2]],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, encoding="utf-8")
        said, errors = process.communicate()
        if processes.end(process):
            raise Ended(UNCHECKED, errors)
        self._found = json.loads(said)
        with open(self._log, "a", encoding="utf-8") as log:
            for each in self._found["failures"]:
                log.write("%(section)s: %(case)s\n  %(evidence)s\n  read %(read)s\n" % each)
        return "%(points)g of %(of)d points" % self._found

    def _check(self, program):
        limits = jail.SANITIZED if self._san else jail.PROGRAM
        words = [sys.executable, "-B", os.path.join(TOP, "common/classroom/course/checked.py"),
                 self._exercise.key, program,
                 *self._jail.before(limits, self._most_tasks + SPARE_TASKS)]
        return self._run(words, CHECK_SECONDS, dict([checks.LEAKS], SEED=self._seed))

    def _run(self, words, seconds, more):
        """In a cage, and with nothing of our environment that may be secret."""
        kept = {name: os.environ[name] for name in ("PATH", "PATIENCE") if name in os.environ}
        environment = {**kept, "LC_ALL": "C.UTF-8", "HOME": "/nonexistent", "DEPS": "no",
                       **more}
        around = self._jail.around(self._folder, [self._hidden])
        status, why = cage.run([*around, *words], self._folder, self._log, patient(seconds),
                               self._most_tasks + SPARE_TASKS, environment, self._most_memory)
        if why:
            raise Ended(OVER, "stopped: %s" % why)
        return status


def compiler(exercise, san, source, program):
    """The command that make would run, of this project's flags and objects."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}  # or it warns of no jobserver
    done = subprocess.run(["make", "--no-print-directory", "-s", "SAN=" + san, "compile-command",
                           "EX=%s/%s" % (exercise.chapter, exercise.name),
                           "SOURCE=" + source, "PROGRAM=" + program],
                          cwd=TOP, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                          check=False)
    if done.returncode:
        why = done.stdout.strip()
        raise Ended(SKIPPED if why.startswith("skipped: ") else UNCHECKED, why)
    return shlex.split(done.stdout)


def nm(folder):
    return ["nm", *glob.glob(os.path.join(folder, "*.o"))]


def switched_off(folder, symbols):
    """What would switch a sanitizer off, of a source that was compiled into a folder; None if nothing does. symbols: what
    nm has said."""
    sources = list(map(taken, glob.glob(os.path.join(folder, "*.i"))))
    if not sources or not all(sources):
        return "a source that nobody can look through"
    found = IN_SOURCE.search(b"\n".join(sources)) or IN_SYMBOLS.search(symbols)
    return found and found[0].decode("ascii", "replace")


def taken(path):
    """The bytes of a file of somebody else's; None if it is no plain file, or too large."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        return file.read() if stat.S_ISREG(found.st_mode) and found.st_size <= MOST_PROGRAM else None


def copy_program(source, target):
    """A copy that its maker can no longer change. False if there can be none."""
    bytes = taken(source)
    if bytes is None:
        return False
    with open(target, "xb") as copied:
        copied.write(bytes)
    os.chmod(target, 0o755)
    return True


def main(folder, key, most_tasks, most_mib, hidden, seed):
    cage.adopt_orphans()
    exercise, = exercises.find(key, exercises.every()) or [exercises.Exercise(*key.split("/"))]
    with processes.tidied():
        cell = Cell(folder, exercise, int(most_tasks), int(most_mib) << 20, hidden, seed)
        outcome = cell.outcome()
        print(json.dumps({"outcome": outcome, **cell.expectations()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
