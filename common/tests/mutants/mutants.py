#!/usr/bin/env python3
"""mutants: would the suite notice? Each NAME.patch in this folder plants one fault in one of the
seven servers. It is built, and the case that is to find it out is run against it, which has to fail;
against the server as it is, it has to pass.

    common/tests/mutants/mutants.py [NAME]...        all of them, if none is named

- A patch is a unified diff against the top of the project. Its row in the table of common/tests/README.md
  says what is wrong, in which server, and which case finds it out.
- Each is built in build/mutants/NAME, from copies of the sources and of the objects in build/plain
  with their times, so that make compiles no more than the patch has changed. The folder of one
  that was found out is removed; what was said is in build/mutants/NAME.log.
- Two at a time. Needs the seven servers and the two programs: `make mutants` builds them first.
- A line for each: found out, by which case, in how many seconds. SURVIVED is a hole in the suite.
  The last line: N passed, N failed, N skipped. Status 1 if anything failed.
"""

import collections
import contextlib
import glob
import itertools
import os
import re
import shutil
import sys
import time

sys.dont_write_bytecode = True  # leaves no __pycache__ among the sources

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path[:0] = [os.path.join(TOP, "loadtest"), os.path.dirname(HERE)]
import criterion
from lib.measuring import processes

OBJECTS = "build/plain"
BUILT = os.path.join(TOP, "build", "mutants")
SOURCES = ["Makefile", "*/*.mk", "*/*/*.mk", "common/*.[ch]", "common/tools/deps", "[0-9]*_*/*.c"]
MADE = [OBJECTS + "/common/*.[od]", OBJECTS + "/[0-9]*_*/*.[od]"]
AT_A_TIME = 2
LIMIT_SECONDS = 150  # for building, and for the cases: each has limits of its own

FOUND_OUT, SURVIVED, FAILED, SKIPPED = "found out", "SURVIVED", "FAILED", "skipped"


class Trouble(Exception):
    """Why a mutant cannot be judged, in words."""


# ---- patches ------------------------------------------------------------------------------------

Mutant = collections.namedtuple("Mutant", "name path server what case")
Verdict = collections.namedtuple("Verdict", "mutant word why seconds")

ROW = re.compile(r"^\| \[`([\w-]+)`\]\(mutants/\1\.patch\) \| (\w+) \| ([^|]+) \| (\w[^|]+\w) \|", re.MULTILINE)


def table():
    """{name: Mutant}; a case is called by its name, with blanks."""
    with open(os.path.join(TOP, "common", "tests", "README.md"), encoding="utf-8") as file:
        return {name: Mutant(name, os.path.join(HERE, name + ".patch"), server, what,
                             "%s/%s" % (server, case.replace(" ", "_")))
                for name, server, what, case in ROW.findall(file.read())}


def program_of(case):
    """The one that has it: weather's sources name it, or it is one of servers."""
    sources = map(criterion.read_file, glob.glob(os.path.join(TOP, "common", "tests", "weather", "*.c")))
    return "weather" if any(case.partition("/")[2] + ")" in text for text in sources) else "servers"


# ---- building one -------------------------------------------------------------------------------

def copy_tree(folder, patterns):
    """What is made from, and what has been made of it, with their times."""
    shutil.rmtree(folder, ignore_errors=True)
    for pattern in patterns:
        for path in glob.glob(os.path.join(TOP, pattern)):
            copy = os.path.join(folder, os.path.relpath(path, TOP))
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy2(path, copy)


def patch_command(path, *options):
    """An offset is fine: the code around it may move."""
    return ["patch", "--strip=1", "--forward", "--batch", "--input=" + path, *options]


def build(mutant, folder, log):
    copy_tree(folder, SOURCES + MADE)
    patching = processes.start(patch_command(mutant.path, "--reject-file=-"), cwd=folder, stdout=log,
                               stderr=log)
    if (yield from ended(patching)) != 0:
        raise Trouble("%s.patch no longer applies" % mutant.name)
    making = processes.start(["make", "--no-print-directory", "SAN=", mutant.server], cwd=folder,
                             stdout=log, stderr=log)
    if (yield from ended(making)) != 0:
        raise Trouble("it does not compile: see build/mutants/%s.log" % mutant.name)


# ---- judging one --------------------------------------------------------------------------------

def run_case(mutant, folder, log):
    """What it came to, against the server in that folder."""
    report, program = log.name[:-len(".log")] + ".tap", program_of(mutant.case)
    with contextlib.suppress(FileNotFoundError):
        os.remove(report)
    yield from ended(processes.start(
        [os.path.join(OBJECTS, program), "--verbose", "--tap=" + report, "--color=never", "--filter", mutant.case],
        cwd=TOP, stdout=log, stderr=log, env=dict(os.environ, SERVERS=os.path.relpath(folder, TOP))))
    result = criterion.read_report(criterion.read_file(report)).get(mutant.case.replace("/", "::"))
    if not result:
        raise Trouble("%s has no case %s" % (program, mutant.case))
    return result.outcome


def judge(mutant, folder, log):
    yield from build(mutant, folder, log)
    outcome = yield from run_case(mutant, folder, log)
    if outcome == criterion.SKIPPED:
        return SKIPPED, "this machine skips %s" % mutant.case
    if outcome == criterion.PASSED:
        return SURVIVED, "%s passes: %s" % (mutant.case, mutant.what)
    if (yield from run_case(mutant, TOP, log)) == criterion.PASSED:
        return FOUND_OUT, mutant.case
    return FAILED, "%s fails without the patch, too" % mutant.case


def examine(mutant):
    """From the patch to the verdict; a generator that yields the process it waits for."""
    began = time.monotonic()
    folder = os.path.join(BUILT, mutant.name)
    os.makedirs(BUILT, exist_ok=True)
    with open(folder + ".log", "w", encoding="utf-8") as log:
        try:
            word, why = yield from judge(mutant, folder, log)
        except Trouble as trouble:
            word, why = FAILED, str(trouble)
    if word == FOUND_OUT:
        shutil.rmtree(folder, ignore_errors=True)
    return Verdict(mutant, word, why, time.monotonic() - began)


# ---- two at a time ------------------------------------------------------------------------------

def ended(process, seconds=LIMIT_SECONDS):
    """Yields the process until it is over; returns its exit status."""
    deadline = time.monotonic() + seconds
    while not processes.has_ended(process):
        if time.monotonic() > deadline:
            processes.end(process)
            raise Trouble("%s took longer than %d s" % (process.args[0], seconds))
        yield process
    return processes.end(process)


def verdicts(examinations):
    """Goes on with so many at a time; yields each verdict when there is one."""
    waiting = iter(examinations)
    busy = list(itertools.islice(waiting, AT_A_TIME))
    while busy:
        for each in list(busy):
            try:
                next(each)
            except StopIteration as end:
                busy.remove(each)
                yield end.value
                busy += itertools.islice(waiting, 1)
        time.sleep(processes.POLL_SECONDS)


def report(found):
    """Prints each verdict as it comes; returns the exit status."""
    count = collections.Counter()
    for verdict in found:
        count[verdict.word] += 1
        print("%-9s  %-24s %5.1f s  %s" % (verdict.word, verdict.mutant.name, verdict.seconds,
                                           verdict.why), flush=True)
    failed = count[SURVIVED] + count[FAILED]
    print("%d passed, %d failed%s" % (count[FOUND_OUT], failed, ", %d skipped" % count[SKIPPED]
                                      if count[SKIPPED] else ""))
    return 1 if failed else 0


def main(chosen):
    known = table()
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        print("mutants: there is no mutant %s in common/tests/README.md" % unknown[0], file=sys.stderr)
        return 2
    if shutil.which("patch") is None:
        print("mutants: patch is not installed; make deps brings it", file=sys.stderr)
        return 2
    with processes.tidied():
        return report(verdicts([examine(known[name]) for name in chosen or known]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
