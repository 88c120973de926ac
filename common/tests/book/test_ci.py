"""CI: a case that fails and passes when run again is named and counted, and the second time fails."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import book

CASE = "test_flaky.Flaky.test_it"
ROW = r"\d{4}-\d\d-\d\d\t[^\t\n]+\t%s\t\n" % re.escape(CASE)
# Fails in each step of CI for the first so many times, and passes from then on.
FLAKY = '''
import os
import unittest

class Flaky(unittest.TestCase):
    def test_it(self):
        with open(os.environ["TRIES"], "a+") as file:
            file.write(".")
            file.seek(0)
            self.assertGreater(len(file.read()), int(os.environ["FAILS"]))
'''
# One of CI's steps runs the suite, the others pass.
MAKE = '''#!/bin/sh
[ "$*" = test ] || exit 0
export OUT=first TRIES=first.tries
exec common/tests/run book
'''


@unittest.skipUnless(os.path.exists(os.path.join(book.TOP, ".ci", "run")), "there is no .ci here")
class Unsteady(unittest.TestCase):
    """CI in a folder that holds one case, with a make that only runs that."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="zerohttpd.")
        self.addCleanup(shutil.rmtree, self.folder)
        for name in (".ci/run", "common/tests/run"):
            os.makedirs(os.path.dirname(os.path.join(self.folder, name)))
            shutil.copy(os.path.join(book.TOP, name), os.path.join(self.folder, name))
        self.write("common/tests/book/test_flaky.py", FLAKY)
        self.write("bin/make", MAKE, 0o755)

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def ci(self, fails, history=""):
        history = "date\tcommit\tcase\treason\n" + history
        self.write(".ci/unsteady.tsv", history)
        done = subprocess.run(
            [os.path.join(self.folder, ".ci", "run")], check=False, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={"PATH": os.path.join(self.folder, "bin") + ":" + os.environ["PATH"],
                 "FAILS": str(fails), "TMPDIR": self.folder})
        with open(os.path.join(self.folder, ".ci", "unsteady.tsv"), encoding="utf-8") as file:
            self.assertEqual(history, file.read(), "CI must not write into the tree")
        return done.returncode, done.stdout.rpartition("\n==== make lint\n")[2]

    def test_a_steady_case_is_not_named(self):
        status, said = self.ci(0, "2026-01-02\t0123456\t%s\tmended?\n" % CASE)
        self.assertEqual(0, status, said)
        self.assertRegex(said, r"\A\n(0 minutes: make .+\n){6}\n6 passed, 0 failed, 0 skipped\n\Z")

    def test_a_case_is_named_the_first_time_and_the_second_time_fails(self):
        others = ("2026-01-02\t0123456\t{0}_too\tanother case\n"
                  "2026-01-02\t0123456\tanother\t{0}\n# {0}\n{0}\n").format(CASE)
        status, said = self.ci(1, others)
        self.assertEqual(0, status, said)
        self.assertRegex(said, r"\n%s was unsteady, 1 time so far\. [^\n]*\.ci/unsteady\.tsv[^\n]*\n"
                               r"%s\n6 passed, 0 failed, 0 skipped\n\Z" % (re.escape(CASE), ROW))
        os.remove(os.path.join(self.folder, "first.tries"))
        status, said = self.ci(1, re.search(ROW, said).group().replace("\t\n", "\tRedis was slow\n"))
        self.assertEqual(1, status, said)
        self.assertRegex(said, r"\n%s was unsteady, 2 times so far\. Mend it or remove it\.\n"
                               r"\n5 passed, 1 failed, 0 skipped\n\Z" % re.escape(CASE))

    def test_a_case_that_fails_again_is_not_unsteady(self):
        status, said = self.ci(2)
        self.assertEqual(1, status, said)
        self.assertIn("\nFAILED:\n", said)
        self.assertNotIn("unsteady", said)
