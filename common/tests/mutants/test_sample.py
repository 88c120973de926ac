"""Does the sample's list of equivalent mutants speak of the code of today?"""

import unittest

import sample


class Equivalent(unittest.TestCase):
    def test_has_no_entry_whose_line_is_gone(self):
        gone = ("common/http.c", "http_encode", "gone;", "")
        self.assertEqual(sample.stale([*sample.equivalent(), gone]), [gone])
