"""03/scoreboard: whether the parent knows how many workers are busy, deaths included."""

import os
import re
import signal

from words import how_many

REASON = "counted"
WORKERS = 4
VISITORS = 400
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


def check(ex):
    server = ex.serve("--workers", str(WORKERS), "--timeout", "60")
    expect_busy(ex, "starts", server, 0, "at the start")
    held = ex.hold(server, 3)
    expect_busy(ex, "counted", server, 3, "with three clients held", hint=1, read="mmap(2)")
    held.pop().close()
    expect_busy(ex, "less", server, 2, "when one of them has left", hint=1, read="mmap(2)")

    held += ex.hold(server, 2)
    expect_busy(ex, "all", server, 4, "with all four workers held")
    kill(ex, server, server.children()[:1], "a busy worker")
    expect_busy(ex, "a busy one dies", server, 3, "when one of the busy workers has died", hint=2)
    held += ex.hold(server, 1)
    expect_busy(ex, "its successor", server, 4, "with a client for its successor", hint=3)
    kill(ex, server, server.children(), "all four, while the parent was stopped")
    expect_busy(ex, "all die", server, 0, "when all workers have died", hint=2)

    kill(ex, server, server.children()[:1], "an idle worker")
    expect_workers(ex, server)
    held = ex.hold(server, 1)
    expect_busy(ex, "an idle one dies", server, 1, "with one client held after that", hint=3)
    held.pop().close()
    crowd(ex, server)
    expect_busy(ex, "after a crowd", server, 0, "when %d visitors have come and gone" % VISITORS, hint=2,
                read="mmap(2)")


def expect_busy(ex, key, server, number, when, hint=None, read="waitpid(2)"):
    ex.expect(key, "busy: %d, %s" % (number, when), lambda: last_said(server) == number,
              saw=lambda: "busy: %s" % last_said(server), within=2, hint=hint, read=read)


def expect_workers(ex, server):
    ex.expect("replaced", "four workers again", lambda: len(server.children()) == WORKERS,
              saw=lambda: how_many(len(server.children()), "worker"), within=2, read="waitpid(2)")


def last_said(server):
    said = re.findall(r"^busy: (-?\d+)$", server.printed(), re.MULTILINE)
    return int(said[-1]) if said else None


def kill(ex, server, workers, who):
    """All of them at once, before the parent can look."""
    os.kill(server.pid, signal.SIGSTOP)
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    ex.wait(lambda: len(server.zombies()) == len(workers))
    os.kill(server.pid, signal.SIGCONT)
    ex.did("killed %s" % who)


def crowd(ex, server):
    """Four at a time, so that all workers count at once."""
    for _ in range(VISITORS // WORKERS):
        clients = [ex.client(server) for _ in range(WORKERS)]
        for client in clients:
            client.say(REQUEST)
        for client in clients:
            client.hear()
            client.reset()  # which leaves nothing in TIME_WAIT
    ex.did("made %d visits, four at a time" % VISITORS)
