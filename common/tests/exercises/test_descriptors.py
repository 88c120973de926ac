"""Without descriptors an event loop must sleep, whatever else an exercise has planted in it: a
listener that is watched on would be reported at once, round after round, and take a whole core.
"""

import os
import unittest

import place  # first: it says where the rest lies
import checks
import exercises
from idle import Ticks

SAN = os.environ.get("SAN", "")
LOOPS = ["06/deaf", "06/sleeper", "07/drain", "07/edge", "07/interest", "07/loops", "07/uring",
         "07/workers"]
NO_SERVER_YET = "07/uring"  # until it is solved
LIMITED = ["sh", "-c", 'ulimit -n 32 && exec "$0" "$@"']
OPTIONS = dict.fromkeys(["07/loops", "07/workers"], ["--workers", "2"])
CROWD = 128  # for each of two loops far more than its limit


def origins_of(exercise):
    if not SAN and exercise.key != NO_SERVER_YET:
        yield "exercises"
    if os.path.exists(exercise.at(exercise.solution)):
        yield "solutions"


class Descriptors(unittest.TestCase):
    def test_a_loop_without_descriptors_sleeps(self):
        for exercise in exercises.every():
            if exercise.key in LOOPS:
                for origin in origins_of(exercise):
                    with self.subTest(exercise=exercise.key, origin=origin):
                        self.check(exercise, origin)

    def check(self, exercise, origin):
        try:
            program = checks.make(exercise.program(origin, SAN), SAN)
        except checks.Skipped as skipped:
            self.skipTest(str(skipped))
        with checks.Exercise(program, lambda _: None) as ex:
            server = ex.serve(*OPTIONS.get(exercise.key, []), under=LIMITED)
            ex.hold(server, CROWD, b"")
            ex.expect("full", "clients who cannot be accepted", lambda: server.waiting() > 0,
                      within=5)
            ticks = Ticks(server)
            ex.expect("sleeps", "processes that sleep from tick to tick, and look up a moment",
                      ticks, within=3, saw=ticks.saw)
