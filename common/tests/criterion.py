"""criterion: what a program of Criterion says of its tests.

Of the forms that Criterion 2.4 writes, TAP (--tap=REPORT) is the one that a message cannot break: it
does not escape what stands in its JSON and XML, while here every line of a message is indented. It
is written at the end.
"""

import collections
import os
import re

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
Result = collections.namedtuple("Result", "outcome evidence")

# ok - epoll::a_file_says_what_it_is  (0.06s)
# ok - epoll::a_server_without_anything_to_do_sleeps  # SKIP who is traced wakes more often
# ok - poll::a_file_says_what_it_is  # SKIP test was skipped: --filter left it out
# not ok - epoll::it_needs_no_rights  (0.10s), and the failures, indented
# not ok - epoll::a_file_says_what_it_is unexpected signal after common/tests/servers/files.c:27
TEST = re.compile(r"^(not ok|ok) - (\w+::\w+) *(.*)\n((?: .*\n?)*)", re.MULTILINE)
MESSAGE = re.compile(r"^      ?(?:Assertion failed: )?(?:\w+: (?=not true: ))?(.*)$", re.MULTILINE)


def read_report(text):
    """{"suite::case": Result} of all that --filter did not leave out."""
    results = {}
    for test in TEST.finditer(text):
        word, case, rest, below = test.groups()
        if rest == "# SKIP test was skipped":
            continue
        evidence = "\n".join(MESSAGE.findall(below)) or "the test came to no end: " + rest
        outcome = FAILED if word == "not ok" else SKIPPED if rest.startswith("# SKIP ") else PASSED
        results[case] = Result(outcome, evidence)
    return results


def read_file(path):
    """The text of a file that may not have been written."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
