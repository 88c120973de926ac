"""03/supervisor: are workers that die replaced, and how fast?"""

import os
import signal

from words import how_many

REASON = "replaced"
WORKERS = 4
MOST_FORKS = 40
WATCH_SECONDS = 1


def check(ex):
    plugin = os.path.join(ex.folder, "plugin")
    open(plugin, "w").close()
    server = ex.serve("--workers", str(WORKERS), env={"PLUGIN": plugin})
    expect_workers(ex, "starts", server, "four workers", hint=1)

    victim = server.children()[0]
    os.kill(victim, signal.SIGKILL)
    ex.did("killed worker %d" % victim)
    expect_workers(ex, "replaced", server, "four workers again within a second",
                   besides=[victim], hint=1)

    victims = server.children()
    kill_together(ex, server, victims)
    ex.did("killed all four while the parent was stopped")
    expect_workers(ex, "all replaced", server, "four new ones", besides=victims, hint=1)

    os.remove(plugin)
    before = forks(server)
    for worker in server.children():
        os.kill(worker, signal.SIGKILL)
    ex.did("took the plug-in away, and killed all four")
    ex.expect("no storm", "at most %d forks in two seconds" % MOST_FORKS,
              lambda: not ex.wait(lambda: forks(server) - before > MOST_FORKS, WATCH_SECONDS),
              saw=lambda: "more", hint=3, read="fork(2)")
    open(plugin, "w").close()
    ex.did("put the plug-in back")
    expect_workers(ex, "recovers", server, "four workers again", within=5, hint=3)
    ex.expect("serves", "a page from one of them", ex.client(server).get)

    workers = server.children()
    ex.expect("ends", "status 0 after SIGTERM", lambda: server.end() == 0,
              saw=lambda: "status %d" % server.end())
    ex.expect("all end", "no worker that outlives the parent",
              lambda: not any(lives(server, pid) for pid in workers), within=2, read="prctl(2)")


def expect_workers(ex, key, server, expected, besides=(), within=1, hint=None):
    """Four workers, none of them one of the killed, and no zombie."""
    ex.expect(key, expected,
              lambda: (len(server.children()) == WORKERS and not server.zombies()
                       and not set(besides) & set(server.children())),
              saw=lambda: "%s and %s" % (how_many(len(server.children()), "worker"),
                                         how_many(len(server.zombies()), "zombie")),
              within=within, hint=hint, read="waitpid(2)")


def kill_together(ex, server, workers):
    """One pending SIGCHLD for all of them."""
    os.kill(server.pid, signal.SIGSTOP)
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    ex.wait(lambda: len(server.zombies()) >= len(workers))
    os.kill(server.pid, signal.SIGCONT)


def forks(server):
    """How many workers have begun so far."""
    return server.printed().count("begins")


def lives(server, pid):
    try:
        return not server.status("State", pid).startswith("Z")
    except ProcessLookupError:
        return False
