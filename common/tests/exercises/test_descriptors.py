"""Without descriptors an event loop must sleep, whatever else an exercise has planted in it: a
listener that is watched on would be reported at once, round after round, and take a whole core.
"""

import os
import unittest

import place  # first: it says where the rest lies
import checks
import exercises

SAN = os.environ.get("SAN", "")
LOOPS = ["06/deaf", "06/sleeper", "07/drain", "07/edge", "07/interest", "07/loops", "07/uring",
         "07/workers"]
NO_SERVER_YET = "07/uring"  # until it is solved
LIMITED = ["sh", "-c", 'ulimit -n 32 && exec "$0" "$@"']
OPTIONS = dict.fromkeys(["07/loops", "07/workers"], ["--workers", "2"])
CROWD = 128  # for each of two loops far more than its limit
LOOKS = 5


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
            ex.expect("sleeps", "that all processes sleep for some looks in a row",
                      Sleep(server), within=3, saw=lambda: "%.1f s of CPU time" %
                      server.cpu_seconds())


class Sleep:
    """A test for expect(): has no process of the server woken between some looks? They do wake at
    each tick, to see whether there is a descriptor again."""

    def __init__(self, server):
        self._server = server
        self._last = None
        self._looks = 0

    def __call__(self):
        pids = [self._server.pid, *self._server.children()]
        look = [(self._server.status("voluntary_ctxt_switches", pid),
                 self._server.status("nonvoluntary_ctxt_switches", pid)) for pid in pids]
        asleep = all(self._server.status("State", pid).startswith("S") for pid in pids)
        self._looks = self._looks + 1 if asleep and look == self._last else 0
        self._last = look
        return self._looks >= LOOKS


if __name__ == "__main__":
    unittest.main()
