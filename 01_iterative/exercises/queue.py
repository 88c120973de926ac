"""01/queue: compares predictions of Recv-Q with what the iterative server's socket shows."""

import contextlib
import resource
import signal
import socket

REASON = "full"

MOST_BACKLOG = 65535  # --backlog takes no more
SPARE_DESCRIPTORS = 64


def check(ex):
    with open("/proc/sys/net/core/somaxconn", encoding="ascii") as file:
        somaxconn = int(file.read())
    look(ex, "room", "a queue with room", 10, somaxconn, 3, 1)
    look(ex, "full", "a queue that is full", 1, somaxconn, 4, 2)
    look(ex, "full", "a queue that is just full", 6, somaxconn, 7, 2)
    look(ex, "full", "a queue that is nearly full", 6, somaxconn, 6, 2)
    if somaxconn < MOST_BACKLOG and somaxconn + 2 <= room_for_clients():
        look(ex, "capped", "a backlog above somaxconn", MOST_BACKLOG, somaxconn,
             somaxconn + 2, 3)
    else:
        ex.did("did not try a backlog above somaxconn (%d): it takes too many clients" % somaxconn)


def look(ex, key, expected, backlog, somaxconn, held, hint):
    """Asks for a prediction, and then measures."""
    run = ex.run(backlog, somaxconn, held)
    ex.expect("prints", "a prediction: a number, and status 0",
              lambda: run.status == 0 and run.stdout.strip().isdecimal(),
              saw=lambda: "status %d, and %r" % (run.status, run.stdout), hint=1)
    server = ex.project("iterative", "--backlog", str(backlog), "--timeout", "60")
    ex.hold(server, 1)
    ex.wait(lambda: server.waiting() == 0 and server.unread() == 0)  # accepted
    with contextlib.ExitStack() as clients:
        for _ in range(held):
            begin_to_connect(clients.enter_context(socket.socket()), server)
        ex.did("let %d clients connect behind it" % held)
        most = min(held, min(backlog, somaxconn) + 1)
        if not ex.wait(lambda: server.waiting() >= most):
            ex.skip("this kernel keeps its queue in another way: %d in it" % server.waiting())
        measured = server.waiting()
    server.end(signal.SIGKILL)  # it would wait for the client that it serves
    ex.expect(key, "%s: %d in it, as predicted" % (expected, measured),
              lambda: int(run.stdout) == measured,
              saw=lambda: "your prediction: %s" % run.stdout.strip(), hint=hint,
              read="listen(2)")


def begin_to_connect(client, server):
    """Does not wait for the handshake, because a full queue completes none."""
    client.setblocking(False)
    client.connect_ex((server.host, server.port))


def room_for_clients():
    """How many descriptors we may open, when the limit is as high as it can be."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard - SPARE_DESCRIPTORS
