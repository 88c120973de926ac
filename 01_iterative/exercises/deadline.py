"""01/deadline: whether a client that sends all the time, but slowly, is sent away."""

import time

import diag

REASON = "total"

LONG = 500  # seconds: no busy machine needs them for a head
SHORT = 0.6, 0.6, 0.6, 0.6, 3  # one after the other, until no byte came late
TICK = 0.2  # after which recv() ends without a byte, see net_listen()
EVERY = 0.05
PAUSE = 2.4
PIECES = 30
LATE = 3  # bytes that the server may take after its time; one is right


def check(ex):
    server = ex.serve("--timeout", "%g" % LONG)
    answered(ex, "honest", "a head whose end comes %g s later is answered with 200" % PAUSE, server,
             [b"GET / HTTP/1.1\r\n", b"Host: here\r\n\r\n"],
             lambda: time.sleep(PAUSE))  # the client's own slowness, and no waiting for anything
    head = b"GET / HTTP/1.1\r\nX: %s\r\n\r\n" % (b"x" * PIECES)
    answered(ex, "honest", "a head that comes a byte at a time is answered with 200", server,
             [head[at:at + 1] for at in range(len(head))],
             lambda: ex.wait(lambda: server.unread() == 0))
    for seconds in SHORT:
        server = ex.serve("--timeout", "%g" % seconds)
        silent = ex.hold(server, 1)[0]
        ex.expect("silent", "408 for a client that falls silent",
                  lambda client=silent: client.hear().status == 408, hint=1, read="socket(7)")
        slow, late, longest = trickle(ex, server, seconds)
        if longest < TICK:
            break
        ex.did("tried again: this machine is busy, and once no byte came for %.1f s" % longest)
    ex.expect("total", "an end for a client that sends a byte every %g s, with --timeout %g"
              % (EVERY, seconds), lambda: late < LATE and slow.is_closed(5),
              saw=lambda: "that %d bytes were taken after that time" % late, hint=1,
              read="clock_gettime(2)")
    ex.expect("told", "that it is told why: 408", lambda: slow.hear().status == 408, hint=2)
    ex.expect("next", "the next one is served", lambda: ex.client(server).get().status == 200,
              within=5, hint=3, read="recv(2)")  # on a busy machine one may speak too late


def answered(ex, key, expected, server, pieces, between):
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


def trickle(ex, server, seconds):
    """A client that sends a byte at a time, until it is sent away or has been heard for too long.
    Returns it, how many bytes the server took after its time, and the longest pause between two.
    Order decides and not this clock: a server that is past its time takes the byte that wakes it,
    and no further one."""
    last = time.monotonic()
    client = ex.client(server)
    client.say(b"GET / HTTP/1.1\r\nX: ")
    ex.wait(lambda: is_taken(server, client))  # so the server's time has begun by now
    begun = time.monotonic()
    late, longest = 0, 0.0
    while late < LATE and not client.is_closed():
        time.sleep(EVERY)  # here the check is the clock
        over = time.monotonic() - begun > seconds
        client.say(b"x")
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
        ex.wait(lambda: client.is_closed() or is_taken(server, client))
        late += over and is_taken(server, client)
    longest = max(longest, time.monotonic() - last)  # it may have been sent away for its silence
    ex.did("sent a byte every %g s, for %.1f s" % (EVERY, time.monotonic() - begun))
    return client, late, longest


def is_taken(server, client):
    """Has the server taken all that this client sent?"""
    return any(each.state == diag.ESTABLISHED and each.client == client.port() and not each.unread
               for each in diag.connections(server.port))
