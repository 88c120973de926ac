#!/usr/bin/env python3
"""mutants: would the suite notice? Each NAME.patch in this folder plants one fault in one of the
seven servers. It is built, the cases that are to find it out are run against it, and at least one
of them has to fail; against the server as it is, those that failed have to pass.

    common/tests/mutants/mutants.py [NAME]...        all of them, if none is named

- A patch is a unified diff against the top of the project. Above it stand what is wrong, as prose,
  an empty line, and three fields:

      Server: epoll
      Found by: servers epoll/connection_close_closes
      Read: 07_epoll/README.md#the-listening-socket

  Found by: the program in build/plain, and a pattern of Criterion's for its --filter.
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
from lib.subjects import servers

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

Mutant = collections.namedtuple("Mutant", "name path what server program cases read")
Verdict = collections.namedtuple("Verdict", "mutant word why seconds")

HEAD = re.compile(r"(?P<what>.+?)\n\nServer: (?P<server>\w+)\nFound by: (?P<program>\w+) "
                  r"(?P<cases>\S+)\nRead: (?P<read>\S+)\n\n--- ", re.DOTALL)


def names():
    return sorted(os.path.basename(path)[:-len(".patch")]
                  for path in glob.glob(os.path.join(HERE, "*.patch")))


def read(name):
    return read_patch(name, os.path.join(HERE, name + ".patch"))


def read_patch(name, path):
    with open(path, encoding="utf-8") as file:
        head = HEAD.match(file.read())
    if not head:
        raise Trouble("%s.patch: above the diff stand what is wrong, an empty line, and Server:, "
                      "Found by: PROGRAM PATTERN, and Read:" % name)
    fields = head.groupdict()
    fields["what"] = " ".join(fields["what"].split())
    return Mutant(name=name, path=path, **fields)


def table():
    """All of them, chapter by chapter, as the document that is about them has it."""
    yield "| mutant | server | what is wrong | found out by | read |"
    yield "|---|---|---|---|---|"
    for mutant in sorted(map(read, names()), key=lambda each: servers.NAMES.index(each.server)):
        yield "| [`%s`](mutants/%s.patch) | %s | %s | %s | [%s](../../%s) |" % (
            mutant.name, mutant.name, mutant.server, mutant.what, sentence(mutant.cases),
            place(mutant.read), mutant.read)


def sentence(case):
    """A case's name is one."""
    return case.partition("/")[2].replace("_", " ")


def place(document):
    """01_iterative/README.md#the-code -> "chapter 1" """
    folder = document.partition("/")[0]
    return "chapter %d" % int(folder[:2]) if folder[:2].isdigit() else folder


# ---- building one -------------------------------------------------------------------------------

def copy_tree(folder, patterns):
    """What is made from, and what has been made of it, with their times."""
    shutil.rmtree(folder, ignore_errors=True)
    for pattern in patterns:
        for path in glob.glob(os.path.join(TOP, pattern)):
            copy = os.path.join(folder, os.path.relpath(path, TOP))
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy2(path, copy)


def patch_command(mutant, *options):
    """An offset is fine: the code around it may move."""
    return ["patch", "--strip=1", "--forward", "--batch", "--input=" + mutant.path, *options]


def build(mutant, folder, log):
    copy_tree(folder, SOURCES + MADE)
    patching = processes.start(patch_command(mutant, "--reject-file=-"), cwd=folder, stdout=log,
                               stderr=log)
    if (yield from ended(patching)) != 0:
        raise Trouble("%s.patch no longer applies" % mutant.name)
    making = processes.start(["make", "--no-print-directory", "SAN=", mutant.server], cwd=folder,
                             stdout=log, stderr=log)
    if (yield from ended(making)) != 0:
        raise Trouble("it does not compile: see build/mutants/%s.log" % mutant.name)


# ---- judging one --------------------------------------------------------------------------------

def run_cases(mutant, cases, folder, log):
    """Runs them against the server in that folder. Returns which passed, failed, and were skipped,
    {criterion.PASSED: ["epoll/connection_close_closes", ...], ...}."""
    report = log.name[:-len(".log")] + ".tap"
    with contextlib.suppress(FileNotFoundError):
        os.remove(report)
    run = processes.start([os.path.join(OBJECTS, mutant.program), "--verbose", "--jobs", "4",
                           "--tap=" + report, "--color=never", "--filter", cases], cwd=TOP,
                          stdout=log, stderr=log,
                          env=dict(os.environ, SERVERS=os.path.relpath(folder, TOP)))
    yield from ended(run)
    how = collections.defaultdict(list)
    for case, result in criterion.read_report(criterion.read_file(report)).items():
        how[result.outcome].append(case.replace("::", "/"))
    if not how:
        raise Trouble("%s has no case %s" % (mutant.program, cases))
    return how


def judge(mutant, folder, log):
    """(word, why)"""
    yield from build(mutant, folder, log)
    mutated = yield from run_cases(mutant, mutant.cases, folder, log)
    if not mutated[criterion.FAILED]:
        if not mutated[criterion.PASSED]:
            return SKIPPED, "this machine skips %s" % mutant.cases
        return SURVIVED, "%s passes: %s" % (mutant.cases, mutant.what)
    for case in mutated[criterion.FAILED]:
        as_it_is = yield from run_cases(mutant, case, TOP, log)
        if as_it_is[criterion.PASSED]:
            return FOUND_OUT, case
    return FAILED, "%s fails without the patch, too" % case


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
    unknown = sorted(set(chosen) - set(names()))
    if unknown:
        print("mutants: there is no %s.patch in %s" % (unknown[0], os.path.relpath(HERE)),
              file=sys.stderr)
        return 2
    if shutil.which("patch") is None:
        print("mutants: patch is not installed; make deps brings it", file=sys.stderr)
        return 2
    with processes.tidied():
        return report(verdicts([examine(read(name)) for name in chosen or names()]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
