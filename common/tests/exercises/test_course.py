"""`make course`: is the copy whole without the solutions, and does nothing in it give them away?"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

import place  # first: it says where the rest lies
import exercises
import project_copy
import terminals

COURSE = os.path.join(place.TOP, "common", "classroom", "course", "course")
LEAST_LINES = 3  # that follow each other: fewer may stand in any program


@place.with_git
class Course(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="zerohttpd.")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.copy = os.path.join(cls.folder, "new", "course")
        cls.status, cls.printed = run([COURSE, cls.copy], cls.folder)

    def setUp(self):
        self.assertEqual(self.status, 0, self.printed)

    def test_what_is_there_is_not_overwritten(self):
        there = os.path.join(self.folder, "there")
        os.mkdir(there)
        self.assertEqual(run([COURSE, there], self.folder)[0], 0, "an empty folder will do")
        before = os.listdir(there)
        status, printed = run([COURSE, there], self.folder)
        self.assertEqual(status, 2, printed)
        self.assertIn("not empty", printed)
        self.assertEqual(os.listdir(there), before)

    def test_a_folder_among_what_is_built_is_not_copied_for_collect(self):
        """As `make companions` leaves one."""
        folder = os.path.join(self.folder, "built", "build", "plain", "loadtest")
        os.makedirs(os.path.join(folder, "companions", "go"))
        shutil.copy(COURSE, os.path.join(folder, "floor"))
        with mock.patch.object(project_copy, "TOP", os.path.join(self.folder, "built")):
            self.assertEqual(project_copy.built(), ["build/plain/loadtest/floor"])

    def test_each_exercise_is_there_without_its_solution(self):
        known = exercises.every(self.copy)
        self.assertEqual([each.key for each in known], [each.key for each in exercises.every()])
        for each in known:
            self.assertEqual([path for path in each.files() if not os.path.exists(each.at(path))],
                             [each.solution])
        self.assertEqual([path for path in files_of(self.copy)
                          if "/solutions/" in path or "/mutants/" in path], [])

    def test_no_lines_of_a_solution_are_anywhere(self):
        """But those that the project's servers have, too."""
        solutions = [each for each in exercises.every() if os.path.exists(each.at(each.solution))]
        if not solutions:
            self.skipTest("a course's copy has no solutions")
        texts = {path: squeezed(os.path.join(self.copy, path)) for path in files_of(self.copy)}
        servers = "".join(text for path, text in texts.items()
                          if re.match(r"(0\d_\w+|common)/\w+\.c$", path))
        for each in solutions:
            for block in added(each.at(each.solution)):
                if block not in servers:
                    found = [path for path, text in texts.items() if block in text]
                    self.assertEqual(found, [], block)

    def test_the_teacher_s_answers_are_not_there(self):
        for name in ("ANSWERS.md", "QUIZ.md", "quiz.gift"):
            path = os.path.join("common", "classroom", name)
            self.assertNotIn(path, files_of(self.copy))
            named = [each for each in files_of(self.copy) if each.endswith(".md")
                     and name in squeezed(os.path.join(self.copy, each))]
            self.assertEqual(named, [], "%s is named" % name)

    def test_each_question_of_the_quiz_has_one_right_answer(self):
        path = os.path.join(place.TOP, "common", "classroom", "quiz.gift")
        if not os.path.exists(path):
            self.skipTest("a course's copy has no quiz")
        with open(path, encoding="utf-8") as file:
            questions = re.findall(r"^::(.+?):: ([^{}]+) \{(#\d+(?::\d+)?|[^{}]*)\}$", file.read(), re.M)
        self.assertEqual(40, len({title for title, _, _ in questions}))
        for title, _, answers in questions:
            if not answers.startswith("#"):
                self.assertRegex(answers, r"\A\n=[^=~#\n]+\n(~[^=~#\n]+\n){2,}\Z", title)

    def test_its_history_is_one_commit(self):
        if not shutil.which("git"):
            self.skipTest("git is not here")
        self.assertEqual(git(self.copy, "rev-list", "--count", "--all").strip(), "1")
        self.assertEqual(git(self.copy, "status", "--porcelain"), "")
        self.assertNotIn("/solutions/", git(self.copy, "ls-files"))

    def test_its_documents_name_nothing_that_was_left_out(self):
        status, printed = run(["python3", "-B", "-m", "unittest", "discover", "-s",
                               "common/tests/book", "-p", "test_documents.py"], self.copy,
                              SERVERS=place.TOP)
        faults = re.sub("(?m)^", "  ", printed)  # common/tests/run reads what begins a line
        self.assertEqual(status, 0, "\n" + faults)


def run(command, folder, **more):
    """Its status, and what it printed. Of the make that runs us it hears nothing."""
    done = subprocess.run(command, cwd=folder, env=terminals.environment(place.ENVIRONMENT, **more),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    return done.returncode, done.stdout


def git(folder, *words):
    return run(["git", *words], folder)[1]


def files_of(folder):
    found = (os.path.relpath(os.path.join(where, name), folder)
             for where, _, names in os.walk(folder) for name in names)
    return [path for path in found if not path.startswith(".git/")]


def squeezed(path):
    """A file's text, without the blanks at both ends of its lines, and without empty lines."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return "\n".join(filter(None, map(str.strip, file))) + "\n"


def added(patch):
    """What a patch brings: blocks of lines, squeezed too, that follow each other in it."""
    with open(patch, encoding="utf-8") as file:
        signs = "".join(line for line in file if line.strip("+ \n") and not line.startswith("+++"))
    for block in re.findall(r"(?:^\+.*\n)+", signs, re.MULTILINE):
        lines = [line[1:].strip() for line in block.splitlines()]
        if len(lines) >= LEAST_LINES:
            yield "\n".join(lines) + "\n"
