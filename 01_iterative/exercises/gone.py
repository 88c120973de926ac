"""01/gone: whether the server survives clients that leave in the middle."""

REASON = "lives"

PAGE_SIZE = 1 << 20
LEAVE = 20


def check(ex):
    server = ex.serve()
    ex.expect("answers", "a whole page for a client that stays", lambda: whole(ex, server), hint=3)
    lives(ex, server, "ask and hang up while they wait", leave_the_queue)
    lives(ex, server, "reset their connections in the middle of the page", leave_the_page)


def lives(ex, server, how, leave):
    """Lets clients leave in that way, and then asks for a whole page."""
    ex.did("let %d clients %s" % (LEAVE, how))
    ex.expect("lives", "a server that lives, and a whole page for the next client",
              lambda: leave(ex, server) or whole(ex, server), hint=1, read="signal(7)")


def leave_the_queue(ex, server):
    """A silent client holds the server, which so comes to the others only after they have left."""
    silent = ex.client(server)
    ex.wait(lambda: server.waiting() == 0)
    for _ in range(LEAVE):
        ask(ex, server).close()
    silent.close()


def leave_the_page(ex, server):
    for _ in range(LEAVE):
        client = ask(ex, server)
        ex.wait(client.is_answered)
        client.reset()


def whole(ex, server):
    return len(ask(ex, server).hear().body) == PAGE_SIZE


def ask(ex, server):
    client = ex.client(server)
    client.say(b"GET / HTTP/1.1\r\n\r\n")
    return client
