#!/usr/bin/env python3
"""sample: would the suite notice mutants that nobody here wrote? universalmutator changes a line of
common/*.c in every way that it knows, and COUNT of these mutants are drawn and tried.

    common/tests/mutants/sample.py COUNT [SEED]         SEED: 1, if none is given

- Comments stay as they are. So do strings of three words or more: people read them, not programs.
- The same seed draws the same mutants, as long as their lines stay as they are. A larger COUNT draws
  those of the smaller one, and more.
- A mutant that does not compile is not drawn. Neither is one with the same object code (-O2, without
  debug information) as the original, or as a mutant drawn before.
- Each is tried by the unit tests, by the same with sanitizers, and then by the cases of at most three
  servers that have the file. One failure is enough, if the case fails again by itself, and passes
  without the mutant. So is a program that does not come to its end. They run in a sandbox, because a
  mutant may send a signal to anybody.
- equivalent.tsv, beside this file, has those that no test can find, and why. They are not tried.
- The verdicts are added to build/mutants-sample/SEED.tsv. The next run takes from there who was found
  out, and tries those that survived once more.
- Needs build/universalmutator, and what is tried and tries: `make mutants SAMPLE=COUNT` makes them.
- A line for each, and the change of those that survived. The last line: N of M found. Status 1 if any
  survived, or if a case failed without a mutant, because then the cases behind it were not run.
"""

import collections
import contextlib
import glob
import hashlib
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # leaves no __pycache__ among the sources

import mutants
from mutants import HERE, TOP

sys.path.append(os.path.join(TOP, "common", "classroom", "course"))
sys.path.append(os.path.join(TOP, "build", "universalmutator"))
import criterion
import jail
from lib.measuring import processes

BUILT = os.path.join(TOP, "build", "mutants-sample")
EQUIVALENT = os.path.join(HERE, "equivalent.tsv")
RULES = ["universal.rules", "c_like.rules", "c.rules"]
SANITIZED = "build/san-address-undefined"
STRICT = "-O2 -Werror=implicit-function-declaration -Werror=return-type"
TRIES = 3  # for a case that fails only now and then

# The servers whose cases try a mutant: these, or two or one that have the file.
SERVERS = ["iterative", "threading", "epoll"]
HAVE = {"common/serve.c": SERVERS[:2], "common/redis_pool.c": ["threading"],
        "common/redis_async.c": ["epoll"], "common/waiting.c": ["epoll"],
        "common/children.c": ["forking", "preforking"]}

# What make is told to build, the program that tries it, its cases, how many at a time, and how long
# they may take.
Stage = collections.namedtuple("Stage", "goals program cases jobs seconds")


def stages(path):
    """The cheapest first."""
    plain, servers = mutants.OBJECTS, HAVE.get(path, SERVERS)
    suite = re.split(r"[/_.]", path)[1] + "*/*"  # redis_pool.c: redis and redis_async
    yield Stage(["SAN=", plain + "/unit"], plain + "/unit", suite, 8, 150)
    yield Stage(["SAN=", plain + "/unit"], plain + "/unit", "*", 8, 150)
    yield Stage(["SAN=address,undefined", SANITIZED + "/unit"], SANITIZED + "/unit", "*", 8, 300)
    yield Stage(["SAN=", "all"], plain + "/servers", "@(%s)/*" % "|".join(servers), 8, 600)


SOURCES = mutants.SOURCES + ["common/tests/*.[ch]", "common/tests/*/*.[ch]"] + [
    objects + "/" + part for objects in (SANITIZED, mutants.OBJECTS)
    for part in ("common/*.[od]", "common/tests/*.[od]", "common/tests/unit/*.[od]",
                 "[0-9]*_*/*.[od]")]


# ---- what the tool makes ------------------------------------------------------------------------

Mutant = collections.namedtuple("Mutant", "key path number function original mutated line")

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'|/\*.*?\*/', re.DOTALL)
FUNCTION = re.compile(r"^(?:__attribute__\(\(.*?\)\) )?\w[^;=(]*?\b(\w+)\(")


def lines_of(path):
    """The lines of a source that the tool gets: without comments, but as many."""
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        code = TOKEN.sub(lambda found: "\n" * found[0].count("\n") if found[0][0] == "/" else found[0],
                         file.read())
    return [line.rstrip() + "\n" for line in code.splitlines()]


def functions(lines):
    """The function that each line is in, or "-"."""
    function = "-"
    for line in lines:
        if found := FUNCTION.match(line):
            function = found[1]
        yield function
        if line.startswith(("}", "#")) or (line[0] not in " {}\n" and line.endswith(";\n")):
            function = "-"


STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
WORD = re.compile(r"(?<!\S)[A-Za-z]?[a-z]+[.,:;]*(?:\\n)?(?!\S)")


def without_prose(line):
    """Strings of three words or more are for people to read."""
    return STRING.sub(lambda found: '""' if len(WORD.findall(found[1])) >= 3 else found[0], line)


def shown(line):
    """On one line, and however it is laid out."""
    return " ".join(line.split())


def all_mutants(path, seed):
    """Of one file; each may or may not compile."""
    from universalmutator import mutator
    lines = lines_of(path)
    inside, times = list(functions(lines)), collections.Counter()
    with contextlib.redirect_stdout(io.StringIO()):
        made = mutator.mutants_regexp(lines, RULES, ignorePatterns=[])
    for number, line, *_ in made:
        what = (path, inside[number - 1], shown(lines[number - 1]), shown(line))
        if without_prose(lines[number - 1]) == without_prose(line):
            continue
        times[what] += 1  # the same line may be there twice
        key = hashlib.sha256(repr((seed, what, times[what])).encode()).hexdigest()[:16]
        yield Mutant(key, path, number, *what[1:], line)


# ---- those that no test can find ----------------------------------------------------------------

def equivalent():
    """{(path, function, original, mutated): reason}"""
    with open(EQUIVALENT, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return {tuple(row[:4]): row[4] for row in rows}


# ---- drawing ------------------------------------------------------------------------------------

def write(folder, mutant):
    lines = lines_of(mutant.path)
    lines[mutant.number - 1] = mutant.line
    with open(os.path.join(folder, mutant.path), "w", encoding="utf-8") as file:
        file.writelines(lines)


def restore(folder, path):
    """The source and its objects, with their times: make has nothing to do for them."""
    stem = path[:-len(".c")]
    for each in (path, *("%s/%s.o" % (objects, stem) for objects in (SANITIZED, mutants.OBJECTS))):
        shutil.copy2(os.path.join(TOP, each), os.path.join(folder, each))


def make(*words):
    return ["make", "--no-print-directory", *words]


def object_code(folder, path):
    """A hash of what the compiler makes of it, or None."""
    made = "build/code/" + path[:-len(".c")] + ".o"
    run = subprocess.run(make("OUT=build/code", "CFLAGS=" + STRICT, made), cwd=folder, check=False,
                         capture_output=True)
    if run.returncode != 0:
        return None
    with open(os.path.join(folder, made), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


class Record:
    """build/mutants-sample/SEED.tsv: the word on each mutant that was tried."""

    def __init__(self, seed):
        self.path = os.path.join(BUILT, "%d.tsv" % seed)
        self.words = {}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                self.words = dict(line.split("\t")[:2] for line in file)  # the last word counts

    def add(self, mutant, word, why):
        row = (mutant.key, word, why, "%s:%d" % (mutant.path, mutant.number),
               mutant.function, mutant.original, mutant.mutated)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("\t".join(row) + "\n")


def draw(seed, folder):
    """Yields the mutants in the order in which the seed draws them."""
    paths = sorted(os.path.relpath(path, TOP) for path in glob.glob(TOP + "/common/*.c"))
    candidates = sorted(mutant for path in paths for mutant in all_mutants(path, seed))
    codes = {}
    for mutant in candidates:
        if mutant.path not in codes:
            codes[mutant.path] = {None, object_code(folder, mutant.path)}
        write(folder, mutant)
        code = object_code(folder, mutant.path)
        if code not in codes[mutant.path]:
            codes[mutant.path].add(code)
            yield mutant


# ---- trying one ---------------------------------------------------------------------------------

def in_sandbox(folder):
    """The words before a command that may write to this folder alone."""
    words = jail.SANDBOX + (jail.AS_ROOT if os.geteuid() == 0 else [])
    return jail.Jail(words, None).around(folder)


def run(stage, folder, built, cases, *options):
    """Runs them in `folder`, with what was built in `built`. Returns the exit status, or None if there
    was no end, and which cases failed."""
    said = os.path.join(folder, "said")
    program = os.path.join(built if stage.program.endswith("/unit") else TOP, stage.program)
    with open(said, "w", encoding="utf-8") as out:
        process = processes.start(
            in_sandbox(folder) + [program, "--verbose", "--jobs", str(stage.jobs), "--color=never",
                                  "--filter", cases, *options],
            cwd=TOP, stdout=out, stderr=out, env=dict(os.environ, SERVERS=os.path.relpath(built, TOP)))
    try:
        status = yield from mutants.ended(process, stage.seconds)
    except mutants.Trouble:
        status = None
    printed = criterion.read_printed(criterion.read_file(said))
    return status, [case.replace("::", "/") for case, result in printed.items()
                    if result.outcome == criterion.FAILED]


useless = set()  # cases that failed without a mutant, too


def found_by(stage, folder):
    """What fails, or None."""
    for _ in range(TRIES):
        status, failed = yield from run(stage, folder, folder, stage.cases, "--fail-fast")
        if status == 0:
            return None
        if status is None:
            return "no end within %d s" % stage.seconds
        if not failed:
            return "status %d" % status
        again, _ = yield from run(stage, folder, folder, failed[0])
        as_it_is, _ = yield from run(stage, folder, TOP, failed[0])
        if again != 0 and as_it_is == 0:
            return failed[0]
        if as_it_is != 0:
            useless.add(failed[0])
    return None


def examine(mutant, folders):
    """From the mutant to the verdict; a generator that yields the process it waits for."""
    began, folder = time.monotonic(), folders.pop()
    write(folder, mutant)
    with open(os.path.join(folder, "made"), "w", encoding="utf-8") as log:
        by = None
        for stage in stages(mutant.path):
            making = processes.start(make(*stage.goals), cwd=folder, stdout=log, stderr=log)
            if (yield from mutants.ended(making)) != 0:
                by = "the linker"
            by = by or (yield from found_by(stage, folder))
            if by:
                break
    restore(folder, mutant.path)
    folders.append(folder)
    return mutant, by, time.monotonic() - began


# ---- all of them --------------------------------------------------------------------------------

def report(count, seed):
    """Prints each verdict as it comes; returns the exit status."""
    known, record = equivalent(), Record(seed)
    folders = [os.path.join(BUILT, str(number)) for number in range(mutants.AT_A_TIME + 1)]
    for folder in folders:
        mutants.copy_tree(folder, SOURCES)
    explained, found, survived = [], 0, []

    def untried():
        nonlocal found
        for mutant in itertools.islice(draw(seed, folders.pop()), count):
            if mutant[1:2] + mutant[3:6] in known:
                explained.append(mutant)
            elif record.words.get(mutant.key) == mutants.FOUND_OUT:
                found += 1
            else:
                yield examine(mutant, folders)

    for mutant, by, seconds in mutants.verdicts(untried()):
        word = mutants.FOUND_OUT if by else mutants.SURVIVED
        record.add(mutant, word, by or "")
        print("%-9s  %s:%d  %5.1f s  %s" % (word, mutant.path, mutant.number, seconds, by or ""))
        if by:
            found += 1
        else:
            survived.append(mutant)
            print("    - %s\n    + %s" % (mutant.original, mutant.mutated))
        sys.stdout.flush()
    for case in sorted(useless):
        print("%s fails without a mutant, too; the cases behind it were not run" % case)
    print("%d more are equivalent" % len(explained))
    print("%d of %d found" % (found, found + len(survived)))
    return 1 if survived or useless else 0


def main(count, seed="1"):
    if shutil.which("bwrap") is None:
        print("sample: bubblewrap is not installed; make deps brings it", file=sys.stderr)
        return 2
    os.makedirs(BUILT, exist_ok=True)
    os.environ["DEPS"] = "no"
    with processes.tidied():
        return report(int(count), int(seed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
