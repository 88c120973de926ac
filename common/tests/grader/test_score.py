"""Are points what the rules say, and is everything shown?"""

import json
import unittest

import place  # noqa: F401  (finds the grader)
import score
import table

WORKS = table.SECTIONS[0]


def rows(*outcomes):
    return [score.Row(WORKS.name, "case %d" % number, outcome, "evidence", "a chapter")
            for number, outcome in enumerate(outcomes)]


class Points(unittest.TestCase):
    def test_are_shared_equally_and_rounded_down(self):
        """What could not be tried does not count. A hair, which 25 * 23 / 25 lacks, is not lost."""
        for outcomes, points in ((["passed"] * 7, 20), (["passed", "passed", "failed", "passed"], 15),
                                 (["passed"] * 299 + ["failed"], 19.9), (["passed", "skipped", "skipped"], 20), ([], 0)):
            self.assertEqual(points, score.shared(WORKS, rows(*outcomes)).points)
        self.assertEqual((1, 1, 2), score.shared(WORKS, rows("passed", "skipped", "skipped"))[3:])
        self.assertEqual(8, score.shared(WORKS, rows("passed", "failed"), 8.0).points)  # by a rule of its own
        self.assertEqual(23, score.floor(25 * (23 / 25)))


class Shown(unittest.TestCase):
    def setUp(self):
        self.rows = rows("passed", "failed")
        sections = [score.shared(WORKS, self.rows)]
        self.grade = score.Grade("./mine", "epoll", sections, self.rows, 4711)
        self.grade.programs = ["/usr/bin/node"]

    def test_as_json(self):
        self.assertEqual({
            "server": "./mine", "model": "epoll", "points": 10, "of": 20, "seed": 4711,
            "lanes": None, "programs": ["/usr/bin/node"], "missing": [],
            "sections": [{"name": "it works", "points": 10, "of": 20, "passed": 1, "cases": 2,
                          "skipped": 0}],
            "failures": [{"section": "it works", "case": "case 1", "evidence": "evidence",
                          "read": "a chapter"}]}, json.loads(self.grade.to_json()))

    def test_as_text(self):
        text = self.grade.to_text()
        self.assertTrue(text.startswith("./mine, as epoll: 10 of 20 points\n"), text)
        self.assertIn("it works             10 of 20   1 of 2 cases\n", text)
        self.assertIn("\nThe scenes had the seed 4711.\nWhat served: /usr/bin/node\n", text)
        self.assertIn("\n  case 1\n      evidence\n      Read a chapter", text)

    def test_what_a_server_said_gives_a_terminal_no_orders(self):
        self.grade.failures = [self.rows[1]._replace(evidence="\x1b[2J\x9b1m\u202e100 of 100")]
        self.grade.programs = ["/tmp/\x1b]0;me\x07"]
        self.assertNotRegex(self.grade.to_text(), "[\x1b\x07\x9b\u202e]")
