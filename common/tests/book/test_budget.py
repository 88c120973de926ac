"""No part of the project has more lines than it may have. See budget for how they are counted."""

import unittest

import book
import budget
import project


class Budget(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = budget.rows(project.Project(book.TOP))
        if not cls.rows:
            raise unittest.SkipTest("a course's copy has no budget")

    def test_no_part_has_more_lines_than_it_may_have(self):
        for patterns, there, _, most in self.rows:
            with self.subTest(patterns):
                self.assertLessEqual(there, most, "take something away; common/tests/README.md says why")

    def test_the_table_is_right_by_a_tenth(self):
        for patterns, there, stated, _ in self.rows:
            with self.subTest(patterns):
                self.assertAlmostEqual(stated, there, delta=there / 10 + 50, msg="make tables writes it")
