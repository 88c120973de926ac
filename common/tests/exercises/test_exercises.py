"""Every exercise of the project: are its files there and in the right form, does the starting file
fail its check for the reason it is about, and does the solution pass?

The checks mostly wait, so several are made at once. Under sanitizers (SAN) only solutions are
checked: a planted bug may end a program there in another way.
"""

import concurrent.futures
import fnmatch
import os
import re
import unittest

import place  # first: it says where the rest lies
import checks
import exercises

SAN = os.environ.get("SAN", "")
JOBS = int(os.environ.get("JOBS", 0)) or 4 * (os.cpu_count() or 1)
SOLVED = any(os.path.exists(each.at(each.solution)) for each in exercises.every())
ORIGINS = ([] if SAN else ["exercises"]) + (["solutions"] if SOLVED else [])
PATIENCE = {"exercises": place.ALONE,  # it fails by waiting to the end for what does not come
            "solutions": 2 * place.ALONE}

HINT = r"<details><summary>Hint %d</summary>\n\n.+?\n\n</details>\n"
TASK = re.compile(exercises.HEADING.pattern
                  + r"\n\*It teaches .+?\. It needs .+?\.\*\n\n"
                  r"(?P<task>.+?)\n\n    make exercise EX=(?P<key>\S+)\n\n"
                  + "".join(HINT % number for number in (1, 2, 3))
                  + r"<details><summary>When it passes</summary>\n\n"
                  r".*\*\*What it teaches\.\*\* .+?\n\n</details>\n", re.DOTALL)
WORDS = range(40, 181)
SENTENCE = range(6, 36)  # words
MINUTES = range(5, 241)

pool = concurrent.futures.ThreadPoolExecutor(JOBS)
asked = []  # the Verdicts


def load_tests(loader, _tests, _pattern):
    """A few tests for each exercise there is; of them those that -k chooses."""
    known = exercises.every()
    tests = [ThereAre(known), Solved()]
    for exercise in known:
        tests += [Files(exercise), Task(exercise), *(Verdict(exercise, origin) for origin in ORIGINS)]
    chosen = loader.testNamePatterns or ["*"]
    tests = [test for test in tests if any(fnmatch.fnmatchcase(str(test), each) for each in chosen)]
    asked.extend(test for test in tests if isinstance(test, Verdict))
    return unittest.TestSuite(tests)


def setUpModule():
    """Builds all, and begins with the checks."""
    checks.make("exercise-programs", SAN)
    for name in ("all", "instruments"):  # what the checks may need beside
        checks.make(name)
    for exercise in exercises.every():  # once, and not by several checks at once
        san = not SAN and checks.sanitizers(exercise)
        for origin in ORIGINS if san else []:
            checks.make(exercise.program(origin, san), san)
    for test in asked:
        test.begin()


def tearDownModule():
    pool.shutdown()


class Sentence(unittest.TestCase):
    """A test that is called by what it says."""

    def __init__(self, sentence):
        super().__init__("run_it")
        self._sentence = sentence

    def __str__(self):
        return self._sentence


class ThereAre(Sentence):
    def __init__(self, known):
        super().__init__("there are exercises")
        self._known = known

    def run_it(self):
        self.assertTrue(self._known)


class Solved(Sentence):
    def __init__(self):
        super().__init__("there are solutions")

    def run_it(self):
        if not SOLVED:
            self.skipTest("a course's copy has no solutions")


class Files(Sentence):
    def __init__(self, exercise):
        super().__init__("%s: all of its files are there, and its chapter names it" % exercise.key)
        self._exercise = exercise

    def run_it(self):
        one = self._exercise
        for path in one.files() if SOLVED else one.files()[:-1]:
            self.assertTrue(os.path.exists(one.at(path)), "there is no " + path)
        self.assertRegex(read(checks.make(one.start)), r"\A/\* Exercise %s: " % one.key)
        self.assertRegex(read(one.at(one.check)), r'\A"""%s: ' % one.key)
        if SOLVED:
            self.assertRegex(read(one.at(one.solution)),
                             r"\A--- {0}\.c\n\+\+\+ {0}\.c\n@@".format(one.name))
        self.assertIn("(exercises/%s.md)" % one.name, read(one.at(one.chapter + "/README.md")))


class Task(Sentence):
    def __init__(self, exercise):
        super().__init__("%s: its task has the form: title, kind, minutes, stars, command, three hints" %
                         exercise.key)
        self._exercise = exercise

    def run_it(self):
        one = self._exercise
        text = read(one.at(one.task))
        found = TASK.fullmatch(text)
        self.assertTrue(found, "%s is not in the form of common/classroom/exercises/README.md" % one.task)
        self.assertEqual(found["key"], one.key)
        self.assertEqual(found["chapter"], one.chapter[1])
        self.assertIn(found["kind"], exercises.KINDS)
        self.assertIn(int(found["minutes"]), MINUTES)
        self.assertIn(len(found["task"].split()), WORDS)
        self.assertIn(len(one.lesson().split()), SENTENCE, one.lesson())
        self.assertNotRegex(one.lesson(), r"[*\[]", "it is shown as it is, without links")
        said = [line.count("★") for line in read(one.at(one.chapter + "/README.md")).splitlines()
                if "(exercises/%s.md)" % one.name in line and "★" in line]
        self.assertIn(said, ([], [found["stars"].count("★")]), "the difficulty, in the chapter")


class Verdict(Sentence):
    def __init__(self, exercise, origin):
        super().__init__("%s: %s" % (exercise.key, {
            "exercises": "the starting file fails where it should",
            "solutions": "the solution passes"}[origin]))
        self._exercise = exercise
        self._origin = origin
        self._verdict = None  # a Future of (status, what it printed)

    def begin(self):
        self._verdict = pool.submit(place.run, "run", self._exercise.key, "--of", self._origin,
                                    PATIENCE=str(PATIENCE[self._origin]))

    def run_it(self):
        status, printed = self._verdict.result()
        last = place.last_line(printed)
        if status == 77:
            self.skipTest(last)
        right = (0, "passed")
        if self._origin == "exercises":
            right = (1, "not yet: " + checks.load(self._exercise).REASON)
        self.assertEqual((status, last), right, "\n" + printed)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    unittest.main()
