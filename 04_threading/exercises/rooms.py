"""04/rooms: do moves and counts ever wait for each other in a circle?

A thread that has taken a lock sleeps before it goes on (rare.c). So what takes bad luck
elsewhere happens each time. All of a crowd come at once: the server is stopped meanwhile.
"""

import re

from client import asking
from sleeps import expect_no_race

REASON = "together"
SAN = "thread"

ROOMS, VISITORS = 8, 10
TIMES = 6  # fewer than the visitors of a room, so that none gets empty
SECONDS = 3
MOVED = re.compile(rb"Room (\d) has (\d+) visitors, room (\d) has (\d+)\.\n")
COUNTED = b"All rooms have %d visitors.\n" % (ROOMS * VISITORS)


def check(ex):
    server = ex.serve(env=ex.rare("hold"))
    expect_moved(ex, server, "alone", "/2/5", (9, 11), 1)
    expect_moved(ex, server, "alone", "/5/2", (10, 10), 1)
    expect_all(ex, "alone", "the sum for a client that counts alone", come(ex, server, ["/"]), 1)

    expect_all(ex, "together", "an answer for each of %d clients that move visitors between two "
               "rooms, in both directions" % (2 * TIMES),
               come(ex, server, ["/0/1", "/1/0"] * TIMES), 1)
    expect_moved(ex, server, "moved", "/0/1", (9, 11), 2)
    expect_moved(ex, server, "moved", "/1/0", (10, 10), 2)

    circle = ["/%d/%d" % (room, (room + 1) % ROOMS) for room in range(ROOMS)]
    expect_all(ex, "circle", "an answer for each of %d clients that move visitors around a circle" %
               (2 * ROOMS), come(ex, server, circle * 2), 2)
    expect_all(ex, "counted", "an answer for each that moves a visitor between the last room and "
               "the first, and the sum, %d, for each that counts" % (ROOMS * VISITORS),
               come(ex, server, ["/", "/7/0", "/", "/0/7"] * 3), 2)
    expect_moved(ex, server, "same", "/4/4", (10, 10), 3)
    expect_moved(ex, server, "same", "/4/6", (9, 11), 3)
    expect_all(ex, "rest", "the sum at last", come(ex, server, ["/"]), 3)
    expect_no_race(ex, server, 3)


def come(ex, server, paths):
    """[(path, client)], all at once."""
    with server.frozen():
        clients = [(path, ex.client(server)) for path in paths]
        for path, client in clients:
            client.say(asking(path))
    ex.did("let %s come%s" % (", ".join(sorted(set(paths))),
                              ", %d in all, at once" % len(paths) if len(paths) > 1 else ""))
    return clients


def expect_all(ex, key, expected, clients, hint):
    ex.expect(key, expected, lambda: right(clients) == len(clients),
              saw=lambda: "%d of %d%s" % (right(clients), len(clients), example(clients)),
              within=SECONDS, hint=hint, read="pthread_mutex_lock(3)")


def expect_moved(ex, server, key, path, numbers, hint):
    """One client alone, and so many in the two rooms afterwards."""
    (_, client), = come(ex, server, [path])

    def seen():
        return is_right(path, body_of(client)) and tuple(
            map(int, MOVED.fullmatch(body_of(client)).group(2, 4)))

    ex.expect(key, "%d and %d visitors in the rooms of %s afterwards" % (*numbers, path),
              lambda: seen() == numbers, saw=lambda: body_of(client) or "no answer", within=SECONDS,
              hint=hint, read="pthread_mutex_lock(3)")


def right(clients):
    """How many of them have the answer that they want."""
    return sum(is_right(path, body_of(client)) for path, client in clients)


def is_right(path, body):
    if path == "/":
        return body == COUNTED
    moved = MOVED.fullmatch(body or b"")
    return bool(moved) and b"/%s/%s" % moved.group(1, 3) == path.encode()


def body_of(client):
    return client.first().body if client.status() == 200 else None


def example(clients):
    """What one of them has read instead."""
    wrong = [(path, body_of(client)) for path, client in clients
             if body_of(client) and not is_right(path, body_of(client))]
    return "; on %s it said %r" % wrong[0] if wrong else ""
