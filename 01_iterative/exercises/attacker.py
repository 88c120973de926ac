"""01/attacker: how long do a few connections keep a polite visitor waiting, in each of the servers?

The server's --timeout is the only clock that decides, and it is never early. So a right attack lasts
at least so long, however busy the machine is.
"""

import time

import proc
from client import asking
import top

REASON = "stopped"

CONNECTIONS = 8
FIRST_THREE = 3  # standard input, output and error
TIMEOUT = 1  # seconds, of the server
PATIENCE = 5  # seconds, of the visitor


def check(ex):
    waited = attack(ex, "iterative")
    ex.expect("stopped", "a visitor without an answer for %d s" % PATIENCE,
              lambda: waited is None, saw=lambda: "an answer after %.1f s" % waited,
              hint=2 if waited and waited > TIMEOUT / 2 else 1, read="listen(2)")
    for name in top.BOOK[1:]:
        waited = attack(ex, name)
        ex.did("%s: %s" % (name, "the visitor waited, too" if waited is None
                           else "the visitor was answered after %.3f s" % waited))


def attack(ex, name):
    """How many seconds the visitor waited for its answer; None if it was in vain."""
    server = ex.project(name, "--timeout", str(TIMEOUT))
    with ex.running(server.port, descriptors=FIRST_THREE + CONNECTIONS) as printed:
        ex.expect("ready", "a line \"ready\"", lambda: "ready" in printed(), saw=printed, within=5,
                  read="fflush(3)")
        expect_few(ex, server, CONNECTIONS)
        visitor = ex.client(server)
        visitor.say(asking("/style.css"))
        waited = seconds_until_answered(visitor)
        expect_few(ex, server, CONNECTIONS + 1)
    ex.expect("visitor", "the file, when the attacker has gone",
              lambda: visitor.status() == 200, within=5, saw=visitor.first)
    server.end()
    return waited


def expect_few(ex, server, most):
    """The limit is each process's own, and the program may have children. Says so only if it is not so."""
    number = sum(each.state == proc.ESTABLISHED for each in proc.connections(server.port))
    if number > most:
        ex.expect("rules", "at most %d connections at a time" % most, lambda: False,
                  saw=lambda: number, hint=2, read="getrlimit(2)")


def seconds_until_answered(visitor):
    begun = time.monotonic()
    while time.monotonic() - begun < PATIENCE:
        if visitor.is_answered():
            return time.monotonic() - begun
        time.sleep(0.005)
    return None
