"""05/wakeup: does the server wake as many workers as there are clients to serve?

The clients come while the server is stopped. When it goes on, its main thread finds all of them in
the kernel's queue, and puts all of them into its own before the first worker can wake up.
"""

from words import how_many

REASON = "woken"

WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
HALF, REST = WHOLE[:16], WHOLE[16:]
WORKERS = 4
CROWD = 40
TICKS = 5


def check(ex):
    server = ex.serve("--timeout", "60")
    ex.expect("asleep", "%d workers and the main thread, all asleep" % WORKERS,
              lambda: server.threads() == WORKERS + 1 and server.asleep(), within=3)
    with server.frozen():
        slow = ex.hold(server, WORKERS - 1, HALF)
        quick = ex.hold(server, 1, WHOLE)
        ex.did("let all of them come at once: %d in the kernel's queue" % server.waiting())
    ex.expect("woken", "a page for the quick client: the slow ones hold only %d of %d workers" % (
        len(slow), WORKERS), lambda: pages(quick) == 1,
              saw=lambda: "no page for it, and %s with a worker" % how_many(
                  with_a_worker(server, slow), "slow client"), within=2, hint=1,
              read="pthread_cond_signal(3)")
    for client in slow:
        client.say(REST)
    ex.expect("slow", "a page for each of the slow clients, too", lambda: pages(slow) == len(slow),
              saw=lambda: "%d of %d" % (pages(slow), len(slow)), within=3, hint=1)

    with server.frozen():
        crowd = ex.hold(server, CROWD, WHOLE)
    expect_pages(ex, "crowd", "a page for each of %d clients" % CROWD, crowd)
    expect_pages(ex, "alone", "a page for a client that comes alone", ex.hold(server, 1, WHOLE))
    ex.expect("rest", "all %d workers asleep again" % WORKERS,
              lambda: server.asleep() and server.threads() == WORKERS + 1,
              saw=lambda: how_many(server.threads() - 1, "worker"), within=3, hint=3,
              read="pthread_cond_wait(3)")
    looks = wakeups_while_idle(ex, server)
    ex.expect("sleeps", "workers that sleep until there is work, during %d ticks of the main "
              "thread" % TICKS, lambda: looks <= WORKERS, saw=lambda: how_many(looks, "wake-up"),
              hint=3, read="pthread_cond_wait(3)")


def expect_pages(ex, key, expected, clients):
    ex.expect(key, expected, lambda: pages(clients) == len(clients),
              saw=lambda: "%d of %d" % (pages(clients), len(clients)), within=3, hint=2,
              read="pthread_cond_wait(3)")


def pages(clients):
    """How many of the clients got a page."""
    return sum(client.status() == 200 for client in clients)


def with_a_worker(server, slow):
    """How many slow clients have a worker, which has read what they sent. The quick one waits."""
    return (len(slow) * len(HALF) + len(WHOLE) - server.unread()) // len(HALF)


def wakeups_while_idle(ex, server):
    """How often workers went to sleep again, while the main thread did so TICKS times."""
    def sleeps(thread):
        return server.status("voluntary_ctxt_switches", thread)

    workers = [thread for thread in server.thread_states() if thread != server.pid]
    before = sum(map(sleeps, workers))
    begun = sleeps(server.pid)
    ex.wait(lambda: sleeps(server.pid) >= begun + TICKS, 10)
    return sum(map(sleeps, workers)) - before
