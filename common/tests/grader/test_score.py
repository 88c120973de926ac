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
    def test_who_passes_all_gets_all(self):
        self.assertEqual(20, score.shared(WORKS, rows(*["passed"] * 7)).points)

    def test_are_shared_equally(self):
        found = score.shared(WORKS, rows("passed", "passed", "failed", "passed"))
        self.assertEqual(15, found.points)

    def test_are_rounded_down(self):
        found = score.shared(WORKS, rows(*["passed"] * 299, "failed"))
        self.assertEqual(19.9, found.points)

    def test_what_could_not_be_tried_does_not_count(self):
        found = score.shared(WORKS, rows("passed", "skipped", "skipped"))
        self.assertEqual((20, 1, 1, 2), (found.points, found.passed, found.cases, found.skipped))

    def test_nothing_tried_is_nothing(self):
        self.assertEqual(0, score.shared(WORKS, []).points)

    def test_a_rule_of_its_own_comes_first(self):
        self.assertEqual(8, score.shared(WORKS, rows("passed", "failed"), 8.0).points)

    def test_a_hair_is_not_lost(self):
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


if __name__ == "__main__":
    unittest.main()
