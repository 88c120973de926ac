#!/usr/bin/env python3
"""criterion: what Criterion says of its tests.

    criterion.py REPORT            a line "PASSED FAILED SKIPPED CRASHED", then the failed, a line each
    criterion.py REPORT SUITE::CASE    why this one failed, as the report has it

Of the forms that Criterion 2.4 writes, TAP (--tap=REPORT) is the one that a message cannot break: it
does not escape what stands in its JSON and XML, while here every line of a message is indented. It
is written at the end. Where it did not come to that, what --verbose printed until then tells who
passed.
"""

import os
import re
import subprocess
import sys
from collections import Counter, namedtuple

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
NO_END = "the test came to no end: "
Result = namedtuple("Result", "outcome evidence")

# ok - epoll::a_file_says_what_it_is  (0.06s)
# ok - epoll::a_server_without_anything_to_do_sleeps  # SKIP who is traced wakes more often
# ok - poll::a_file_says_what_it_is  # SKIP test was skipped: --filter left it out
# not ok - epoll::it_needs_no_rights  (0.10s), and the failures, indented
# not ok - epoll::a_file_says_what_it_is unexpected signal after common/tests/servers/files.c:27
TEST = re.compile(r"^(not ok|ok) - (\w+::\w+) *(.*)$")
MESSAGE = re.compile(r"^      ?(?:Assertion failed: )?(?:\w+: (?=not true: ))?(.*)$")
SKIP, LEFT_OUT = "# SKIP ", "# SKIP test was skipped"
PRINTED = re.compile(r"^\[(PASS|FAIL|SKIP)\] (\w+::\w+)", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
OUTCOMES = {"PASS": PASSED, "FAIL": FAILED, "SKIP": SKIPPED}


def read_report(text):
    """{"suite::case": Result} of all that --filter did not leave out."""
    results, case, messages = {}, None, []
    for line in text.split("\n"):
        if found := TEST.match(line):
            word, case, rest = found.groups()
            messages = []
            if rest != LEFT_OUT:
                results[case] = _result(word, rest)
        elif line.startswith("      ") and case in results:
            messages.append(MESSAGE.match(line).group(1))
            results[case] = Result(FAILED, "\n".join(messages))
    return results


def _result(word, rest):
    """Of a test's own line."""
    if word == "not ok":
        return Result(FAILED, NO_END + rest)
    if rest.startswith(SKIP):
        return Result(SKIPPED, rest[len(SKIP):])
    return Result(PASSED, "")


def block(text, case):
    """What a report says of one that failed: its own line, and those below it, which are indented."""
    begin = text.index("not ok - %s " % case)
    end = re.compile(r"^(?! )", re.MULTILINE).search(text, text.index("\n", begin) + 1)
    return text[begin:end.start()]


def read_printed(text):
    """{"suite::case": Result} of what --verbose printed, as far as it came."""
    return {case: Result(OUTCOMES[word], "")
            for word, case in PRINTED.findall(COLOUR.sub("", text))}


def cases_of(program):
    """All that it has: {"suite/case"}."""
    cases, suite = set(), None
    for line in subprocess.check_output([program, "--list"], encoding="utf-8").splitlines():
        name = line.lstrip("├─└ ").partition(":")[0]
        if line[:1] in "├└":
            cases.add("%s/%s" % (suite, name))
        else:
            suite = name
    return cases


def read_file(path):
    """The text of a file that may not have been written."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def main(path, case=None):
    text = read_file(path)
    if case:
        print(block(text, case), end="")
        return
    results = read_report(text)
    count = Counter(result.outcome for result in results.values())
    failed = {case: result for case, result in results.items() if result.outcome == FAILED}
    crashed = sum(result.evidence.startswith(NO_END) for result in failed.values())
    print(count[PASSED], count[FAILED], count[SKIPPED], crashed)
    print(*failed, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
