"""Are the mutants as their document says, do their patches apply, and are a few of them found out?
And does the judge know a mutant that nobody notices?"""

import collections
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

import mutants
import criterion
import sample
from lib.measuring import processes
from lib.subjects import servers

LEAST = 20
QUICK = ["close-overheard", "markup", "two-lengths"]  # built and found out in a few seconds

NO_FAULT = """\
--- a/01_iterative/main.c
+++ b/01_iterative/main.c
@@ -1,3 +1,3 @@
-/* Chapter 1: iterative. One process, one client at a time.
+/* Chapter 1: iterative. One process, and one client at a time.
  *
  * The model: accept a client, serve it to the end, close it, accept the next.
"""


class Patches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mutants = mutants.table().values()

    def test_there_are_enough_and_every_server_has_some(self):
        self.assertEqual({mutant.path for mutant in self.mutants}, set(glob.glob(mutants.HERE + "/*.patch")))
        self.assertGreaterEqual(len(self.mutants), LEAST)
        count = collections.Counter(mutant.server for mutant in self.mutants)
        self.assertEqual(sorted(count), sorted(servers.NAMES))
        self.assertGreater(min(count.values()), 1)

    def test_each_applies_to_the_code_of_today(self):
        """So does the change that a load test is about."""
        change = os.path.join(mutants.TOP, "loadtest", "results", "new-redis", "change.patch")
        for path in [change, *(mutant.path for mutant in self.mutants)]:
            with self.subTest(path):
                run = subprocess.run(mutants.patch_command(path, "--dry-run"), cwd=mutants.TOP,
                                     capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 0, run.stdout)

    def test_the_cases_that_find_it_are_there(self):
        cases = {program: criterion.cases_of(os.path.join(mutants.TOP, mutants.OBJECTS, program))
                 for program in ("servers", "weather")}
        for mutant in self.mutants:
            with self.subTest(mutant.name):
                self.assertTrue(mutant.case in cases[mutants.program_of(mutant.case)], mutant.case)

    def test_those_that_no_test_can_find_are_of_the_code_of_today(self):
        for path, function, original, _ in sample.equivalent():
            lines = sample.lines_of(path)
            self.assertIn((function, original), list(zip(sample.functions(lines), map(sample.shown, lines))))


class Judged(unittest.TestCase):
    def setUp(self):
        self.addCleanup(shutil.rmtree, os.path.join(mutants.BUILT, "tested"), ignore_errors=True)
        self.addCleanup(processes.end_all)

    def test_a_few_are_found_out(self):
        known = mutants.table()
        for verdict in mutants.verdicts([mutants.examine(known[name]) for name in QUICK]):
            with self.subTest(verdict.mutant.name):
                self.assertEqual(verdict.word, mutants.FOUND_OUT, verdict.why)

    def test_what_nobody_notices_has_survived(self):
        self.assertEqual(self.verdict(NO_FAULT), mutants.SURVIVED)

    def test_one_that_cannot_be_made_is_an_error(self):
        self.assertEqual(self.verdict(NO_FAULT.replace("and one client", "*/ and one client")), mutants.FAILED)

    def verdict(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".patch") as file:
            file.write(text)
            file.flush()
            mutant = mutants.Mutant("tested", file.name, "iterative", "", "iterative/the_home_page_is_index_html")
            return next(mutants.verdicts([mutants.examine(mutant)])).word
