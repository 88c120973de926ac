"""01/queue: compares predictions of Recv-Q with what the iterative server's socket shows."""

import contextlib
import re
import resource
import signal
import socket

REASON = "full"

MOST_BACKLOG = 65535  # --backlog takes no more
SPARE_DESCRIPTORS = 64
LOOKS = 8  # in a row, at a queue that no longer changes


def check(ex):
    chance = ex.chance()
    with open("/proc/sys/net/core/somaxconn", encoding="ascii") as file:
        somaxconn = int(file.read())
    small = min(somaxconn, 30)
    backlog = chance.randrange(small // 2, small)
    look(ex, "room", "a queue with room", backlog, somaxconn, chance.randrange(2, small // 3), 1)
    for more in chance.sample(range(3, 9), 2):
        backlog = chance.randrange(1, small)
        look(ex, "full", "a queue that is full", backlog, somaxconn, backlog + more, 2)
    for more in chance.sample(range(-1, 3), 4):  # just full, or nearly
        backlog = chance.randrange(2, small)
        look(ex, "full", "a queue at its limit", backlog, somaxconn, backlog + more, 2)
    capped(ex, somaxconn, chance)


def capped(ex, somaxconn, chance):
    held = somaxconn + chance.randrange(2, 20)
    if somaxconn < MOST_BACKLOG and held <= room_for_clients():
        look(ex, "capped", "a backlog above somaxconn",
             chance.randrange(somaxconn + 1, MOST_BACKLOG + 1), somaxconn, held, 3)
    else:
        ex.did("did not try a backlog above somaxconn (%d): it takes too many clients" % somaxconn)


def look(ex, key, expected, backlog, somaxconn, held, hint):
    """Asks for two predictions, and then measures. The second is about another machine, whose somaxconn
    is this backlog, and the other way round: its queue is as long. So what this machine does is no answer."""
    predicted = prediction(ex, backlog, somaxconn, held)
    elsewhere = prediction(ex, somaxconn, backlog, held)
    measured = measure(ex, backlog, held)
    compare(ex, key, expected, predicted, measured, hint)
    compare(ex, "elsewhere", "the same where the two limits are exchanged", elsewhere, measured, 3)


def prediction(ex, *numbers):
    run = ex.run(*numbers)
    ex.expect("prints", "a prediction: a number, and status 0",
              lambda: run.status == 0 and re.fullmatch("[0-9]{1,9}", run.stdout.strip()),
              saw=lambda: "status %d, and %r" % (run.status, run.stdout), hint=1)
    return int(run.stdout)


def compare(ex, key, expected, predicted, measured, hint):
    """Does not print the measured number before the prediction is right."""
    ex.expect(key, "%s: as many in it as you predict" % expected, lambda: predicted == measured,
              saw=lambda: "%s than your %d" % ("more" if measured > predicted else "fewer",
                                               predicted), hint=hint, read="listen(2)")


def measure(ex, backlog, held):
    """Recv-Q, with so many clients behind one that is being served."""
    server = ex.project("iterative", "--backlog", str(backlog), "--timeout", "60")
    ex.hold(server, 1)
    ex.wait(lambda: server.waiting() == 0 and server.unread() == 0)  # accepted
    with contextlib.ExitStack() as clients:
        for _ in range(held):
            begin_to_connect(clients.enter_context(socket.socket()), server)
        ex.did("let %d clients connect behind it" % held)
        last, looks = None, 0

        def is_settled():
            nonlocal last, looks
            waiting = server.waiting()
            looks = looks + 1 if waiting == last and waiting > 0 else 0
            last = waiting
            return looks >= LOOKS

        ex.wait(is_settled, 10)
        if not last:
            ex.skip("this kernel shows no accept queue")
    server.end(signal.SIGKILL)  # it would wait for the client that it serves
    return last


def begin_to_connect(client, server):
    """Does not wait for the handshake, because a full queue completes none."""
    client.setblocking(False)
    client.connect_ex((server.host, server.port))


def room_for_clients():
    """How many descriptors we may open, when the limit is as high as it can be."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard - SPARE_DESCRIPTORS
