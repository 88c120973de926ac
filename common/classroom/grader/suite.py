"""suite: the project's own tests, run by Criterion, and what they say.

Of the forms that Criterion 2.4 writes, TAP is the one that a message cannot break: it does not
escape what stands in its JSON and XML, while here every line of a message is indented. It is
written at the end. Where it did not come to that, what was printed until then tells who passed.
"""

import os
import re
from collections import namedtuple

import cage
import places

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
Result = namedtuple("Result", "outcome evidence")

# ok - epoll::a_file_says_what_it_is  (0.06s)
# ok - epoll::a_server_without_anything_to_do_sleeps  # SKIP who is traced wakes more often
# not ok - epoll::it_needs_no_rights  (0.10s), and the failures, indented
# not ok - epoll::a_file_says_what_it_is unexpected signal after common/tests/servers/files.c:27
TEST = re.compile(r"^(not ok|ok) - (\w+)::(\w+) *(.*)$")
MESSAGE = re.compile(r"^      ?(?:Assertion failed: )?(?:\w+: (?=not true: ))?(.*)$")
PRINTED = re.compile(r"^\[(PASS|FAIL|SKIP)\] (\w+)::(\w+)", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
OUTCOMES = {"PASS": PASSED, "FAIL": FAILED, "SKIP": SKIPPED}
MOST_EVIDENCE = 2000
JOBS = {"servers": 4, "weather": 1}  # a core: the first mostly wait
CASE_SECONDS = 40  # the longest takes 11, where eight run at a time


def read_tap(text, model):
    """{case: Result} of the model's suite."""
    results, case, lines = {}, None, []
    for line in [*text.split("\n"), "ok - end::end"]:
        found = TEST.match(line)
        if found:
            if case and lines:
                results[case] = Result(FAILED, "\n".join(lines)[:MOST_EVIDENCE])
            word, suite, name, rest = found.groups()
            case, lines = None, []
            if suite == model:
                results[name] = _result(word, rest)
                case = name
        elif line.startswith("      "):
            lines.append(MESSAGE.match(line).group(1))
    return results


def _result(word, rest):
    """Of a test's own line."""
    if word == "not ok":
        return Result(FAILED, "the test came to no end: %s" % rest)
    if rest.startswith("# SKIP"):
        return Result(SKIPPED, rest[len("# SKIP "):])
    return Result(PASSED, "")


def read_printed(text, model):
    """{case: Result} of what --verbose printed, as far as it came."""
    found = PRINTED.findall(COLOUR.sub("", text))
    return {name: Result(OUTCOMES[word], "") for word, suite, name in found if suite == model}


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
    reported, printed = read_tap(_text(report), model), read_printed(_text(log), model)
    return complete(cases, reported, printed, why), why


def _text(path):
    """Of a file that may not have been written."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def complete(cases, reported, printed, why):
    """A Result for each case, from what was reported, or else printed."""
    missing = Result(FAILED, "not run to its end: %s" % (why or "the test program ended early"))
    results = {}
    for case in cases:
        result = reported.get(case) or printed.get(case) or missing
        if result.outcome == FAILED and not result.evidence:
            result = missing
        results[case] = result
    return results
