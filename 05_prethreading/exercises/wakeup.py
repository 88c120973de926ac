"""05/wakeup: does the server wake as many workers as there are clients to serve?

The clients come while the server is stopped. When it goes on, its main thread finds all of them in
the kernel's queue, and puts all of them into its own before the first worker can wake up. Workers
begin late, and wake up for nothing once before they sleep (unlucky.c).
"""

from client import HALF, REST, WHOLE, count
from sleeps import WOKEN_SECONDS, expect_no_race, expect_sleep
from words import how_many

REASON = "woken"
SAN = "thread"

WORKERS = 4
CROWD = 40
TRIES = 5  # on a busy machine the main thread's tick may come too soon
QUIET_SECONDS = 0.3  # longer than unlucky.c lets anybody sleep for nothing


def check(ex):
    server = ex.serve("--timeout", "60", env=ex.unlucky())
    ex.expect_pages("late", "a page for each of %d clients of workers that begin late" % CROWD,
                    ex.hold(server, CROWD, WHOLE), hint=2)
    for _ in range(TRIES):
        expect_rest(ex, "asleep", server)
        looks = together(ex, server)
        if looks <= 1:
            break
    ex.expect("without a tick", "that page while the main thread slept in accept4(2)", lambda: looks <= 1,
              saw=lambda: "that the main thread has woken up first, %s, as at a tick" % how_many(looks - 1, "time"),
              hint=2)

    with server.frozen():
        crowd = ex.hold(server, CROWD, WHOLE)
    ex.expect_pages("crowd", "a page for each of %d clients" % CROWD, crowd, hint=2)
    ex.expect_pages("alone", "a page for a client that comes alone", ex.hold(server, 1, WHOLE), hint=2)
    expect_rest(ex, "rest", server)
    expect_sleep(ex, server, "workers that sleep until there is work", 3)
    ex.expect_pages("next", "a page for the next client", ex.hold(server, 1, WHOLE), hint=2)
    expect_no_race(ex, server, 3)


def together(ex, server):
    """Three slow clients and a quick one. Returns how often the main thread has gone to sleep until
    that one had its page: once, if it has not woken meanwhile."""
    with server.frozen():
        before = server.status("voluntary_ctxt_switches")
        slow = ex.hold(server, WORKERS - 1, HALF)
        quick = ex.hold(server, 1, WHOLE)
        ex.did("let all of them come at once: %d in the kernel's queue" % server.waiting())
    ex.expect("woken", "a page for the quick client: the slow ones hold only %d of %d workers" % (
        len(slow), WORKERS), lambda: count(quick) == 1,
              saw=lambda: "no page for it, and %s with a worker" % how_many(
                  with_a_worker(server, slow), "slow client"), within=WOKEN_SECONDS, hint=1,
              read="pthread_cond_signal(3)")
    looks = server.status("voluntary_ctxt_switches") - before
    for client in slow:
        client.say(REST)
    ex.expect_pages("slow", "a page for each of the slow clients, too", slow, hint=1)
    return looks


def expect_rest(ex, key, server):
    ex.expect(key, "%d workers and the main thread, all asleep" % WORKERS,
              lambda: server.threads() == WORKERS + 1 and server.wakeups(QUIET_SECONDS) == 0,
              saw=lambda: how_many(server.threads() - 1, "worker"), within=3, hint=3,
              read="pthread_cond_wait(3)")


def with_a_worker(server, slow):
    """How many slow clients have a worker, which has read what they sent. The quick one waits."""
    return (len(slow) * len(HALF) + len(WHOLE) - server.unread()) // len(HALF)
