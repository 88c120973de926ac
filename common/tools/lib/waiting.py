"""waiting: for an event, with a limit that ends the wait and measures nothing.

A limit is far more than what a right program needs. On a slow machine, or under sanitizers, PATIENCE in
the environment makes all limits so many times longer. On a busy machine they get longer by themselves:
the time in which this process was ready to run, and had no core, does not count.
"""

import os
import time

import proc

POLL_SECONDS, LONGEST_POLL_SECONDS = 0.005, 0.05
PATIENCE = float(os.environ.get("PATIENCE", "2"))


class Missed(Exception):
    """The program under test did something else than was expected."""

    def __init__(self, key, expected, saw, hint=None, read=None):
        super().__init__("%s: expected %s; saw %s" % (key, expected, saw))
        self.key = key  # the expectation's name
        self.expected = expected
        self.saw = saw
        self.hint = hint  # of an exercise: the number of the hint to open
        self.read = read  # a man page: "waitpid(2)"


class Skipped(Exception):
    """It cannot be tried here, and why."""


def patient(seconds):
    """A limit of time, as long as it is here."""
    return seconds * PATIENCE


def clock():
    """The seconds of the monotonic clock in which this process was not kept from running."""
    return time.monotonic() - proc.schedule()[1]


def until(test, seconds):
    """Tests again and again until it is true, for so long at most; at least once. Returns the last
    answer. It tests less often with time: on a busy machine each test begins with a wait for a core."""
    deadline, pause = clock() + patient(seconds), POLL_SECONDS
    while True:
        late = clock() >= deadline  # asked before the test: it gets a last chance
        answer = test()
        if answer or late:
            return answer
        time.sleep(pause)
        pause = min(1.1 * pause, LONGEST_POLL_SECONDS)
