"""The seven bare.c: each stands alone and fits a page, and the chapters print the steps from one to the next
whole. What each serves is in test_lab.
"""

import glob
import os
import unittest

import place
import edits
import markdown

FILES = sorted(glob.glob(os.path.join(place.TOP, "0*_*", "bare.c")))
MOST_LINES = 5 * [60] + 2 * [80]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Pages(unittest.TestCase):
    def test_there_are_seven_and_each_fits_its_page(self):
        self.assertEqual(len(FILES), 7)
        for path, most in zip(FILES, MOST_LINES):
            with self.subTest(path):
                self.assertLessEqual(len(read(path).splitlines()), most)
                self.assertNotIn('\n#include "', read(path))

    def test_what_a_chapter_prints_makes_this_file_of_the_one_before(self):
        for before, after in zip(FILES, FILES[1:]):
            page = os.path.join(os.path.dirname(after), "README.md")
            mine, wanted = (edits.without_essay(read(path)) for path in (before, after))
            info = "diff " + os.path.relpath(after, place.TOP)
            with self.subTest(page):
                for block in markdown.Document(page, read(page)).blocks:
                    mine = edits.typed(mine, block.lines) if block.info == info else mine
                self.assertEqual("", edits.differences(mine, wanted))

    def test_chapter_1_prints_all_of_its_own(self):
        page = os.path.join(os.path.dirname(FILES[0]), "README.md")
        printed = [line for block in markdown.Document(page, read(page)).blocks
                   if block.info == "c 01_iterative/bare.c" for line in block.lines]
        self.assertEqual([line for line in read(FILES[0]).split("\n") if line], [line for line in printed if line])


if __name__ == "__main__":
    unittest.main()
