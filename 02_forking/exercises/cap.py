"""02/cap: whether whoever comes beyond the limit waits, and is served when there is room."""

from words import how_many

REASON = "waits"
MOST = 3
OTHERS = 10
IDLE, IDLE_CPU = 0.5, 0.03  # seconds: so long, and what a loop without sleep uses by far
REST = b"Host: here\r\n\r\n"


def check(ex):
    server = ex.serve("--workers", str(MOST), "--timeout", "60")
    inside = ex.hold(server, MOST)
    ex.expect("served", "%d children" % MOST, lambda: len(server.children()) == MOST,
              saw=lambda: how_many(len(server.children()), "child", "children"), within=2)
    fourth = ex.client(server)
    fourth.say(b"GET / HTTP/1.1\r\n" + REST)
    ex.did("had a fourth client ask for the page")
    ex.expect("waits", "the fourth in the accept queue, and the parent asleep",
              lambda: is_left_waiting(server), saw=lambda: how_it_stands(server, fourth),
              within=2, hint=1, read="listen(2)")
    before = server.cpu_seconds()
    ex.expect("sleeps", "a parent that only looks up at each tick meanwhile",
              lambda: not ex.wait(lambda: server.cpu_seconds() - before > IDLE_CPU, IDLE),
              saw=lambda: "%.2f s of a core" % (server.cpu_seconds() - before), hint=2,
              read="sigtimedwait(2)")
    ex.expect("limit", "no more than %d children" % MOST, lambda: len(server.children()) == MOST,
              saw=lambda: how_many(len(server.children()), "child", "children"), hint=2)

    inside.pop().close()
    ex.did("had one of the %d leave" % MOST)
    expect_pages(ex, "next", "a page for the fourth", [fourth])
    others = [ex.client(server) for _ in range(OTHERS)]
    for client in others:
        client.say(b"GET / HTTP/1.1\r\n" + REST)
    expect_pages(ex, "goes on", "a page for %d others, one after the other" % OTHERS, others)
    for client in inside:
        client.say(REST)
    expect_pages(ex, "stays", "a page for the first ones, who were slow", inside)


def is_left_waiting(server):
    """Does the parent sleep while the client stands in the queue? One that slept in accept would
    have been woken; one that asks again and again for room runs."""
    queued = server.waiting()
    asleep = server.status("State").startswith("S")
    return queued == 1 and asleep and server.waiting() == 1


def how_it_stands(server, client):
    told = "told %d" % client.hear().status if client.is_answered() else "told nothing"
    return "%d in the queue, the client %s, the parent in state %s" % (
        server.waiting(), told, server.status("State"))


def expect_pages(ex, key, expected, clients):
    statuses = []
    for client in clients:
        answer = client.hear()
        statuses.append(answer and answer.status)
        client.close()  # or its child would wait for its next request
    ex.expect(key, expected, lambda: statuses == [200] * len(clients),
              saw=lambda: ", ".join(map(str, statuses)), hint=3, read="sigtimedwait(2)")
