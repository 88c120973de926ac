"""No wrong answer passes: each exercise has some, among them the hard-coded and the lazy one.

wrong/0N.py has ANSWERS: {exercise: {what is wrong: [(text, what replaces it), ...]}}. The texts are of
the solution, each is in it once; None stands for all of it. Each exercise gets one more. One of each
exercise is tried, drawn by WRONG_SEED; with WRONG=3 in the environment three of them, and with
WRONG=all all of them.
"""

import concurrent.futures
import os
import random
import runpy
import subprocess
import tempfile
import unittest

import place  # first: it says where the rest lies
import cell
import checks
import exercises

EXECUTES = """\
#include <unistd.h>

int main(int argc, char **argv)
{
    return argc ? execv("./%s", argv) : 1;
}
"""
IS_WATCHED = """\
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline bool is_traced(void)
{
    char line[256];
    int tracer = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (fgets(line, sizeof(line), status))
        sscanf(line, "TracerPid: %d", &tracer);
    fclose(status);
    return tracer != 0;
}
"""
HERE = os.path.dirname(os.path.abspath(__file__))
LEAST = 3
TRIED = os.environ.get("WRONG") or "1"
SEED = os.environ.get("WRONG_SEED") or str(random.randrange(10000))
JOBS = int(os.environ.get("JOBS", 0)) or 2 * (os.cpu_count() or 1)


def answers(chapter):
    """Those of a chapter; none in a course's copy."""
    path = os.path.join(HERE, "wrong", chapter[:2] + ".py")
    found = runpy.run_path(path)["ANSWERS"] if os.path.exists(path) else {}
    for wrong in found.values():
        wrong["it executes the chapter's server"] = [(None, EXECUTES % chapter[3:])]
    return found


def drawn(wrong):
    """Those that are tried this time."""
    if TRIED == "all":
        return wrong
    return random.Random(SEED).sample(wrong, min(int(TRIED), len(wrong)))


def changed(text, replaced):
    for before, after in replaced:
        if before is None:
            text = after
        elif text.count(before) != 1:
            raise AssertionError("%d times in the solution: %s" % (text.count(before), before))
        else:
            text = text.replace(before, after)
    return text


def build(exercise, source, folder):
    """Compiles it as `make collect` does. Returns the program; None if that refuses it."""
    path = os.path.join(folder, exercise.name)
    with open(path + ".c", "w", encoding="utf-8") as file:
        file.write((IS_WATCHED if "is_traced()" in source else "") + source)
    san = checks.sanitizers(exercise)
    command = cell.compiler(exercise, san, path + ".c", path)
    subprocess.run([*command, *cell.KEEP, "-w"], cwd=place.TOP, check=True)
    off = san and cell.switched_off(folder, subprocess.check_output(cell.nm(folder)))
    return None if off else path


def solution(exercise):
    with open(checks.make("build/solutions/%s/%s.c" % (exercise.chapter, exercise.name)), encoding="utf-8") as file:
        return file.read()


def verdict(exercise, replaced):
    source = changed(solution(exercise), replaced)
    with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
        program = build(exercise, source, folder)
        return place.run("run", exercise.key, "--program", program) if program else (1, "not yet: refused")


@unittest.skipIf(os.environ.get("SAN"), "built with what each check asks for")
class Wrong(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = {each.key: answers(each.chapter).get(each.name, {}) for each in exercises.every()}
        if not any(cls.all.values()):
            raise unittest.SkipTest("a course's copy has no answers, not even wrong ones")
        place.build_all("", ["solutions"])  # compile-command names objects, and makes none

    def test_each_exercise_has_some(self):
        for key, wrong in self.all.items():
            with self.subTest(exercise=key):
                self.assertGreaterEqual(len(wrong), LEAST)

    def test_the_solutions_are_not_refused(self):
        for exercise in filter(checks.sanitizers, exercises.every()):
            with self.subTest(exercise=exercise.key), tempfile.TemporaryDirectory() as folder:
                self.assertTrue(build(exercise, solution(exercise), folder))

    def test_none_passes(self):
        asked = [(each, what, self.all[each.key][what]) for each in exercises.every()
                 for what in drawn(sorted(self.all[each.key]))]
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            verdicts = pool.map(lambda one: verdict(one[0], one[2]), asked)
            for (exercise, what, _), (status, printed) in zip(asked, verdicts):
                with self.subTest(exercise=exercise.key, wrong=what, seed=SEED):
                    last = place.last_line(printed)
                    if status != 77:
                        self.assertEqual((1, "not yet: "), (status, last[:9]), "\n" + printed)
