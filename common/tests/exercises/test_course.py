"""`make course`: is the copy whole without the solutions, and does nothing in it give them away?"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import place  # first: it says where the rest lies
import exercises
import terminals

CLASSROOM = os.path.join(place.TOP, "common", "classroom")
ANSWERS = ("ANSWERS.md", "quiz.gift")
LEAST_LINES = 3  # that follow each other: fewer may stand in any program


@unittest.skipUnless(os.path.exists(os.path.join(place.TOP, ".git")), "an unpacked release has no .git")
class Course(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="zerohttpd.")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.copy = os.path.join(cls.folder, "new", "course")
        cls.made = run([os.path.join(CLASSROOM, "course"), cls.copy], cls.folder)
        cls.texts = {path: squeezed(os.path.join(cls.copy, path)) for path in files_of(cls.copy)}

    def setUp(self):
        self.assertEqual(0, self.made[0], self.made[1])

    def test_all_is_there_but_the_answers_and_the_history(self):
        known = exercises.every(self.copy)
        self.assertEqual([each.key for each in known], [each.key for each in exercises.every()])
        for each in known:
            self.assertEqual([path for path in each.files() if not os.path.exists(each.at(path))], [each.solution])
        self.assertEqual([], [path for path in self.texts if "/solutions/" in path or "/mutants/" in path
                              or path.startswith(".github/") or os.path.basename(path) in ANSWERS])
        self.assertEqual([], [path for path, text in self.texts.items() if path.endswith(".md")
                              and any(name in text for name in (*ANSWERS, "<summary>Answer</summary>"))])
        self.assertEqual("1\n", run(["git", "rev-list", "--count", "--all"], self.copy)[1])
        self.assertEqual("", run(["git", "status", "--porcelain"], self.copy)[1])
        self.assertEqual(2, run([os.path.join(CLASSROOM, "course"), self.copy], self.folder)[0], "it is overwritten")

    def test_no_lines_of_a_solution_are_anywhere(self):
        """But those that the project's servers have, too."""
        servers = "".join(text for path, text in self.texts.items()
                          if re.match(r"(0\d_\w+|common)/\w+\.c$", path))
        for each in exercises.every():
            for block in added(each.at(each.solution)):
                if block not in servers:
                    self.assertEqual([], [path for path, text in self.texts.items() if block in text], block)

    def test_its_documents_name_nothing_that_was_left_out(self):
        status, printed = run(["python3", "-B", "-m", "unittest", "discover", "-s",
                               "common/tests/documents", "-p", "test_documents.py"], self.copy,
                              SERVERS=place.TOP)
        faults = re.sub("(?m)^", "  ", printed)  # common/tests/run reads what begins a line
        self.assertEqual(status, 0, "\n" + faults)


class Plans(unittest.TestCase):
    def test_the_minutes_of_each_row_add_up_and_are_those_of_the_lessons_and_of_the_exercises(self):
        with open(os.path.join(CLASSROOM, "TEACHING.md"), encoding="utf-8") as file:
            page = file.read()
        lengths = dict(re.findall(r"^### (\d+)\. .*\n\n\*(\d+) minutes", page, re.MULTILINE))
        self.assertEqual(int(re.search(r"(\d+)\sminutes\sfor\sall", page)[1]), sum(map(int, lengths.values())))
        lengths.update((each.key, str(each.heading().minutes)) for each in exercises.every())
        sums = 0
        for row in re.findall(r"^\| \d+ \|.*", page, re.MULTILINE):
            for text, total in re.findall(r"\| ([^|]*\(\d+\)[^|]*) \| (\d+) (?=\|)", row):
                sums += 1
                self.assertEqual(int(total), sum(map(int, re.findall(r"\((\d+)\)", text))), text)
                for name, minutes in re.findall(r"(?:^|, )(\d\d/\w+|\d+) \((\d+)\)", text):
                    self.assertEqual(lengths[name], minutes, text)
        self.assertEqual(2 + 2 * 6 + 2 * 14, sums)

    def test_each_question_of_the_quiz_has_one_right_answer(self):
        path = os.path.join(CLASSROOM, "quiz.gift")
        if not os.path.exists(path):
            self.skipTest("a course's copy has no quiz")
        with open(path, encoding="utf-8") as file:
            questions = re.findall(r"^::(.+?):: ([^{}]+) \{(#\d+(?::\d+)?|[^{}]*)\}$", file.read(), re.M)
        self.assertEqual(33, len({title for title, _, _ in questions}))
        for title, _, answers in questions:
            if not answers.startswith("#"):
                self.assertRegex(answers, r"\A\n=[^=~#\n]+\n(~[^=~#\n]+\n){2,}\Z", title)


def run(command, folder, **more):
    """Its status, and what it printed. Of the make that runs us it hears nothing."""
    done = subprocess.run(command, cwd=folder, env=terminals.environment(place.ENVIRONMENT, **more),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    return done.returncode, done.stdout


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
    if not os.path.exists(patch):
        return  # in a course's copy
    with open(patch, encoding="utf-8") as file:
        signs = "".join(line for line in file if line.strip("+ \n") and not line.startswith("+++"))
    for block in re.findall(r"(?:^\+.*\n)+", signs, re.MULTILINE):
        lines = [line[1:].strip() for line in block.splitlines()]
        if len(lines) >= LEAST_LINES:
            yield "\n".join(lines) + "\n"
