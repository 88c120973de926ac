"""idle: does a process, or a thread, sleep until there is work for it? And are threads apart?

A thread (chapters 4 and 5) that checks now and then whether there is work needs no signal, and hides that none comes.
So it is watched for longer than WOKEN_SECONDS, the longest that a signal may take: either it is
seen to wake up, or it sleeps for so long that its work is late.
"""

import time

import served
from outcome import patient
from words import how_many

WOKEN_SECONDS = 1  # for `within`
WATCHED_SECONDS = 0.5  # two ticks, or three
MOST_RUN = 0.005  # seconds of CPU time before it sleeps again: a tick needs a hundredth of that
RACE = "ThreadSanitizer: data race"
MOST_SLEEPS = 30  # a second; a tick is a sleep or two, five times a second


def expect_sleep(ex, server, expected, hint):
    """Expects that no thread wakes up for a while. The main one ticks, and does no more."""
    seconds = patient(WOKEN_SECONDS) + 0.5
    seen = []

    def sleeps():
        before = server.status("voluntary_ctxt_switches")
        woken = server.wakeups(seconds)
        seen[:] = woken, server.status("voluntary_ctxt_switches") - before
        return woken == 0 and seen[1] <= MOST_SLEEPS * seconds

    ex.expect("sleeps", "%s, for %.1f s" % (expected, seconds), sleeps,
              saw=lambda: "%s, and %d of the main thread" % (how_many(seen[0], "wake-up"), seen[1]),
              within=WOKEN_SECONDS, hint=hint, read="pthread_cond_wait(3)")


def expect_no_race(ex, server, hint):
    """Ends a server that is built with the thread sanitizer (SAN), and expects no report of it."""
    status = server.end()
    ex.expect("race", "no report of the thread sanitizer",
              lambda: RACE not in server.errors() and status != served.RACES,
              saw=lambda: report(server.errors()), hint=hint, read="pthread_mutex_lock(3)")


def report(errors):
    """Of what the sanitizer says, the functions in which it happened."""
    lines = [line.strip() for line in errors.splitlines()]
    places = [line.split(" ")[1] for line in lines if line.startswith("#0 ")]
    return "a data race in %s" % " and ".join(places[:2])


class Ticks:
    """A test for ex.expect(): do all processes of the server but look up at each tick? No busy machine
    makes one that sleeps look as if it did not: it may sleep less often then, but a loop that does
    not sleep has not slept once in the end."""

    def __init__(self, server):
        self._server = server
        self._before = self._since = self._seen = None

    def __call__(self):
        now = {pid: (self._server.status("voluntary_ctxt_switches", pid), self._server.ran(pid))
               for pid in [self._server.pid, *self._server.children()]}
        if not self._before or set(now) != set(self._before):
            self._before, self._since = now, time.monotonic()
        seconds = time.monotonic() - self._since
        if seconds < WATCHED_SECONDS:
            return False
        self._seen = [(pid, *(late - early for late, early in zip(now[pid], self._before[pid])), seconds)
                      for pid in now]
        self._before = None
        return all(self._rests(*each) for each in self._seen)

    def _rests(self, pid, sleeps, ran, seconds):
        if sleeps == 0:
            return ran == 0 and self._server.status("State", pid).startswith("S")
        return sleeps <= MOST_SLEEPS * seconds and ran <= MOST_RUN * sleeps

    def saw(self):
        pid, sleeps, ran, seconds = max(self._seen or [(self._server.pid, 0, 0, 0)],
                                        key=lambda each: not self._rests(*each))
        return "that process %d ran for %.0f ms within %.1f s, and went to sleep %s" % (
            pid, 1000 * ran, seconds, how_many(sleeps, "time"))
