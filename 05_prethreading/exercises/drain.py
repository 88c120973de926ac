"""05/drain: are the clients in the queue served when the server is asked to stop?

Four clients hold the four workers, and more have been accepted and wait. The server is asked to
stop, so it no longer listens, and sleeps until its workers are done. For a while nothing happens,
less than the five seconds that workers give their clients. Then the four finish their requests. A
server without clients has to end in less than that while: one that only waits long does not.
"""

import os
import signal
import time

from client import HALF, REST, WHOLE
from words import how_many

REASON = "queue"

WORKERS = 4
QUEUED = 400, 600  # a queue has an end, and its length is no answer
HOLD_SECONDS = 2


def check(ex):
    number = ex.chance().randint(*QUEUED)
    server = ex.serve("--timeout", "60")
    before = server.descriptors()
    holding = ex.hold(server, WORKERS, HALF)
    ex.expect("taken", "a worker for each of them", lambda: server.unread() == 0, within=3)
    waiting = ex.hold(server, number, WHOLE)
    ex.expect("accepted", "all of them accepted, and %d in the queue" % number,
              lambda: server.descriptors() == before + WORKERS + number
              and server.unread() == number * len(WHOLE),
              saw=lambda: "%d accepted" % (server.descriptors() - before), within=3)

    os.kill(server.pid, signal.SIGTERM)
    ex.did("sent SIGTERM")
    ex.expect("stops", "a server that no longer listens, and waits for its workers",
              lambda: not server.listeners() and server.asleep(), within=3, hint=1,
              read="pthread_join(3)")
    wakeups = wakeups_while_held(server)
    ex.expect("quiet", "a main thread that sleeps until its workers are done, for %d s" %
              HOLD_SECONDS, lambda: wakeups <= 1, saw=lambda: how_many(wakeups, "wake-up"), hint=1,
              read="pthread_join(3)")
    for client in holding:
        client.say(REST)
    ex.did("finished the requests of the four")
    ex.expect_pages("finished", "a page for each of the four", holding, hint=1, read="pthread_join(3)")
    ex.expect_pages("queue", "a page for each of the %d in the queue" % number, waiting, hint=1, read="pthread_cond_wait(3)")
    ex.expect_end("ends", server, None, hint=3, read="pthread_cond_broadcast(3)")
    ends_when_idle(ex)


def ends_when_idle(ex):
    """One that only waits long, instead of until its workers are done, takes too long here."""
    idle = ex.serve()
    ex.wait(idle.asleep)
    begun = idle.slept()
    os.kill(idle.pid, signal.SIGTERM)
    ex.did("sent SIGTERM to a server with nothing to do")
    ex.wait(lambda: not idle.alive())
    slept = idle.slept() - begun
    ex.expect("idle", "its end within %d s" % HOLD_SECONDS, lambda: slept < HOLD_SECONDS,
              saw=lambda: "that it slept for %.1f s" % slept, hint=3, read="pthread_cond_broadcast(3)")
    ex.expect_end("ends", idle, None, hint=3, read="pthread_cond_broadcast(3)")


def wakeups_while_held(server):
    """How often the main thread wakes up in HOLD_SECONDS."""
    before = server.status("voluntary_ctxt_switches")
    time.sleep(HOLD_SECONDS)  # a measurement needs this time; nothing is waited for
    return server.status("voluntary_ctxt_switches") - before
