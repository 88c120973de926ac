"""04/flag: do threads that wait for a flag see it, without a data race, and sleep until then?

The program is built with the thread sanitizer.
"""

from client import WHOLE, asking
from sleeps import WOKEN_SECONDS, expect_no_race, expect_sleep
from words import how_many

REASON = "seen"
SAN = "thread"

VISITORS = 4
SECONDS = 5


def check(ex):
    first, second = ex.chance().sample(range(1000, 100000), 2)
    server = ex.serve()
    visitors = at_the_door(ex, server)
    ex.expect("closed", "no answer before the door is open",
              lambda: not ex.wait(lambda: any(each.is_answered() for each in visitors), 0.2), hint=1)
    open_door(ex, server, first)
    expect_number(ex, "seen", "who has waited", visitors, first, 1)
    expect_number(ex, "later", "who comes later", ex.hold(server, 1, WHOLE), first, 2)

    with server.frozen():
        crowd = [ex.client(server) for _ in range(2 * VISITORS)]
        for client, path in zip(crowd, ["/", "/open/%d" % second] * VISITORS):
            client.say(asking(path))
    ex.did("let %d visitors come, and as many who open the door with %d" % (VISITORS, second))
    ex.expect("again", "one of the two numbers for each visitor",
              lambda: {number_of(client) for client in crowd[::2]} <= {first, second},
              saw=lambda: numbers(crowd[::2]), within=SECONDS, hint=2)
    ex.expect("again", "an answer for each who opens the door",
              lambda: all(number_of(client) == second for client in crowd[1::2]),
              saw=lambda: numbers(crowd[1::2]), within=SECONDS, hint=2)
    expect_number(ex, "changed", "who comes last", ex.hold(server, 1, WHOLE), second, 2)
    expect_no_race(ex, server, 2)

    server = ex.serve()
    visitors = at_the_door(ex, server)
    expect_sleep(ex, server, "threads that sleep until the door is open", 3)
    open_door(ex, server, second)
    expect_number(ex, "woken", "who has slept", visitors, second, 3)


def at_the_door(ex, server):
    """Visitors whose threads have read their requests."""
    visitors = ex.hold(server, VISITORS, WHOLE)
    ex.expect("threads", "a thread for each of them, which has read the request",
              lambda: server.threads() > VISITORS and server.unread() == 0,
              saw=lambda: how_many(server.threads(), "thread"), within=SECONDS, hint=1)
    return visitors


def open_door(ex, server, number):
    client, = ex.hold(server, 1, asking("/open/%d" % number))
    ex.expect("opened", "the number for the client that opens the door",
              lambda: number_of(client) == number, saw=lambda: numbers([client]), within=SECONDS)


def expect_number(ex, key, who, clients, number, hint):
    ex.expect(key, "%d for each visitor %s" % (number, who),
              lambda: all(number_of(client) == number for client in clients),
              saw=lambda: numbers(clients), within=WOKEN_SECONDS, hint=hint,
              read="pthread_cond_broadcast(3)")


def number_of(client):
    """What it was told; None while there is no answer."""
    return int(client.first().body) if client.status() == 200 else None


def numbers(clients):
    told = [number_of(client) for client in clients]
    return "%s, and no answer for %d of %d" % (
        ", ".join(map(str, sorted(set(told) - {None}))) or "no number", told.count(None), len(told))
