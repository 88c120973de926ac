"""What `make exercise` and `make exercises` do for a learner, in a project of the test's own."""

import difflib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

import place  # first: it says where the rest lies
import checks

TASK = """\
# A number

Chapter 1 · %s · %d minutes · ★☆☆

Print the right number.

    make exercise EX=01/%s
"""
START = """\
#include <stdio.h>

int main(void)
{
    printf("41\\n");
    return 0;
}
"""
CHECK = '''\
import os

REASON = "right"


def check(ex):
    if os.environ.get("NOT_HERE"):
        ex.skip("the moon is not full")
    if os.environ.get("BROKEN"):
        print(1 / 0)
    run = ex.run()
    if os.environ.get("CHANGED"):
        open(os.environ["CHANGED"], "w").close()
    ex.expect("right", "the number 42", lambda: run.stdout == "42\\n",
              saw=lambda: run.stdout.strip(), hint=2, read="printf(3)")
'''
BODY = START.replace("41", "42").replace("int main", "/* The one number there is. */\nint main")
MAIN = "/* Chapter 1: numbers.\n *\n * Not in the starting file.\n */\n" + BODY
OVERLAID = "/* Exercise 01/overlay: a number. */\n" + BODY.replace("42", "41")
HANGS = '''\
REASON = "none"


def check(ex):
    print("redis:", ex.redis().where, flush=True)
    ex.wait(lambda: False, 60)
'''


def patch(name, before, after):
    return "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), name + ".c", name + ".c"))


class Learner(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="zerohttpd.")
        cls.addClassCleanup(shutil.rmtree, cls.top)
        checks.make("iterative")
        shutil.copy(os.path.join(place.TOP, "Makefile"), cls.top)
        for each in ("common", "loadtest/lib", "build/plain/common"):  # as new as the originals are
            shutil.copytree(os.path.join(place.TOP, each), os.path.join(cls.top, each),
                            ignore=shutil.ignore_patterns("tests", "__pycache__"))
        for each in ("common/tests/tests.mk", "loadtest/loadtest.mk"):
            os.makedirs(os.path.dirname(os.path.join(cls.top, each)), exist_ok=True)
            shutil.copy(os.path.join(place.TOP, each), os.path.join(cls.top, each))
        for name, kind, minutes, check in (("number", "predict", 10, CHECK),
                                           ("hang", "build", 20, HANGS),
                                           ("numbers", "build", 5, CHECK)):
            files = "01_iterative/exercises/"
            cls.write(files + name + ".md", TASK % (kind, minutes, name))
            cls.write(files + name + ".c", START)
            cls.write(files + name + ".py", check)
            cls.write(files + "solutions/%s.patch" % name, patch(name, START, START.replace("41", "42")))
        cls.write(files + "overlay.md", TASK % ("build", 30, "overlay"))
        cls.write(files + "overlay.patch", patch("overlay", BODY, OVERLAID))
        cls.write(files + "overlay.py", CHECK)

    def setUp(self):
        self.write("01_iterative/main.c", MAIN)
        shutil.rmtree(os.path.join(self.top, ".mine"), ignore_errors=True)

    @classmethod
    def write(cls, path, text):
        path = os.path.join(cls.top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_text(text, "utf-8")

    def answer(self, text):
        self.write(".mine/01_iterative/number.c", START.replace("41", text))

    def check(self, status, *arguments, **environment):
        """What it prints, if it ends with that status."""
        found, printed = place.run("run", *(arguments or ["01/number"]), top=self.top, SAN="", **environment)
        self.assertEqual(found, status, printed)
        return printed

    def listed(self):
        """What the list says of 01/number."""
        status, printed = place.run("list", top=self.top)
        self.assertEqual(status, 0, printed)
        return re.search(r"^  (\S+) +01/number ", printed, re.MULTILINE).group(1), printed

    def mine(self, name="number"):
        return os.path.join(self.top, ".mine", "01_iterative", name + ".c")

    # ---- the copy ------------------------------------------------------------------------

    def test_the_first_time_gives_a_copy_and_says_what_is_missing_and_it_is_never_overwritten(self):
        printed = self.check(1)
        self.assertEqual(text_of(self.mine()), START)
        for words in (".mine/01_iterative/number.c, new", "expected: the number 42", "saw:      41",
                      "open hint 2 in 01_iterative/exercises/number.md", "man 3 printf"):
            self.assertIn(words, printed)
        self.assertEqual(place.last_line(printed), "not yet: right")
        self.answer("43")
        printed = self.check(1)
        self.assertIn("saw:      43", printed)
        self.assertNotIn(", new", printed)

    def test_a_copy_may_be_made_of_the_chapter_whose_changes_reach_it(self):
        self.assertEqual(place.last_line(self.check(1, "01/overlay")), "not yet: right")
        begun = "/* Exercise 01/overlay: a number. */\n#include <stdio.h>\n\n/* The one number"
        self.assertTrue(text_of(self.mine("overlay")).startswith(begun))
        shutil.rmtree(os.path.join(self.top, ".mine"))
        self.write("01_iterative/main.c", MAIN.replace("Not in", "Nowhere in").replace(
            "return 0;\n}", "return 0;\n}\n\n/* New in the chapter. */"))
        self.check(1, "01/overlay")
        self.assertTrue(text_of(self.mine("overlay")).endswith("}\n\n/* New in the chapter. */\n"))

    def test_a_chapter_that_the_patch_no_longer_fits_gives_no_copy_but_spares_one_that_is_there(self):
        self.write("01_iterative/main.c", MAIN.replace("one number", "only number"))
        self.assertIn("01_iterative/exercises/overlay.patch does not fit 01_iterative/main.c",
                      self.check(2, "01/overlay"))
        self.assertFalse(os.path.exists(self.mine("overlay")))
        self.write("01_iterative/main.c", MAIN)
        self.check(1, "01/overlay")
        self.write("01_iterative/main.c", MAIN.replace("one number", "only number"))
        self.assertEqual(place.last_line(self.check(1, "01/overlay")), "not yet: right")

    def test_the_right_answer_passes_and_is_done_until_it_is_changed(self):
        self.assertEqual(self.listed()[0], "–")
        self.check(1)
        self.assertEqual(self.listed()[0], "begun")
        self.answer("42")
        printed = self.check(0)
        for words in ('open "When it passes" in 01_iterative/exercises/number.md',
                      "diff .mine/01_iterative/number.c build/solutions/01_iterative/number.c"):
            self.assertIn(words, printed)
        self.assertEqual(place.last_line(printed), "passed")
        self.assertEqual(self.listed()[0], "done")
        self.answer("40 + 2")
        self.assertEqual(self.listed()[0], "begun")

    def test_a_verdict_is_of_what_the_copy_says_whatever_its_date(self):
        self.check(1)
        for number, status in ((42, 0), (41, 1)):
            self.write("older.c", START.replace("41", str(number)))
            os.utime(os.path.join(self.top, "older.c"), (1e9, 1e9))
            os.rename(os.path.join(self.top, "older.c"), self.mine())
            self.check(status)
            self.assertEqual(self.listed()[0], "begun" if status else "done")

    def test_a_copy_that_changes_while_it_is_checked_gets_no_mark(self):
        self.check(1)
        self.answer("42")
        self.check(0, CHANGED=self.mine())
        self.assertEqual(self.listed()[0], "begun")

    def test_what_was_missed_is_on_the_page_and_the_list_stays_as_it_is(self):
        page = os.path.join(self.top, "build", "exercises.html")
        self.check(1)
        status, printed = place.run("list", page, top=self.top)
        self.assertEqual(status, 0, printed)
        self.assertIn("Expected: the number 42", text_of(page))
        self.assertEqual(printed.replace(os.path.relpath(page) + "\n", ""), self.listed()[1])
        self.check(0, "01/number", "--of", "solutions")
        self.assertEqual(self.listed()[0], "begun")

    def test_what_does_not_compile_is_said_in_the_compilers_words(self):
        self.write(".mine/01_iterative/number.c", START.replace("return 0", "return zero"))
        self.assertRegex(self.check(2), r"number\.c:6:.*zero")

    def test_the_starting_file_and_the_solution_leave_the_copy_alone(self):
        self.check(1, "01/number", "--of", "exercises")
        self.check(0, "01/number", "--of", "solutions")
        self.assertFalse(os.path.exists(self.mine()))
        self.assertEqual(self.listed()[0], "–")

    # ---- the rest ------------------------------------------------------------------------

    def test_a_name_may_be_short_or_long_and_a_wrong_one_lists_near_ones(self):
        for name in ("number", "01/number", "01_iterative/number"):
            self.check(1, name)
        for wrong, near in (("01/nmber", "01/number"), ("01/xyz", "01/hang"), ("", "make exercises")):
            self.assertIn(near, self.check(2, wrong))

    def test_a_check_that_cannot_be_made_here_or_fails_itself_is_no_verdict(self):
        self.assertEqual(place.last_line(self.check(77, NOT_HERE="1")), "skipped: the moon is not full")
        printed = self.check(2, BROKEN="1")
        self.assertIn("ZeroDivisionError", printed)
        self.assertIn("the check itself has failed", place.last_line(printed))

    def test_the_list_counts_and_says_what_is_next(self):
        printed = self.listed()[1]
        self.assertIn("Chapter 1: iterative\n", printed)
        self.assertRegex(printed, r" 01/number +★ +10 min +predict +A number\n")
        self.assertIn("4 exercises: 0 done, 0 begun\n", printed)
        self.assertEqual(place.last_line(printed), "next: make exercise EX=01/numbers")  # 5 minutes

    def test_ctrl_c_ends_the_check_and_all_it_started(self):
        command = [os.path.join(self.top, "common", "classroom", "exercises", "run"), "01/hang"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8",
                              env={**place.ENVIRONMENT, "SAN": ""}) as process:
            for line in process.stdout:
                if line.startswith("redis: unix:"):
                    break
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(20), 130)
        socket = line.strip().partition("unix:")[2]
        self.assertFalse(os.path.exists(socket))


def text_of(path):
    return Path(path).read_text("utf-8")
