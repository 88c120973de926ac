"""05/drain: whether those in the queue are served, when the server is asked to stop.

Four clients hold the four workers, six more have been accepted and wait. When the server has
stopped listening, and sleeps until its workers are done, the four finish what they had begun.
"""

import os
import signal

REASON = "guests"

WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
HALF, REST = WHOLE[:16], WHOLE[16:]
WORKERS, GUESTS = 4, 6


def check(ex):
    server = ex.serve("--timeout", "60")
    before = server.descriptors()
    holding = ex.hold(server, WORKERS, HALF)
    ex.expect("taken", "a worker for each of them", lambda: server.unread() == 0, within=3)
    guests = ex.hold(server, GUESTS, WHOLE)
    ex.expect("accepted", "all of them accepted, and %d in the queue" % GUESTS,
              lambda: server.descriptors() == before + WORKERS + GUESTS
              and server.unread() == GUESTS * len(WHOLE),
              saw=lambda: "%d accepted" % (server.descriptors() - before), within=3)

    os.kill(server.pid, signal.SIGTERM)
    ex.did("sent SIGTERM")
    ex.expect("stops", "a server that listens no more, and waits for its workers",
              lambda: not server.listens() and server.asleep(), within=3, hint=1,
              read="pthread_join(3)")
    for client in holding:
        client.say(REST)
    ex.did("let the four finish what they had begun")
    ex.expect("finished", "a page for each of the four", lambda: pages(holding) == WORKERS,
              saw=lambda: "%d of %d" % (pages(holding), WORKERS), within=3, hint=1,
              read="pthread_join(3)")
    ex.expect("guests", "a page for each of the %d in the queue" % GUESTS,
              lambda: pages(guests) == GUESTS, saw=lambda: "%d of %d" % (pages(guests), GUESTS),
              within=2, hint=1, read="pthread_cond_wait(3)")
    expect_end(ex, server, None)

    idle = ex.serve()
    ex.wait(idle.asleep)
    ex.did("sent SIGTERM to one with nothing to do")
    expect_end(ex, idle, signal.SIGTERM)


def expect_end(ex, server, number):
    status = server.end(number)
    ex.expect("ends", "an end with status 0", lambda: status == 0, saw=lambda: status, hint=3,
              read="pthread_cond_broadcast(3)")


def pages(clients):
    """How many have got one."""
    return sum(client.status() == 200 for client in clients)
