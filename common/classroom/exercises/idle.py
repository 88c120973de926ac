"""idle: for checks of threads (chapters 4 and 5). Does one sleep until there is work for it?

A thread that checks now and then whether there is work needs no signal, and hides that none comes.
So it is watched for longer than WOKEN_SECONDS, the longest that a signal may take: either it is
seen to wake up, or it sleeps for so long that its work is late.
"""

from outcome import patient
from words import how_many

WOKEN_SECONDS = 1  # for `within`


def expect_sleep(ex, server, expected, hint):
    """Expects that no thread but the main one, which ticks, wakes up for a while."""
    seconds = patient(WOKEN_SECONDS) + 0.5
    seen = []

    def sleeps():
        seen.append(server.wakeups(seconds))
        return seen[-1] == 0

    ex.expect("sleeps", "%s, for %.1f s" % (expected, seconds), sleeps,
              saw=lambda: how_many(seen[-1], "wake-up"), within=WOKEN_SECONDS, hint=hint,
              read="pthread_cond_wait(3)")
