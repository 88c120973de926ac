"""outcome: how a check may end but by passing, and how long it waits for anything.

Every wait has a limit, which is there to end the check and not to measure: it is far more than what
a right program needs. On a slow machine, or under sanitizers, PATIENCE in the environment makes all
limits so many times longer. On a busy machine they get longer by themselves: the time in which this
process was ready to run, and had no core, does not count.
"""

import os
import time

POLL_SECONDS, LONGEST_POLL_SECONDS = 0.005, 0.05
PATIENCE = float(os.environ.get("PATIENCE", "2"))


class Missed(Exception):
    """The program under test did something else than was expected."""

    def __init__(self, key, expected, saw, hint=None, read=None):
        super().__init__("%s: expected %s; saw %s" % (key, expected, saw))
        self.key = key  # the expectation's name
        self.expected = expected
        self.saw = saw
        self.hint = hint  # the number of the hint to open
        self.read = read  # a man page: "waitpid(2)"


class Skipped(Exception):
    """The check cannot be made here, and why."""


def patient(seconds):
    """A limit of time, as long as it is here."""
    return seconds * PATIENCE


def schedule(pid="self"):
    """How many seconds a process's main thread has run so far, and how many it was ready to run and
    had no core. A kernel that does not count that says 0."""
    try:
        with open("/proc/%s/schedstat" % pid, encoding="ascii") as file:
            return [int(word) / 1e9 for word in file.read().split()[:2]]
    except OSError:
        return [0, 0]


def clock():
    """The seconds of the monotonic clock in which this process was not kept from running."""
    return time.monotonic() - schedule()[1]


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
