"""05/drain: are the clients in the queue served when the server is asked to stop?

Four clients hold the four workers, and six more have been accepted and wait. The server is asked to
stop, so it no longer listens, and sleeps until its workers are done. Then the four finish their
requests.
"""

import os
import signal

REASON = "queue"

WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
HALF, REST = WHOLE[:16], WHOLE[16:]
WORKERS, WAITING = 4, 6


def check(ex):
    server = ex.serve("--timeout", "60")
    before = server.descriptors()
    holding = ex.hold(server, WORKERS, HALF)
    ex.expect("taken", "a worker for each of them", lambda: server.unread() == 0, within=3)
    waiting = ex.hold(server, WAITING, WHOLE)
    ex.expect("accepted", "all of them accepted, and %d in the queue" % WAITING,
              lambda: server.descriptors() == before + WORKERS + WAITING
              and server.unread() == WAITING * len(WHOLE),
              saw=lambda: "%d accepted" % (server.descriptors() - before), within=3)

    os.kill(server.pid, signal.SIGTERM)
    ex.did("sent SIGTERM")
    ex.expect("stops", "a server that no longer listens, and waits for its workers",
              lambda: not server.listens() and server.asleep(), within=3, hint=1,
              read="pthread_join(3)")
    for client in holding:
        client.say(REST)
    ex.did("finished the requests of the four")
    ex.expect("finished", "a page for each of the four", lambda: pages(holding) == WORKERS,
              saw=lambda: "%d of %d" % (pages(holding), WORKERS), within=3, hint=1,
              read="pthread_join(3)")
    ex.expect("queue", "a page for each of the %d in the queue" % WAITING,
              lambda: pages(waiting) == WAITING, saw=lambda: "%d of %d" % (pages(waiting), WAITING),
              within=2, hint=1, read="pthread_cond_wait(3)")
    expect_end(ex, server, None)

    idle = ex.serve()
    ex.wait(idle.asleep)
    ex.did("sent SIGTERM to a server with nothing to do")
    expect_end(ex, idle, signal.SIGTERM)


def expect_end(ex, server, number):
    status = server.end(number)
    ex.expect("ends", "an end with status 0", lambda: status == 0, saw=lambda: status, hint=3,
              read="pthread_cond_broadcast(3)")


def pages(clients):
    """How many of the clients got a page."""
    return sum(client.status() == 200 for client in clients)
