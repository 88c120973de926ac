"""05/bounded: may ten clients wait, and does the next one get a 503 at once?

At last thousands are refused, one after the other, and the server's memory is measured. The program
is built with the thread sanitizer, whose own memory grows while the first of them come.
"""

import os

from client import HALF, REST, WHOLE, count
from idle import expect_no_race
from words import how_many

REASON = "refused"
SAN = "thread"

WORKERS, WAITING, TOO_MANY = 4, 10, 5
FIRST, REFUSED = 500, 4000
MOST_MEMORY = 320 << 10  # bytes; less than what is left behind for all of them, and the sanitizer adds some with time


def check(ex):
    server = ex.serve("--timeout", "500")
    before = server.descriptors()
    for again in ["", ", and again"]:  # a count that never goes down fails the second time
        holding = ex.hold(server, WORKERS, HALF)
        ex.expect("taken", "a worker for each of them", lambda: server.unread() == 0, within=3)
        waiting = ex.hold(server, WAITING, WHOLE)
        ex.expect("accepted", "room in the queue for these %d%s" % (WAITING, again),
                  lambda: server.descriptors() == before + WORKERS + WAITING,
                  saw=lambda: "%d accepted and open" % (server.descriptors() - before - WORKERS),
                  within=3, hint=2)
        refused = ex.hold(server, TOO_MANY, WHOLE)
        ex.expect("refused", "503 for each of these %d, while the others wait" % TOO_MANY,
                  lambda: count(refused, 503) == TOO_MANY,
                  saw=lambda: "%d of %d" % (count(refused, 503), TOO_MANY), within=2, hint=1)
        ex.expect("wait", "%d clients that still wait, neither served nor refused" % WAITING,
                  lambda: not any(client.is_answered() for client in waiting),
                  saw=lambda: how_many(sum(client.is_answered() for client in waiting), "answer"),
                  hint=2, read="pthread_mutex_lock(3)")
        if again and not os.environ.get("SAN"):  # the address sanitizer keeps what is freed
            expect_freed(ex, server)
        for client in holding:
            client.say(REST)
        ex.did("finished the requests of the four with a worker")
        ex.expect("served", "a page for each of the four, and then for each of the %d" % WAITING,
                  lambda: count(holding + waiting) == WORKERS + WAITING, within=3, hint=3,
                  saw=lambda: "%d of %d" % (count(holding + waiting), WORKERS + WAITING),
                  read="pthread_cond_wait(3)")
        ex.expect_descriptors("closed", "no descriptor left open", server, before, within=3, hint=3)
    expect_no_race(ex, server, 2)


def expect_freed(ex, server):
    refused = come(ex, server, FIRST)
    before = server.own_memory()
    refused += come(ex, server, REFUSED)
    left = server.own_memory() - before
    ex.did("let %d more come, one after the other: %d refused, %d kB more since the first %d" % (
        FIRST + REFUSED, refused, left >> 10, FIRST))
    ex.expect("freed", "no page for any of them, and no memory left behind",
              lambda: refused == FIRST + REFUSED and left < MOST_MEMORY,
              saw=lambda: "%d of them, and %d kB" % (refused, left >> 10), hint=3, read="free(3)")


def come(ex, server, number):
    """How many are refused, of so many that come one after the other. On a busy machine one may be told
    nothing, because it speaks too late."""
    return sum(ex.client(server).visit() in (None, 503) for _ in range(number))
