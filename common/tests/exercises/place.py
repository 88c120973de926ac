"""place: where the programs under test lie, and how to run them."""

import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
EXERCISES = os.path.join(TOP, "common", "classroom", "exercises")
sys.dont_write_bytecode = True
sys.path[:0] = [EXERCISES, os.path.join(TOP, "common", "tests", "documents")]
import checks
import exercises

# The checks share the machine with each other here: what should come gets twice the time that a
# learner's program has alone.
ALONE = 2 * float(os.environ.get("PATIENCE", "1"))
ENVIRONMENT = {**os.environ, "DEPS": "no", "PATIENCE": str(2 * ALONE)}


def build_all(san, origins):
    """What the checks need: once, and not by several of them at once."""
    for target, how in (("exercise-programs", san), ("all", ""), ("instruments", "")):
        checks.make(target, how)
    for exercise in exercises.every():
        own = not san and checks.sanitizers(exercise)
        for origin in origins if own else []:
            checks.make(exercise.program(origin, own), own)


def run(program, *arguments, top=TOP, **environment):
    """Its status, and what it printed."""
    done = subprocess.run([os.path.join(top, "common", "classroom", "exercises", program), *arguments],
                          env={**ENVIRONMENT, **environment}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                          check=False)
    return done.returncode, done.stdout


def last_line(printed):
    return (printed.strip().splitlines() or [""])[-1]
