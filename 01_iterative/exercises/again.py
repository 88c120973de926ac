"""01/again: whether a server can be stopped and started again on its port, but no second one."""

REASON = "again"

TIMES = 10


def check(ex):
    server = ex.serve()
    port = server.port
    remembered = visit(ex, server)
    server.end()
    ex.did("stopped it; %d of its connections are in TIME_WAIT" % remembered())
    if not remembered():
        ex.skip("this kernel keeps no connection in TIME_WAIT")
    for number in range(TIMES):
        starts = []

        def starts_again():
            starts.append(ex.serve("--port", str(port)))
            return starts[-1].port == port

        ex.expect("again", "that it starts again on port %d (%d of %d)" % (port, number + 1, TIMES),
                  starts_again, saw=lambda: "that it listens on port %d" % starts[-1].port, hint=1,
                  read="socket(7)")
        server = starts[0]
        visit(ex, server)
        if number + 1 < TIMES:
            server.end()
    alone(ex, server)


def visit(ex, server):
    """A client that is answered. Returns a function that counts the connections of this port that
    are in TIME_WAIT."""
    client = ex.client(server)
    client.say(b"GET / HTTP/1.1\r\n\r\n")
    ex.expect("answers", "a whole answer", lambda: client.hear().body == b"Hello\n", hint=2)
    ex.expect("ends", "an end of the connection, and no reset",
              lambda: client.is_closed(5) and not client.was_reset,
              saw=lambda: "a reset" if client.was_reset else "a connection that stays", hint=2,
              read="socket(7)")
    client.close()
    ex.wait(lambda: server.remembered() > 0)
    return server.remembered


def alone(ex, server):
    """A second one on the same port is refused, while the first is there."""
    ex.did("started a second one on port %d, beside the first" % server.port)
    ex.expect("alone", "that the second one finds the port taken, and ends with status 1",
              lambda: ex.run("--port", server.port, limit=1).status == 1,
              saw=lambda: "something else", hint=3, read="socket(7)")
