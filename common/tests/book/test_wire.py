"""Do common/HTTP.md and the tests know the same rules? A test cites no other, and each has a test."""

import re
import unittest

import book
import project

HEADING = re.compile(r"^### Rule (\d+): .*\n((?:(?!##).*\n)*)", re.MULTILINE)
CITED = re.compile(r"\brules?[ _](\d+)(?:[ _](?:to|and)[ _](\d+))?", re.IGNORECASE)
ROW = re.compile(r"\b(?:CASE|CUT|BAD|BAD_CUT)\(\"([\d ]+)\"")  # of wire_cases.h


class Wire(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ours = project.Project(book.TOP)
        cls.rules = HEADING.findall(ours.text("common/HTTP.md"))
        cls.numbers = [int(number) for number, _ in cls.rules]
        cls.cited = {}  # number: a file that cites it
        for path in sorted(ours.files):
            if path.startswith("common/tests/") and path.endswith((".c", ".h")):
                text = ours.text(path)
                found = CITED.findall(text) + [(row, "") for row in ROW.findall(text)]
                for number in " ".join(map(" ".join, found)).split():
                    cls.cited.setdefault(int(number), path)

    def test_the_rules_are_numbered_from_1_on(self):
        self.assertEqual(self.numbers, list(range(1, len(self.rules) + 1)))
        self.assertGreaterEqual(len(self.rules), 22)

    def test_every_rule_that_a_test_cites_is_there(self):
        for number, path in self.cited.items():
            self.assertIn(number, self.numbers, "cited by " + path)

    def test_every_rule_is_cited_by_a_test(self):
        for number in self.numbers:
            self.assertIn(number, self.cited)

    def test_every_rule_names_what_it_rests_on_and_has_one_example(self):
        for number, text in self.rules:
            self.assertRegex(text, r"(?m)^(RFC \d+, \d|Content Security Policy)", "rule " + number)
            self.assertEqual(text.count("```text\n"), 1, "rule " + number)
