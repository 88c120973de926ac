"""Does the sample's list of equivalent mutants speak of the code of today?"""

import os
import unittest
import unittest.mock

import sample


class Lines(unittest.TestCase):
    def test_are_as_many_without_their_comments(self):
        with open(os.path.join(sample.TOP, "common", "http.c"), encoding="utf-8") as file:
            source = file.read()
        lines = sample.lines_of("common/http.c")
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
        entries = [("common/http.c", "http_encode", line, "") for line in ("size_t n = 0;", "gone;")]
        self.assertEqual(sample.stale(entries), entries[1:])


class Stage(unittest.TestCase):
    """What is said of a stage: whether a mutant fails it, and whether its cases are of use."""

    def found_by(self, with_mutant, without):
        """The cases that fail with the mutant, and those that fail without it."""
        def run(_stage, _folder, program_from, _cases, *options):
            yield from ()
            failing = without if program_from == sample.TOP else with_mutant
            return (1 if failing else 0), list(failing)

        stage = unittest.mock.Mock(cases="*", seconds=1)
        with unittest.mock.patch.object(sample, "run", run), \
                unittest.mock.patch.object(sample, "useless", set()):
            try:
                steps = sample.found_by(stage, "a mutant's folder")
                while True:
                    next(steps)
            except StopIteration as end:
                return end.value, sample.useless

    def test_a_case_that_fails_with_the_mutant_alone_finds_it(self):
        self.assertEqual(self.found_by(["a/case"], []), ("a/case", set()))
        self.assertEqual(self.found_by([], []), (None, set()))

    def test_a_case_that_fails_without_it_too_finds_nothing_and_is_named(self):
        self.assertEqual(self.found_by(["a/case"], ["a/case"]), (None, {"a/case"}))
