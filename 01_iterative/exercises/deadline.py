"""01/deadline: whether a client that sends all the time, but slowly, is sent away."""

import time

REASON = "total"

LONG, TIMEOUT = 20, 0.6  # seconds
EVERY = 0.05  # less than a tick, so that no recv() of the server's ends without a byte
MOST = 4 * TIMEOUT
PIECES = 100
TRIES = 3


def check(ex):
    server = ex.serve("--timeout", "%g" % LONG)
    answered(ex, "honest", "a head whose end comes %g s later is answered with 200, with --timeout %g"
             % (MOST, LONG), server, [b"GET / HTTP/1.1\r\n", b"Host: here\r\n\r\n"],
             lambda: time.sleep(MOST))  # the client's own slowness, and no waiting for anything
    head = b"GET / HTTP/1.1\r\nX: %s\r\n\r\n" % (b"x" * PIECES)
    answered(ex, "honest", "a head that comes a byte at a time is answered with 200", server,
             [head[at:at + 1] for at in range(len(head))],
             lambda: ex.wait(lambda: server.unread() == 0, 1))
    server = ex.serve("--timeout", "%g" % TIMEOUT)
    silent = ex.hold(server, 1)[0]
    ex.expect("silent", "408 for a client that falls silent", lambda: silent.hear().status == 408,
              hint=1, read="socket(7)")
    slow = trickle(ex, server)
    ex.expect("total", "an end for a client that sends a byte every %g s, with --timeout %g"
              % (EVERY, TIMEOUT), slow.is_closed,
              saw=lambda: "that it was still there after %g s" % MOST, hint=1,
              read="clock_gettime(2)")
    ex.expect("told", "that it is told why: 408", lambda: slow.hear().status == 408, hint=2)
    answered(ex, "next", "the next one is served", server, [b"GET / HTTP/1.1\r\n\r\n"])


def answered(ex, key, expected, server, pieces, between=None):
    """Sends the pieces, calls `between` between two of them, and expects 200."""
    client = ex.client(server)
    for number, piece in enumerate(pieces):
        if number:
            between()
        client.say(piece)
    answers = []

    def is_good():
        answers.append(client.hear())
        return answers[-1] and answers[-1].status == 200

    ex.expect(key, expected, is_good, saw=lambda: answers[-1], hint=3, read="recv(2)")


def trickle(ex, server):
    """A client that sends a byte every EVERY seconds, until it is sent away or MOST have passed.
    If this machine was too busy to send them in time, the client fell silent, and we try again."""
    for _ in range(TRIES):
        client = ex.client(server)
        client.say(b"GET / HTTP/1.1\r\nX: ")
        begun = last = time.monotonic()
        longest = 0.0
        while time.monotonic() - begun < MOST and not client.is_closed():
            time.sleep(EVERY)  # here the check is the clock
            client.say(b"x")
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        if longest < TIMEOUT / 2:
            break
        client.close()
    ex.did("sent a byte every %g s, for %.1f s" % (EVERY, time.monotonic() - begun))
    return client
