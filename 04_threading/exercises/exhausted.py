"""04/exhausted: when descriptors or stacks run out, does the server live, rest, and recover?

Both limits are set from outside while the server runs: prlimit(2).
"""

import os
import resource
import time

from client import HALF, REST, WHOLE, count
from words import how_many

REASON = "lives"

ROOM = 8  # descriptors that are left for clients
CLIENTS = 24
REST_SECONDS = 2
MOST_CPU_SECONDS = 0.15  # a tick costs next to nothing; a busy loop uses all there is
MOST_WAKEUPS = 60  # of the main thread, in this time; ten ticks, each with a look or two, are fewer
MOST_THREADS = 40  # its slots on the board, too
REFUSED = 50


def check(ex):
    server = ex.serve("--timeout", "60", "--workers", str(MOST_THREADS))
    before = server.descriptors()
    plenty = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[1]
    out_of_descriptors(ex, server)
    ex.expect_descriptors("closed", "as many open descriptors as before, when all clients have gone",
                          server, before, within=3, hint=2)
    if os.environ.get("SAN"):
        return  # a sanitizer needs many addresses itself
    allow(server, resource.RLIMIT_NOFILE, plenty)
    out_of_stacks(ex, server)
    ex.expect_descriptors("given back", "as many open descriptors as before, once more", server, before,
                          within=3, hint=3)
    ex.expect_end("ends", server, hint=3)  # no thread is waited for that was never there


# ---- descriptors ---------------------------------------------------------------------------


def out_of_descriptors(ex, server):
    limit = max(map(int, os.listdir("/proc/%d/fd" % server.pid))) + 1 + ROOM
    allow(server, resource.RLIMIT_NOFILE, limit)
    ex.did("left it %d descriptors, with prlimit(2)" % ROOM)
    with server.frozen():  # so that all are in its accept queue when it goes on
        clients = ex.hold(server, CLIENTS, HALF)
    ex.wait(lambda: not server.alive() or is_full(server, limit), 3)
    ex.expect("lives", "a server that lives although its descriptors are used up", server.alive,
              hint=1, read="accept(2)")
    ex.expect("queue", "%d clients in the accept queue, for whom there is no descriptor" % (
        CLIENTS - ROOM), lambda: server.waiting() >= CLIENTS - ROOM, saw=server.waiting, within=1,
              hint=2, read="getrlimit(2)")

    used, wakeups = rest(server)
    ex.expect("rests", "hardly any CPU time while the server can do nothing, and at most %d looks"
              % MOST_WAKEUPS, lambda: used < MOST_CPU_SECONDS and wakeups <= MOST_WAKEUPS,
              saw=lambda: "%.2f s of it in %d s, and %d wake-ups" % (used, REST_SECONDS, wakeups),
              hint=2, read="accept(2)")
    clients[0].say(REST)
    ex.expect("serves", "an answer for a client that was accepted before",
              lambda: clients[0].status(), within=3, hint=2, read="accept(2)")
    for client in clients[1:-1]:
        client.close()
    clients[-1].say(REST)
    ex.did("let all clients leave except the last one")
    ex.expect("back", "an answer for the client that stayed", lambda: clients[-1].status(),
              within=5, hint=2, read="accept(2)")
    expect_page(ex, server)


def is_full(server, limit):
    """No descriptor is left, and so the main thread sleeps."""
    return (server.descriptors() == limit and server.threads() > ROOM
            and server.thread_states()[server.pid] == "S")


def rest(server):
    """The CPU time that the server uses in REST_SECONDS, and how often the main thread wakes up."""
    def look():
        return server.cpu_seconds(), server.status("voluntary_ctxt_switches")

    before = look()
    time.sleep(REST_SECONDS)  # a measurement needs this time; nothing is waited for
    return [late - early for late, early in zip(look(), before)]


def expect_page(ex, server):
    client = ex.client(server)
    client.say(WHOLE)
    ex.expect_status("page", "a page for the next client", client, 200, within=3, hint=2, read="accept(2)")


# ---- stacks --------------------------------------------------------------------------------


def out_of_stacks(ex, server):
    allow(server, resource.RLIMIT_AS, (server.status("VmSize") + 1024) * 1024)
    ex.did("left it addresses for a few more stacks, with prlimit(2)")
    holding = []
    while len(holding) < MOST_THREADS and add_one(ex, server, holding):
        pass
    ex.did("let %s send half a request each, until there was no thread for one more" %
           how_many(len(holding), "client"))
    ex.expect("weather", "a server that lives although it has no thread for a client",
              server.alive, hint=3, read="pthread_create(3)")
    for number in range(REFUSED):
        expect_refusal(ex, server, number)
    served = holding[:-1]  # there was no thread for the last one
    for client in served:
        client.say(REST)
    ex.expect("others", "a page for each of the %d that have a thread" % len(served),
              lambda: count(served) == len(served), within=3, hint=3, read="close(2)")
    for client in holding:
        client.close()
    ex.wait(lambda: server.threads() == 1, 3)
    expect_page(ex, server)


def expect_refusal(ex, server, number):
    refused = ex.client(server)
    refused.say(WHOLE)
    told = ex.wait(lambda: refused.status() == 503, 3)
    if not told or number == 0:  # the first is said, and any that is missed
        ex.expect("told", "a 503 for client %d of %d that come now" % (number + 1, REFUSED),
                  lambda: told, saw=lambda: "status %s" % refused.status(), hint=3,
                  read="pthread_create(3)")
    refused.close()


def add_one(ex, server, holding):
    """Adds a client that sends half a request. False if there was no thread for it."""
    before = server.threads()
    client = ex.client(server)
    client.say(HALF)
    holding.append(client)
    ex.wait(lambda: not server.alive() or client.is_answered() or server.threads() > before, 3)
    return server.alive() and server.threads() > before


def allow(server, what, soft):
    """Sets a soft limit of the running server. The hard limit stays, so it can be raised again."""
    hard = resource.prlimit(server.pid, what)[1]
    resource.prlimit(server.pid, what, (soft, hard))
