"""03/scoreboard: whether the parent knows how many workers are busy, deaths included."""

import os
import re
import signal

import proc
from client import WHOLE
from words import how_many

REASON = "counted"
WORKERS = 5
STEPS = 16
VISITORS = 400


def check(ex):
    chance = ex.chance()
    server = ex.serve("--workers", str(WORKERS), "--timeout", "60")
    expect_busy(ex, "starts", server, 0, "at the start")
    held = ex.hold(server, 3)
    expect_busy(ex, "counted", server, 3, "with three clients held", hint=1, read="mmap(2)")
    held.pop().close()
    expect_busy(ex, "less", server, 2, "when one of them has left", hint=1, read="mmap(2)")

    by_chance(ex, server, chance, held)
    ex.hold(server, WORKERS)
    expect_busy(ex, "all", server, WORKERS, "with all five workers held")
    kill(ex, server, server.children(), "all of them, while the parent was stopped")
    expect_busy(ex, "all die", server, 0, "when all workers have died", hint=2)
    expect_workers(ex, server)
    crowd(ex, server)
    expect_busy(ex, "after a crowd", server, 0, "when %d visitors have come and gone" % VISITORS,
                hint=2, read="mmap(2)")


def by_chance(ex, server, chance, held):
    """Clients come and go, and workers are killed. In the end all have gone."""
    for step in ["busy", "idle", *chance.choices(["come", "come", "go", "busy", "idle"], k=STEPS)]:
        busy = len(held)
        if step == "idle" and busy < WORKERS:
            kill(ex, server, idle_workers(server)[:1], "an idle worker")
        elif step == "come" and busy < WORKERS or not busy:
            held += ex.hold(server, 1)
        elif step == "go":
            held.pop(chance.randrange(busy)).close()
        else:
            kill(ex, server, chance.sample(busy_workers(server), 1), "a busy worker")
            held[:] = [client for client in held if not client.is_closed()]
        expect_workers(ex, server)
        expect_busy(ex, "by chance", server, len(held), "after that", hint=2 if step == "busy" else 3)
    for client in held:
        client.close()
    expect_busy(ex, "by chance", server, 0, "when all have left", hint=3)


def busy_workers(server):
    """Those that have a client."""
    clients = {"socket:[%d]" % each.inode for each in proc.connections(server.port)
               if each.state == proc.ESTABLISHED and each.inode}
    return [pid for pid in server.children() if clients & {*proc.descriptors(pid).values()}]


def idle_workers(server):
    busy = busy_workers(server)
    return [pid for pid in server.children() if pid not in busy]


def expect_busy(ex, key, server, number, when, hint=None, read="waitpid(2)"):
    ex.expect(key, "busy: %d, %s" % (number, when), lambda: last_said(server) == number,
              within=2, hint=hint, read=read,
              saw=lambda: "no number" if last_said(server) is None else "busy: %d" % last_said(server))


def expect_workers(ex, server):
    """Says so only if it is not so."""
    def whole():
        return len(server.children()) == WORKERS and not server.zombies()

    if not ex.wait(whole, 2):
        ex.expect("replaced", "five workers again", whole, read="waitpid(2)",
                  saw=lambda: how_many(len(server.children()), "worker"))


def last_said(server):
    said = re.findall(r"^busy: (-?\d{1,9})$", server.printed(), re.MULTILINE)
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
    """As many at a time as there are workers, so that all of them count at once."""
    for _ in range(VISITORS // WORKERS):
        clients = [ex.client(server) for _ in range(WORKERS)]
        for client in clients:
            client.say(WHOLE)
        for client in clients:
            client.hear()
            client.reset()  # which leaves nothing in TIME_WAIT
    ex.did("made %d visits, %d at a time" % (VISITORS, WORKERS))
