"""02/cap: whether a client beyond the limit is told so at once, and only while there is no room."""

from sleeps import expect_ticks

REASON = "told"
FEWEST, MOST = 2, 6
OTHERS, MOST_OTHERS = 10, 40
IN_TIME = 3  # of them, who come before the parent's next tick: it has not looked yet
REFUSED = 100  # one after the other, which takes a tenth of
REFUSED_SECONDS = 2
IDLE = 0.5  # seconds
REST = b"Host: here\r\n\r\n"


def check(ex):
    limit, other = ex.chance().sample(range(FEWEST, MOST + 1), 2)
    server, inside = full(ex, limit)
    with server.frozen():  # so that it does not find one who has not spoken yet
        extra = ask(ex, server)
    ex.did("had one client more ask for the page")
    expect_503(ex, "told", "503 for it, and an end of its connection", extra)
    with server.frozen():
        silent, behind = ex.client(server), ask(ex, server)
    ex.did("had one client say nothing, and another ask behind it")
    ex.expect("limit", "no more than %d children meanwhile" % limit,
              lambda: not ex.wait(lambda: len(server.children()) > limit, IDLE),
              saw=lambda: "more, for a while", hint=1)
    expect_503(ex, "told again", "503 for that one, too", behind)
    silent.close()
    expect_ticks(ex, "sleeps", server, "a parent that only looks up at each tick meanwhile", 1)
    refuses_at_once(ex, server)
    has_room_again(ex, server, inside, limit)

    server, _ = full(ex, other)
    with server.frozen():
        extra = ask(ex, server)
    expect_503(ex, "limit", "503 for one client more", extra)


def full(ex, limit):
    """A server with as many children as it may have, and their clients."""
    server = ex.serve("--workers", str(limit), "--timeout", "500")
    inside = ex.hold(server, limit)
    ex.expect_children("served", "%d children" % limit, server, limit)
    return server, inside


def ask(ex, server):
    client = ex.client(server)
    client.say(b"GET / HTTP/1.1\r\n" + REST)
    return client


def refuses_at_once(ex, server):
    before = server.descriptors()
    ex.expect_refused("at once", server, REFUSED, REFUSED_SECONDS, hint=1, read="accept(2)")
    ex.expect_descriptors("flat", "no more descriptors in the parent than before", server, before, hint=1)


def has_room_again(ex, server, inside, limit):
    """One after the other, each finds the place that the last one left. On a busy machine the parent's
    tick often comes between two of them, and shows it the place."""
    last, in_time = inside.pop(), 0
    ex.did("had one of the %d leave" % limit)
    for number in range(MOST_OTHERS):
        if number >= OTHERS and in_time >= IN_TIME:
            break
        before = naps(ex, server)
        last.close()
        ex.expect_children("leaves", "one child less", server, limit - 1)
        last = ask(ex, server)
        expect_page(ex, "next", "a page for the next client", last)
        in_time += naps(ex, server) == before + 1
    last.close()
    for client in inside:
        client.say(REST)
        expect_page(ex, "stays", "a page for a first one, who was slow", client)


def naps(ex, server):
    """How often the parent has gone to sleep, as it does now."""
    ex.wait(lambda: server.status("State").startswith("S"))
    return server.status("voluntary_ctxt_switches")


def expect_503(ex, key, expected, client):
    ex.expect(key, expected, lambda: client.status() == 503 and client.is_closed(),
              saw=lambda: client.first() or "no answer",
              within=2, hint=1, read="accept(2)")


def expect_page(ex, key, expected, client):
    ex.expect(key, expected, lambda: client.hear().status == 200, hint=2, read="waitpid(2)",
              saw=lambda: "another status, or an end")
