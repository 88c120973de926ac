"""04/argument: does each thread serve the client it was made for, however late it reads that?

There is one seat, and a client has taken it. The threads of the next clients are created at once
and read their argument later, when the seat is free. Then many clients are accepted one right after
the other.
"""

from words import how_many

REASON = "answered"

WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
HALF, REST = WHOLE[:16], WHOLE[16:]
LATE = 5
CROWD = 40


def check(ex):
    server = ex.serve("--workers", "1", "--timeout", "60")
    before = server.descriptors()
    first = ex.client(server)
    ex.expect("alone", "a page for a client that comes alone", lambda: is_page(first.get()), hint=1,
              read="pthread_create(3)")
    first.say(HALF)
    ex.did("let this client send half of another request: it holds the only seat")

    late = ex.hold(server, LATE, WHOLE)
    ex.expect("threads", "a thread for each of these %d clients, which waits for the seat" % LATE,
              lambda: server.threads() == 2 + LATE,
              saw=lambda: how_many(server.threads(), "thread"), within=3, hint=1,
              read="pthread_create(3)")
    first.say(REST)
    ex.expect("finishes", "a page for the client that holds the seat",
              lambda: is_page(first.hear()), hint=1, read="pthread_create(3)")
    ex.expect("answered", "a page for each of the %d clients that waited" % LATE,
              lambda: pages(late) == LATE, saw=lambda: "%d of %d" % (pages(late), LATE),
              within=2, hint=1, read="pthread_create(3)")

    with server.frozen():
        crowd = ex.hold(server, CROWD, WHOLE)
    ex.expect("crowd", "a page for each of %d clients that came at the same moment" % CROWD,
              lambda: pages(crowd) == CROWD, saw=lambda: "%d of %d" % (pages(crowd), CROWD),
              within=5, hint=3, read="pthread_create(3)")
    ex.expect("closed", "as many open descriptors as before, when all clients have gone",
              lambda: server.descriptors() <= before,
              saw=lambda: "%d, and %d before" % (server.descriptors(), before), within=3, hint=2,
              read="close(2)")


def pages(clients):
    """How many clients have got a page."""
    return sum(is_page(client.first()) for client in clients)


def is_page(answer):
    return answer is not None and answer.status == 200
