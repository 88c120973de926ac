"""Does the sample's list of equivalent mutants speak of the code of today?"""

import os
import unittest

import sample


class Lines(unittest.TestCase):
    def test_are_as_many_without_their_comments(self):
        with open(os.path.join(sample.TOP, "common", "http_uri.c"), encoding="utf-8") as file:
            source = file.read()
        lines = sample.lines_of("common/http_uri.c")
        self.assertEqual(len(lines), source.count("\n"))
        self.assertNotIn("/*", "".join(lines))
        self.assertIn('    static const char hex[] = "0123456789ABCDEF";\n', lines)

    def test_are_known_by_their_function(self):
        lines = ["static int a(int b)\n", "{\n", "    return c(b);\n", "}\n", "int d;\n",
                 "__attribute__((format(printf, 1, 2))) static void e(char *f, ...)\n", "{\n"]
        self.assertEqual(list(sample.functions(lines)), ["a"] * 4 + ["-", "e", "e"])


class Equivalent(unittest.TestCase):
    def test_has_no_entry_whose_line_is_gone(self):
        self.assertEqual(sample.stale(sample.equivalent()), [])

    def test_a_line_that_is_gone_is_noticed(self):
        entries = [("common/http_uri.c", "encode", line, "") for line in ("size_t n = 0;", "gone;")]
        self.assertEqual(sample.stale(entries), entries[1:])


if __name__ == "__main__":
    unittest.main()
