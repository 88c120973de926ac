"""Does everybody who names all servers one by one name those of common/servers.tsv, in that order? Most of them read
it (top.py). The others are these."""

import itertools
import os
import re
import sys
import unittest

import project
import said

sys.path.insert(1, os.path.join(said.TOP, "common", "tools", "lib"))
import top

OURS = project.Project(said.TOP)
KINDS = {"FOR_ALONE": "alone", "FOR_MAKERS": "maker", "FOR_POOLS": "pool", "FOR_LOOPS": "loop"}  # of harness.h
# Where whatever is built is listed, and where the book's seven are: a pattern for a name or a line of them.
BUILT = {
    "Makefile": r"^SERVERS +=(.*)",
    "public/wall.js": r"^const SERVERS = \[(.*)\]",
    "public/index.html": r'<tr id="(\w+)">',
}
BOOK = {
    "public/model.js": r"^  (\w+): \{ (?:team|maker|loop)\b",
    "06_poll/exercises/computes.c": r'\{"(\w+)", 0, 0\}',
    "common/book/contents.md": r"^  - \[[1-7]\. (\w+)\]",
    "common/classroom/classroom.mk": r"^0\d_(\w+)_USES",
    "common/classroom/quiz.gift": r"^\$CATEGORY: ZeroHTTPd/[1-7] (\w+)",
    "README.md": r"^\| \[0[1-7] (\w+)\]",
}


def listed(path, pattern):
    return [word for found in re.findall(pattern, OURS.text(path), re.MULTILINE) for word in re.findall(r"\w+", found)]


class Servers(unittest.TestCase):
    def test_each_list_is_the_list(self):
        for names, lists in (top.NAMES, BUILT), (top.BOOK, BOOK):
            for path, pattern in lists.items():
                if path in OURS.files:  # a course's copy has no quiz
                    with self.subTest(path):
                        self.assertEqual(names, listed(path, pattern))
        self.assertEqual(set(top.NAMES), OURS.servers)  # which have a folder
        self.assertLessEqual(set(top.NAMES), set(listed(".gitignore", r"^/(\w+)$")))

    def test_they_are_built_of_what_their_kind_needs(self):
        rules = re.findall(r"(?m)^\$\(BIN\)(\w+): +\$\(OUT\)/(\w+)/main\.o +\$\((\w+)\)", OURS.text("Makefile"))
        self.assertEqual([(name, row["folder"], "LOOP" if row["kind"] == "loop" else "BLOCKING")
                          for name, row in top.ROWS.items()], rules)
        uses = re.findall(r"(?m)^(\w+)_USES += \$\((\w+)\)", OURS.text("common/classroom/classroom.mk"))
        self.assertEqual([rule[1:] for rule in rules[:len(top.BOOK)]], uses)

    def test_the_harness_knows_them_by_their_kind(self):
        words = re.findall(r"(?m)^#define (FOR_\w+)|\bX\((\w+), \"(\w+)\"", OURS.text("common/tests/harness/harness.h"))
        kinds = itertools.accumulate((KINDS.get(kind) for kind, _, _ in words), lambda before, kind: kind or before)
        self.assertEqual({name: (row["kind"], row["sleeps in"]) for name, row in top.ROWS.items()},
                         {name: (kind, call) for kind, (_, name, call) in zip(kinds, words) if name})

    def test_no_case_names_all_of_a_kind_one_by_one(self):
        """A new one would be left out. AGAINST_LOOPS(case) takes it in."""
        for path in OURS.files:
            if re.match(r"common/tests/\w+/\w+\.c$", path):
                against = re.findall(r"(?m)^AGAINST\((\w+), (\w+)\)$", OURS.text(path))
                for case in {case for _, case in against}:
                    for kind in "maker", "pool", "loop":
                        self.assertFalse({(name, case) for name in top.of_kind(kind)} <= {*against}, (path, case, kind))
