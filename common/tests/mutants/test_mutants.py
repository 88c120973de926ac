"""Are the mutants as their document says, do their patches apply, and is a sample of them found out?
And does the judge know a mutant that nobody notices?"""

import collections
import os
import shutil
import subprocess
import tempfile
import unittest

import mutants
from lib.measuring import processes
from lib.subjects import servers

LEAST = 20
QUICK = ["close-overheard", "markup", "two-lengths"]  # built and found out in a few seconds
DOCUMENT = os.path.join(mutants.TOP, "common", "tests", "README.md")

NO_FAULT = """Nothing is wrong with it.

Server: iterative
Found by: servers iterative/the_home_page_is_index_html
Read: 01_iterative/README.md

--- a/01_iterative/main.c
+++ b/01_iterative/main.c
@@ -1,3 +1,3 @@
-/* Chapter 1: iterative. One process, one client at a time.
+/* Chapter 1: iterative. One process, and one client at a time.
  *
  * The model: accept a client, serve it to the end, close it, accept the next.
"""


def cases_of(program):
    """All that it has: {"epoll/connection_close_closes", ...}"""
    listing = subprocess.run([os.path.join(mutants.TOP, mutants.OBJECTS, program), "--list"],
                             check=True, capture_output=True, text=True).stdout
    cases, suite = set(), None
    for line in listing.splitlines():
        name = line.lstrip("├─└ ").partition(":")[0]
        if line[:1] in "├└":
            cases.add("%s/%s" % (suite, name))
        else:
            suite = name
    return cases


class Patches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mutants = [mutants.read(name) for name in mutants.names()]

    def test_there_are_enough_and_every_server_has_some(self):
        self.assertGreaterEqual(len(self.mutants), LEAST)
        count = collections.Counter(mutant.server for mutant in self.mutants)
        self.assertEqual(sorted(count), sorted(servers.NAMES))
        self.assertGreater(min(count.values()), 1)

    def test_each_applies_to_the_code_of_today(self):
        for mutant in self.mutants:
            with self.subTest(mutant.name):
                run = subprocess.run(mutants.patch_command(mutant, "--dry-run"), cwd=mutants.TOP,
                                     capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 0, "%s.patch no longer applies:\n%s"
                                 % (mutant.name, run.stdout))

    def test_so_does_the_change_that_a_load_test_is_about(self):
        change = os.path.join(mutants.TOP, "loadtest", "results", "new-redis", "change.patch")
        with open(change, "rb") as patch:
            run = subprocess.run(["patch", "-p1", "--dry-run"], stdin=patch, cwd=mutants.TOP,
                                 capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_the_cases_that_find_it_are_there(self):
        cases = {program: cases_of(program) for program in ("servers", "weather")}
        for mutant in self.mutants:
            with self.subTest(mutant.name):
                self.assertTrue(mutant.cases in cases[mutant.program], mutant.cases)
                self.assertTrue(mutant.cases.startswith(mutant.server + "/"))

    def test_the_document_has_them_all(self):
        with open(DOCUMENT, encoding="utf-8") as file:
            section = file.read().partition("\n## Mutants\n")[2]
        rows = [line for line in section.splitlines() if line.startswith("| ")]
        expected = [row for row in mutants.table() if row.startswith("| ")]
        self.assertEqual(rows, expected, "\nIn %s these should stand:\n%s"
                         % (os.path.relpath(DOCUMENT, mutants.TOP), "\n".join(mutants.table())))


class Judging(unittest.TestCase):
    def setUp(self):
        self.addCleanup(shutil.rmtree, os.path.join(mutants.BUILT, "tested"), ignore_errors=True)
        self.addCleanup(processes.end_all)

    def verdict(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tested.patch")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return next(mutants.verdicts([mutants.examine(mutants.read_patch("tested", path))]))

    def test_a_few_are_found_out(self):
        for verdict in mutants.verdicts(
                [mutants.examine(mutants.read(name)) for name in QUICK]):
            with self.subTest(verdict.mutant.name):
                self.assertEqual(verdict.word, mutants.FOUND_OUT, verdict.why)

    def test_what_nobody_notices_has_survived(self):
        self.assertEqual(self.verdict(NO_FAULT).word, mutants.SURVIVED)

    def test_a_patch_that_does_not_apply_is_an_error(self):
        verdict = self.verdict(NO_FAULT.replace("-/* Chapter 1", "-/* Chapter 9"))
        self.assertEqual((verdict.word, verdict.why),
                         (mutants.FAILED, "tested.patch no longer applies"))

    def test_a_mutant_has_to_compile(self):
        verdict = self.verdict(NO_FAULT.replace("and one client", "*/ and one client"))
        self.assertEqual(verdict.word, mutants.FAILED)
        self.assertIn("does not compile", verdict.why)

    def test_a_patch_says_what_it_is(self):
        with self.assertRaises(mutants.Trouble):
            self.verdict(NO_FAULT.replace("Found by", "Found"))
