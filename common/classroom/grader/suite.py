"""suite: the project's own tests, run by Criterion, for one server."""

import os

import cage
import places
import criterion
from criterion import FAILED, Result

MOST_EVIDENCE = 2000
CRASHED = criterion.NO_END + "unexpected"  # a signal or an exit; a case may also be timed out
JOBS = {"servers": 4, "weather": 1}  # a core: the first mostly wait
CASE_SECONDS = 40  # the longest takes 11, where eight run at a time

# For each run. Criterion 2.4.1 compiles --filter into an array of 100 parts, without looking at its
# end (compile() in src/string/extglobmatch.c): with 99 names in a pattern it crashes.
MOST_CASES = 64


class Broken(Exception):
    """One of our own programs ended before its time, which says nothing about the server."""


def pattern(model, cases):
    """Criterion's: all of these, and nothing else."""
    return "%s/@(%s)" % (model, "|".join(sorted(cases)))


def portions(cases):
    """The cases in lists of about the same length, none longer than MOST_CASES."""
    cases = sorted(cases)
    count = -(-len(cases) // MOST_CASES)
    return [cases[number::count] for number in range(count)]


def run(program, model, cases, folder, servers, left, environment, cell=None, hidden=()):
    """{case: Result} of these cases of a program, for the server that `servers` holds under the
    model's name, and why it was stopped. left() says how many seconds there are. A case that was not
    run for want of time, or because the server asked too much of the machine, has failed, and says
    why. Raises Broken if the program itself fails. cell: the jail.Jail in which all of that is done."""
    results, why = {}, None
    for portion in portions(cases):
        reported, printed = {}, {}
        if not why:
            reported, printed, why = _run(program, model, portion, folder, left(),
                                          dict(environment, SERVERS=servers), cell, hidden)
        results.update(complete(model, portion, reported, printed, why))
    return results, why


def _run(program, model, cases, folder, seconds, environment, cell, hidden):
    """What was reported and printed of some cases, and why the program was stopped."""
    report, log = (os.path.join(folder, program + end) for end in (".tap", ".log"))
    for path in (report, log):
        if os.path.exists(path):
            os.remove(path)
    jobs = JOBS[program] * min(2, os.cpu_count() or 1)
    command = [*(cell.around(folder, hidden) if cell else []), os.path.join(places.PROGRAMS, program),
               "--verbose", "--jobs", str(jobs),
               "--timeout", str(CASE_SECONDS), "--tap=" + report,
               "--filter", pattern(model, cases)]
    status, why = cage.run(command, folder, log, seconds, environment=environment)
    reported = criterion.read_report(criterion.read_file(report))
    printed = criterion.read_file(log)
    if not why:
        missing = [case for case in cases if "%s::%s" % (model, case) not in reported]
        crashed = [name for name, result in reported.items()
                   if result.evidence.startswith(CRASHED)]
        failed = any(result.outcome == FAILED for result in reported.values())
        if missing or crashed or status not in ((0, 1) if failed else (0,)):
            raise Broken("%s ended with status %d. Cases that it did not run to their end: %s\n%s" % (
                program, status, " ".join(missing + crashed), printed[-MOST_EVIDENCE:]))
    if why and not (cell and cell.user):  # without a user of its own, the server may have written it
        return {}, {}, why
    return reported, criterion.read_printed(printed), why


def complete(model, cases, reported, printed, why):
    """A Result for each case, from what was reported, or else printed."""
    missing = Result(FAILED, "not run to its end: %s" % why)
    results = {}
    for case in cases:
        name = "%s::%s" % (model, case)
        result = reported.get(name) or printed.get(name) or missing
        if result.outcome == FAILED and not result.evidence:
            result = missing
        results[case] = result._replace(evidence=result.evidence[:MOST_EVIDENCE])
    return results
