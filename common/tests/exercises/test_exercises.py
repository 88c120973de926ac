#!/usr/bin/env -S python3 -B
"""Every exercise of the project: are its files there and in the right form, does the starting file
fail its check for the reason it is about, does the solution pass, and does no wrong answer?

wrong/0N.py has ANSWERS: {exercise: {what is wrong: [(text, what replaces it), ...]}}. The texts are of
the solution, each is in it once; None stands for all of it. Each exercise gets one more. One of each
exercise is tried, drawn by WRONG_SEED; with WRONG=3 in the environment three of them, and with
WRONG=all all of them.

The checks mostly wait, so several are made at once. EX='01/reader 02/cap' takes only these, and with
TIMES=50 each is made so often. Under sanitizers (SAN) only solutions are checked: a planted bug may
end a program there in another way.
"""

import concurrent.futures
import os
import random
import re
import runpy
import tempfile
import unittest
from pathlib import Path

import place  # first: it says where the rest lies
import checks
import exercises

SAN = os.environ.get("SAN", "")
JOBS = int(os.environ.get("JOBS", 0)) or 4 * (os.cpu_count() or 1)
TIMES = int(os.environ.get("TIMES", "1"))
TRIED = os.environ.get("WRONG") or "1"
SEED = os.environ.get("WRONG_SEED") or str(random.randrange(10000))
CHOSEN = [each for each in exercises.every() if each.key in os.environ.get("EX", each.key).split()]
SOLVED = any(os.path.exists(each.at(each.solution)) for each in exercises.every())
A_COURSE = "a course's copy has no answers, not even wrong ones"

HINT = r"<details><summary>Hint %d</summary>\n\n.+?\n\n</details>\n"
TASK = re.compile(exercises.HEADING.pattern
                  + r"\n\*It teaches .+?\. It needs .+?\.\*\n\n"
                  r"(?P<task>.+?)\n\n    make exercise EX=(?P<key>\S+)\n\n"
                  + "".join(HINT % number for number in (1, 2, 3))
                  + r"<details><summary>When it passes</summary>\n\n"
                  r".*\*\*What it teaches\.\*\* .+?\n\n</details>\n", re.DOTALL)
WORDS = range(40, 201)

EXECUTES = """\
#include <unistd.h>

int main(int argc, char **argv)
{
    return argc ? execv("./%s", argv) : 1;
}
"""


class Exercises(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place.build_all(SAN, ([] if SAN else ["exercises"]) + (["solutions"] if SOLVED else []))

    def expect(self, asked, verdict):
        """Makes so many checks at once. asked: (what is checked, the status, the last line) of each."""
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            verdicts = pool.map(lambda one: verdict(one[0]), asked)
            for (what, *right), (status, printed) in zip(asked, verdicts):
                with self.subTest(what, seed=SEED):
                    last = place.last_line(printed)
                    if status == 77:
                        print("%s: %s" % (what, last))
                    else:
                        self.assertEqual(status, right[0], "\n" + printed)
                        self.assertRegex(last, right[1], "\n" + printed)

    def test_the_files_are_there_in_their_form_and_the_chapter_names_them(self):
        for one in CHOSEN:
            with self.subTest(one.key):
                self.assertEqual([], [path for path in one.files()[:4 if SOLVED else 3] if not os.path.exists(one.at(path))])
                self.assertRegex(read(checks.make(one.start)), r"\A/\* Exercise %s: " % one.key)
                self.assertRegex(read(one.at(one.check)), r'\A"""%s: ' % one.key)
                found = TASK.fullmatch(read(one.at(one.task)))
                self.assertTrue(found, "%s is not in the form of common/classroom/exercises/README.md" % one.task)
                self.assertEqual((one.key, one.chapter[1]), (found["key"], found["chapter"]))
                self.assertIn(found["kind"], exercises.KINDS)
                self.assertIn(len(found["task"].split()), WORDS, "words of the task")
                self.assertIn("\n- %s [%s](exercises/%s.md): %s, %s minutes.\n" % (
                    found["stars"].replace("☆", ""), found["title"], one.name, found["kind"], found["minutes"]),
                              read(one.at(one.chapter + "/README.md")))

    @unittest.skipIf(SAN, "see above")
    def test_each_starting_file_fails_where_it_should(self):
        self.expect([(one.key, 1, r"\Anot yet: %s\Z" % checks.load(one).REASON) for one in CHOSEN * TIMES],
                    lambda key: place.run("run", key, "--of", "exercises", PATIENCE=str(place.ALONE)))  # it waits to the end

    @unittest.skipUnless(SOLVED, A_COURSE)
    def test_each_solution_passes(self):
        self.expect([(one.key, 0, r"\Apassed\Z") for one in CHOSEN * TIMES],
                    lambda key: place.run("run", key, "--of", "solutions"))

    @unittest.skipIf(SAN, "built with what each check asks for")
    @unittest.skipUnless(SOLVED, A_COURSE)
    def test_no_wrong_answer_passes(self):
        self.expect([((one, what), 1, "^not yet: ") for one in CHOSEN for what in drawn(sorted(answers(one)))],
                    lambda case: wrong(*case))


def answers(one):
    wrong = runpy.run_path(os.path.join(os.path.dirname(__file__), "wrong", one.chapter[:2] + ".py"))["ANSWERS"].get(one.name, {})
    return {**wrong, "it executes the chapter's server": [(None, EXECUTES % one.chapter[3:])]}


def drawn(wrong):
    """Those that are tried this time."""
    return wrong if TRIED == "all" else random.Random(SEED).sample(wrong, min(int(TRIED), len(wrong)))


def wrong(one, what):
    text = read(checks.make(one.source_of("solutions")))
    for before, after in answers(one)[what]:
        if before is None:
            text = after
        elif text.count(before) != 1:
            raise AssertionError("%s: %d times in the solution: %s" % (one.key, text.count(before), before))
        else:
            text = text.replace(before, after)
    with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
        path = os.path.join(folder, one.name + ".c")
        Path(path).write_text(text, "utf-8")
        return place.run("run", one.key, "--source", path, PATIENCE=str(place.ALONE))


def read(path):
    return Path(path).read_text("utf-8")


if __name__ == "__main__":
    unittest.main()
