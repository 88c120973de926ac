"""suite: the project's own tests, run by Criterion, for one server."""

import os

import cage
import places
import criterion
from criterion import FAILED, Result

MOST_EVIDENCE = 2000
JOBS = {"servers": 4, "weather": 1}  # a core: the first mostly wait
CASE_SECONDS = 40  # the longest takes 11, where eight run at a time


def pattern(model, cases):
    """Criterion's: all of these, and nothing else."""
    return "%s/@(%s)" % (model, "|".join(sorted(cases)))


def run(program, model, cases, folder, servers, seconds, environment):
    """{case: Result} of these cases of a program, for the server that `servers` holds under the
    model's name, and why it was stopped. What could not be run has failed, and says why."""
    report, log = (os.path.join(folder, program + end) for end in (".tap", ".log"))
    for path in (report, log):
        if os.path.exists(path):
            os.remove(path)
    jobs = JOBS[program] * min(2, os.cpu_count() or 1)
    command = [os.path.join(places.PROGRAMS, program), "--verbose", "--jobs", str(jobs),
               "--timeout", str(CASE_SECONDS), "--tap=" + report,
               "--filter", pattern(model, cases)]
    environment = dict(environment, SERVERS=servers)
    _, why = cage.run(command, folder, log, seconds, environment=environment)
    reported = criterion.read_report(criterion.read_file(report))
    printed = criterion.read_printed(criterion.read_file(log))
    return complete(model, cases, reported, printed, why), why


def complete(model, cases, reported, printed, why):
    """A Result for each case, from what was reported, or else printed."""
    missing = Result(FAILED, "not run to its end: %s" % (why or "the test program ended early"))
    results = {}
    for case in cases:
        name = "%s::%s" % (model, case)
        result = reported.get(name) or printed.get(name) or missing
        if result.outcome == FAILED and not result.evidence:
            result = missing
        results[case] = result._replace(evidence=result.evidence[:MOST_EVIDENCE])
    return results
