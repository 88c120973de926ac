"""04/stacks: does the prediction hold, for the addresses and the memory of idle clients?

Each client has sent half a request, and the server has read it. So its thread exists, has touched
its stack, and has got from malloc what it needs.
"""

import re

from lib.measuring import machine
from words import how_many

REASON = "addresses"

HALF = b"GET / HTTP/1.1\r\n"
FORM = (b"POST /guestbook HTTP/1.1\r\nHost: here\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 61440\r\n\r\n")
FEWEST = 100  # clients whose memory can be told from what the server needs beside
MOST = 1000
SPARE = 100  # descriptors, ours and the server's, besides those of the clients


def check(ex):
    if machine.raise_descriptor_limit() < MOST + SPARE:
        ex.skip("%d clients need more descriptors than a process may have here" % MOST)
    chance = ex.chance()
    idle = [chance.randint(5, 12), chance.randint(FEWEST, 200), chance.randint(700, MOST)]
    expect_predicted(ex, idle, 0, 0)
    for sent in [chance.randint(3, 6), chance.randint(35, 55)]:
        expect_predicted(ex, [chance.randint(FEWEST, 200)], chance.randint(2, 5), sent)


def expect_predicted(ex, sizes, arenas, sent):
    """So many clients at last, for each of the sizes; they have sent so many KiB."""
    predicted = [prediction(ex, clients, arenas, sent) for clients in sizes]
    server = ex.project("threading", "--timeout", "240",
                        env={"MALLOC_ARENA_MAX": str(arenas)} if arenas else None)
    before = look(server)
    text = FORM + b"a" * (sent * 1024 - len(FORM)) if sent else HALF
    crowd = []
    for size, (addresses, memory) in zip(sizes, predicted):
        crowd += connect(ex, server, size - len(crowd), text)
        ex.expect("idle", "%d sleeping threads with a client each" % size,
                  lambda size=size: server.threads() == size + 1 and server.unread() == 0,
                  saw=lambda: how_many(server.threads(), "thread"), within=10)
        size_now, memory_now = look(server)
        expect_near(ex, "addresses", "VmSize", size, addresses, size_now - before[0], 1.15,
                    2 if arenas else 1)
        if size >= FEWEST:
            expect_near(ex, "memory", "VmRSS", size, memory, memory_now - before[1], 2.0, 3)
    for client in crowd:
        client.close()


def connect(ex, server, number, text):
    crowd = [ex.client(server) for _ in range(number)]
    for client in crowd:
        client.say(text)
    ex.did("let %s send %d bytes, and no more" % (how_many(number, "client"), len(text)))
    return crowd


def prediction(ex, *arguments):
    """The learner's (VmSize, VmRSS), in kB."""
    run = ex.run(*arguments)
    ex.expect("prints", "two numbers for %d clients, %d arenas, %d KiB" % arguments,
              lambda: re.fullmatch(r"VmSize -?\d+\nVmRSS -?\d+\n", run.stdout) and run.status == 0,
              saw=lambda: "status %d, and %r" % (run.status, run.stdout), read="printf(3)")
    return tuple(map(int, re.findall(r"-?\d+", run.stdout)))


def look(server):
    return server.status("VmSize"), server.own_memory() // 1024


def expect_near(ex, key, field, clients, predicted, grown, factor, hint):
    """Holds if the prediction is at most `factor` times more or less than what was measured."""
    ex.expect(key, "%s for %d clients, predicted within a factor of %g" % (
        field, clients, factor), lambda: grown / factor <= predicted <= grown * factor,
              saw=lambda: "%d kB more, and %d kB predicted" % (grown, predicted), hint=hint,
              read="pthread_attr_setstacksize(3)" if key == "addresses" else "proc(5)")
