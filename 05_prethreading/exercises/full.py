"""05/full: does a server with a full buffer go on, as soon as a worker is free?

Four clients hold the four workers, and more come than the buffer has places for. The rest has to
wait in the kernel's queue, while all threads sleep. Then the four finish their requests.
"""

from client import HALF, REST, WHOLE
from sleeps import expect_no_race, expect_sleep, expect_ticks

REASON = "full"
SAN = "thread"

WORKERS, PLACES = 4, 10
MORE = 3, 30  # than have a place


def check(ex):
    server = ex.serve("--timeout", "60")
    expect_sleep(ex, server, "threads that sleep until there is a client", 2)
    before = server.descriptors()
    holding = ex.hold(server, WORKERS, HALF)
    ex.expect("taken", "a worker for each of %d clients" % WORKERS, lambda: server.unread() == 0, within=3)
    more = ex.chance().randint(*MORE)
    waiting = ex.hold(server, PLACES + 1 + more, WHOLE)
    ex.expect("bounded", "%d clients in the buffer, one in the main thread's hand, and %d in the kernel's queue" % (PLACES, more),
              lambda: (server.descriptors() - before, server.waiting()) == (WORKERS + PLACES + 1, more),
              saw=lambda: "%d accepted, and %d in the kernel's queue" % (server.descriptors() - before, server.waiting()), within=3, hint=2)
    expect_ticks(ex, "asleep", server, "a main thread that sleeps until there is a place", 2)
    with server.frozen():  # so that all four workers go on at once
        for client in holding:
            client.say(REST)
    ex.did("finished the requests of the %d" % WORKERS)
    ex.expect_pages("finished", "a page for each of the %d" % WORKERS, holding, hint=1)
    ex.expect_pages("full", "a page for each of the others", waiting, hint=1, read="sem_wait(3)")
    ex.expect_pages("next", "a page for the next client", ex.hold(server, 1, WHOLE), hint=1)
    expect_no_race(ex, server, 3)
