"""04/stacks: does the prediction hold, for the addresses and the memory of idle clients?

Each client has sent half a request, and the server has read it. So its thread exists, has touched
its stack, and has got from malloc what it needs.
"""

import re

from lib import machine
from words import how_many

REASON = "addresses"

HALF = b"GET / HTTP/1.1\r\n"
SIZES = [10, 100, 1000]
SPARE = 100  # descriptors, ours and the server's, besides those of the clients


def check(ex):
    if machine.raise_descriptor_limit() < SIZES[-1] + SPARE:
        ex.skip("%d clients need more descriptors than a process may have here" % SIZES[-1])
    predicted = {clients: prediction(ex, clients) for clients in SIZES}
    server = ex.project("threading", "--timeout", "240")
    before = look(server)

    clients = 0
    for size in SIZES:
        ex.hold(server, size - clients, HALF)
        clients = size
        ex.expect("idle", "%d sleeping threads with a client each" % size,
                  lambda size=size: server.threads() == size + 1 and server.unread() == 0,
                  saw=lambda: how_many(server.threads(), "thread"), within=10)
        grown = look(server)[0] - before[0]
        expect_near(ex, "addresses", "VmSize", size, predicted[size][0], grown, 1.15, 1)
    grown = look(server)[1] - before[1]
    expect_near(ex, "memory", "VmRSS", clients, predicted[clients][1], grown, 2.0, 3)


def prediction(ex, clients):
    """The learner's (VmSize, VmRSS), in kB."""
    run = ex.run(clients)
    ex.expect("prints", "two numbers for %d clients" % clients,
              lambda: re.fullmatch(r"VmSize -?\d+\nVmRSS -?\d+\n", run.stdout) and run.status == 0,
              saw=lambda: "status %d, and %r" % (run.status, run.stdout), read="printf(3)")
    return tuple(map(int, re.findall(r"-?\d+", run.stdout)))


def look(server):
    return server.status("VmSize"), server.status("VmRSS")


def expect_near(ex, key, field, clients, predicted, grown, factor, hint):
    """Holds if the prediction is at most `factor` times more or less than what was measured."""
    ex.expect(key, "%s for %d clients, predicted within a factor of %g" % (
        field, clients, factor), lambda: grown / factor <= predicted <= grown * factor,
              saw=lambda: "%d kB more, and %d kB predicted" % (grown, predicted), hint=hint,
              read="pthread_attr_setstacksize(3)" if key == "addresses" else "proc(5)")
