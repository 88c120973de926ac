"""04/argument: does each thread tell its client where that one comes from, however late it does?

There are two seats, and clients that say nothing have taken them. The threads of the next clients are
created at once and answer later, when a seat is free. All of these threads begin late (unlucky.c),
so that the next one is created before the last one has run at all. The client in the other seat waits
until thousands have come and gone: a row of names is too short by then, or has taken memory for each.
"""

import os

from client import WHOLE
from words import how_many

REASON = "own"

LATE = 300
CUSTOMERS = 6000
MOST_MEMORY = 80 << 10  # bytes; what each of them leaves behind adds up to twice that, or more


def check(ex):
    server = ex.serve("--workers", "2", env=ex.unlucky())
    before = server.descriptors()
    for _ in range(2):
        expect_own(ex, "alone", "a client that comes alone", ex.hold(server, 1, WHOLE), 3)

    first, slow = ex.hold(server, 2, b"")
    ex.wait(lambda: naps(server) >= 4)  # they have begun, and sleep in recv(2)
    ex.did("left the only two seats to these clients")
    late = ex.hold(server, LATE, WHOLE)
    ex.expect("threads", "a thread for each of these %d clients, which waits for a seat" % LATE,
              # Two naps each: unlucky.c makes it begin late, and then it waits.
              lambda: server.threads() == 3 + LATE and naps(server) >= 2 * LATE and
              not any(each.is_answered() for each in late),
              saw=lambda: "%s, and %s" % (how_many(server.threads(), "thread"), how_many(
                  sum(each.is_answered() for each in late), "answer")), within=5, hint=1,
              read="pthread_create(3)")
    first.say(WHOLE)
    expect_own(ex, "own", "one of the two, and for each of the %d that waited" % LATE, [first, *late], 5)
    ex.expect_descriptors("closed", "as many open descriptors as before, and one for the client that is left",
                          server, before + 1, within=3, hint=3)
    if os.environ.get("SAN"):
        return  # a sanitizer keeps what is freed

    left = memory_left(ex, server)
    ex.expect("freed", "nothing kept of clients that have left, neither allocated nor in an array of names",
              lambda: left < MOST_MEMORY, hint=3,
              saw=lambda: "%d kB more than before, %d bytes for each" % (left >> 10, left // CUSTOMERS))
    slow.say(WHOLE)
    expect_own(ex, "slow", "the client that has waited all the time", [slow], 3)


def expect_own(ex, key, who, clients, within):
    ex.expect(key, "the truth for %s" % who, lambda: told_own(clients) == len(clients),
              saw=lambda: "%d of %d%s" % (told_own(clients), len(clients), example(clients)),
              within=within, hint=1, read="pthread_create(3)")


def naps(server):
    """How often its threads have gone to sleep, the main one left out."""
    return sum(server.naps(server.thread_states().keys() - {server.pid}).values())


def told_own(clients):
    """How many clients have read where they come from."""
    return sum(body_of(client) == truth(client) for client in clients)


def truth(client):
    return b"You come from 127.0.0.1, port %d.\n" % client.port()


def body_of(client):
    return client.first().body if client.status() == 200 else None


def example(clients):
    """What one of them has read instead."""
    wrong = [each for each in clients if body_of(each) not in (None, truth(each))]
    if not wrong:
        return ""
    line = body_of(wrong[0]).decode("latin-1").partition("\n")[0]
    return '; the one from port %d read "%s"' % (wrong[0].port(), line)


def memory_left(ex, server):
    """By how many bytes the server's memory has grown after so many clients, one after the other."""
    before = server.own_memory()
    for _ in range(CUSTOMERS):
        client = ex.client(server)
        client.say(WHOLE)
        client.end_of()
        client.close()
    ex.wait(lambda: server.threads() == 2)
    left = server.own_memory() - before
    ex.did("let %d more clients come, one after the other: %d kB more than before" % (
        CUSTOMERS, left >> 10))
    return left
