"""02/cap: whether a client beyond the limit is told so at once, and only while there is no room."""

from words import how_many

REASON = "told"
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
    expect_503(ex, "told", "503 for the fourth, and an end of its connection", fourth)
    silent, fifth = ex.client(server), ex.client(server)
    fifth.say(b"GET / HTTP/1.1\r\n" + REST)
    ex.did("had one client say nothing, and another ask behind it")
    expect_503(ex, "told again", "503 for that one, too", fifth)
    silent.close()
    before = server.cpu_seconds()
    ex.expect("sleeps", "a parent that only looks up at each tick meanwhile",
              lambda: not ex.wait(lambda: server.cpu_seconds() - before > IDLE_CPU, IDLE),
              saw=lambda: "%.2f s of a core" % (server.cpu_seconds() - before), hint=1,
              read="accept(2)")
    ex.expect("limit", "no more than %d children" % MOST, lambda: len(server.children()) == MOST,
              saw=lambda: how_many(len(server.children()), "child", "children"), hint=1)

    inside.pop().close()
    ex.did("had one of the %d leave" % MOST)
    for _ in range(OTHERS):  # one after the other: each finds the place that the last one left
        expect_room(ex, server)
        other = ex.client(server)
        expect_page(ex, "next", "a page for the next client", other)
        other.close()
    for client in inside:
        client.say(REST)
        expect_page(ex, "stays", "a page for a first one, who was slow", client, begun=True)


def expect_503(ex, key, expected, client):
    ex.expect(key, expected, lambda: client.status() == 503 and client.is_closed(),
              saw=lambda: "status %d" % client.status() if client.status() else "no answer",
              within=2, hint=1, read="accept(2)")


def expect_room(ex, server):
    ex.expect("leaves", "%d children" % (MOST - 1), lambda: len(server.children()) == MOST - 1,
              saw=lambda: how_many(len(server.children()), "child", "children"), within=2)


def expect_page(ex, key, expected, client, begun=False):
    if not begun:
        client.say(b"GET / HTTP/1.1\r\n" + REST)
    ex.expect(key, expected, lambda: client.hear().status == 200, hint=2, read="waitpid(2)",
              saw=lambda: "another status, or an end")
