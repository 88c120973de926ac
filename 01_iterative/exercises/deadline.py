"""01/deadline: whether a client that sends all the time, but slowly, is sent away."""

import time

from proc import schedule
from waiting import clock

REASON = "total"

LONG = 500  # seconds: no busy machine needs them for a head
SHORT = 1, 1, 1, 3  # one after the other, until no byte came late
TICK = 0.2  # after which recv() ends without a byte, see net_listen()
PACES = 0.02, 0.09  # seconds between two bytes: a server that counts bytes has no right time for both
EARLY, LATE = 0.95, 2  # of --timeout
PAUSE = 2.4
PIECES = 30


def check(ex):
    chance = ex.chance()
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
        slow = [Trickle(ex, server, seconds, pace) for pace in chance.sample(PACES, len(PACES))]
        longest = max(each.longest for each in slow)
        if longest < TICK:
            break
        ex.did("tried again: this machine is busy, and once no byte came for %.1f s" % longest)
    for each in slow:
        ex.expect("total", "an end for a client that sends a byte every %g s, after %g s" % (
            each.pace, seconds), lambda slow=each: slow.ended and slow.took >= EARLY * seconds,
                  saw=lambda slow=each: "%s after %.1f s" % (
                      "an end" if slow.ended else "that it is still heard", slow.took), hint=1,
                  read="clock_gettime(2)")
        ex.expect("told", "that it is told why: 408",
                  lambda client=each.client: client.hear().status == 408, hint=2)
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


class Trickle:
    """A client that sends a byte at a time, until it is sent away or has been heard for too long.
    The time in which this check or the server had no core does not count as too long."""

    def __init__(self, ex, server, seconds, pace):
        def spent():
            return clock() - schedule(server.pid)[1]

        begun, begun_spent = time.monotonic(), spent()
        last, self.longest, self.pace = begun, 0, pace
        self.client = ex.client(server)
        self.client.say(b"GET / HTTP/1.1\r\nX: ")
        while not self.client.is_closed() and spent() - begun_spent < LATE * seconds:
            time.sleep(pace)  # here the check is the clock
            self.client.say(b"x")
            self.longest, last = max(self.longest, time.monotonic() - last), time.monotonic()
        self.took = time.monotonic() - begun
        self.ended = self.client.is_closed()
        ex.did("sent a byte every %g s, for %.1f s" % (pace, self.took))
