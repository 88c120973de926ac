#!/usr/bin/env -S python3 -B
"""Every exercise of the project: are its files there and in the right form, does the starting file
fail its check for the reason it is about, and does the solution pass?

The checks mostly wait, so several are made at once. With TIMES=50 in the environment each is made so
often. Under sanitizers (SAN) only solutions are checked: a planted bug may end a program there in
another way.
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
TIMES = int(os.environ.get("TIMES", "1"))
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
    known = exercises.every()
    tests = [Sentence("there are exercises", lambda test: test.assertTrue(known)),
             Sentence("there are solutions", lambda test: SOLVED or test.skipTest("a course's copy has none"))]
    for one in known:
        tests += [Sentence("%s: all of its files are there, and its chapter names it" % one.key, look_at_files, one),
                  Sentence("%s: its task has the form: title, kind, minutes, stars, command, three hints" % one.key,
                           look_at_task, one),
                  *(Verdict(one, origin) for origin in ORIGINS * TIMES)]
    chosen = loader.testNamePatterns or ["*"]
    tests = [test for test in tests if any(fnmatch.fnmatchcase(str(test), each) for each in chosen)]
    asked.extend(test for test in tests if isinstance(test, Verdict))
    return unittest.TestSuite(tests)


def setUpModule():
    place.build_all(SAN, ORIGINS)
    for test in asked:
        test.begin()


def tearDownModule():
    pool.shutdown()


class Sentence(unittest.TestCase):
    """A test that is called by what it says."""

    def __init__(self, sentence, check=None, *arguments):
        super().__init__("run_it")
        self._sentence, self._check, self._arguments = sentence, check, arguments

    def __str__(self):
        return self._sentence

    def run_it(self):
        self._check(self, *self._arguments)


def look_at_files(test, one):
    for path in one.files() if SOLVED else one.files()[:-1]:
        test.assertTrue(os.path.exists(one.at(path)), "there is no " + path)
    test.assertRegex(read(checks.make(one.start)), r"\A/\* Exercise %s: " % one.key)
    test.assertRegex(read(one.at(one.check)), r'\A"""%s: ' % one.key)
    if SOLVED:
        test.assertRegex(read(one.at(one.solution)), r"\A--- {0}\.c\n\+\+\+ {0}\.c\n@@".format(one.name))
    test.assertIn("(exercises/%s.md)" % one.name, read(one.at(one.chapter + "/README.md")))


def look_at_task(test, one):
    found = TASK.fullmatch(read(one.at(one.task)))
    test.assertTrue(found, "%s is not in the form of common/classroom/exercises/README.md" % one.task)
    test.assertEqual(found["key"], one.key)
    test.assertEqual(found["chapter"], one.chapter[1])
    test.assertIn(found["kind"], exercises.KINDS)
    test.assertIn(int(found["minutes"]), MINUTES)
    test.assertIn(len(found["task"].split()), WORDS)
    test.assertIn(len(one.lesson().split()), SENTENCE, one.lesson())
    test.assertNotRegex(one.lesson(), r"[*\[]", "it is shown as it is, without links")
    said = [line.count("★") for line in read(one.at(one.chapter + "/README.md")).splitlines()
            if "(exercises/%s.md)" % one.name in line and "★" in line]
    test.assertIn(said, ([], [found["stars"].count("★")]), "the difficulty, in the chapter")


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
