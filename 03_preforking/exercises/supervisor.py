"""03/supervisor: are workers that die replaced, and how fast?"""

import contextlib
import os
import signal
import time

from lib.measuring.meter import TICKS_A_SECOND, read
from outcome import PATIENCE
from words import how_many

REASON = "replaced"
FEWEST, MOST = 12, 20  # workers
GROWN_SECONDS = 2.5  # those that have lived so long are replaced at once
AT_ONCE, AT_ONCE_SECONDS = 10, 0.5  # in all; a tenth of that would be right
TOGETHER_SECONDS = 1
WATCH_SECONDS, MOST_FORKS = 4, 10  # a worker


def check(ex):
    wanted = ex.chance().randrange(FEWEST, MOST + 1)
    plugin = os.path.join(ex.folder, "plugin")
    open(plugin, "w").close()
    server = ex.serve("--workers", str(wanted), env={"PLUGIN": plugin})
    team = Team(ex, server, wanted)
    team.expect("starts", "%d workers" % wanted, hint=1)

    victim = server.children()[0]
    os.kill(victim, signal.SIGKILL)
    ex.did("killed worker %d" % victim)
    team.expect("replaced", "%d workers again" % wanted, besides=[victim], hint=1)
    grown_ones(ex, server, team)
    victims = server.children()
    sleep = Sleep(ex, server, victims)
    ex.did("killed all of them while the parent was stopped")
    team.expect("all replaced", "%d new ones" % wanted, besides=victims, hint=1)
    expect_sleep(ex, "all at once", "all replaced together", sleep.seconds(), TOGETHER_SECONDS, 1)

    os.remove(plugin)
    ex.did("took the plug-in away, and killed all of them")
    storm(ex, server, wanted, kill_newborn=False)
    open(plugin, "w").close()
    ex.did("put the plug-in back")
    team.expect("recovers", "%d workers again" % wanted, within=10, hint=3)
    ex.did("killed all of them, and each new one at once")
    storm(ex, server, wanted, kill_newborn=True)
    team.expect("recovers", "%d workers once more" % wanted, within=10, hint=3)
    ex.expect("serves", "a page from one of them", ex.client(server).get)

    workers = server.children()
    ex.expect("ends", "status 0 after SIGTERM", lambda: server.end() == 0,
              saw=lambda: "status %d" % server.end())
    ex.expect("all end", "no worker that outlives the parent",
              lambda: not any(lives(server, pid) for pid in workers), within=5, read="prctl(2)")


class Team:
    """The workers of a server: so many, none of them one of the killed, and no zombie."""

    def __init__(self, ex, server, wanted):
        self._ex = ex
        self._server = server
        self._wanted = wanted

    def is_whole(self, besides=()):
        children = self._server.children()
        return (len(children) == self._wanted and not self._server.zombies()
                and not set(besides) & set(children))

    def expect(self, key, expected, besides=(), within=5, hint=None):
        self._ex.expect(key, expected, lambda: self.is_whole(besides),
                        saw=lambda: "%s and %s" % (
                            how_many(len(self._server.children()), "worker"),
                            how_many(len(self._server.zombies()), "zombie")),
                        within=within, hint=hint, read="waitpid(2)")


class Sleep:
    """How long the parent slept from when all of these had died to the last fork. The kernel knows
    when a process began, and how long the parent was ready to run and had no core."""

    def __init__(self, ex, server, victims):
        self._server = server
        os.kill(server.pid, signal.SIGSTOP)  # one pending SIGCHLD for all of them
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        ex.wait(lambda: len(server.zombies()) >= len(victims))
        self._awake = server.awake()
        self._begun = time.clock_gettime(time.CLOCK_BOOTTIME)
        os.kill(server.pid, signal.SIGCONT)

    def seconds(self):
        last = max(born(pid) for pid in self._server.children())
        return last - self._begun - (self._server.awake() - self._awake)


def expect_sleep(ex, key, expected, slept, most, hint):
    ex.expect(key, expected, lambda: slept < most * PATIENCE / 2, hint=hint, read="sigtimedwait(2)",
              saw=lambda: "a parent that slept for %.1f s while some were missing" % slept)


def grown_ones(ex, server, team):
    """Time is the subject: a worker that has lived for a while has not failed at its start."""
    time.sleep(GROWN_SECONDS)
    slept = 0
    for victim in server.children()[:AT_ONCE]:
        sleep = Sleep(ex, server, [victim])
        ex.wait(lambda gone=victim: team.is_whole([gone]))
        slept += max(0, sleep.seconds())
    ex.did("killed %d that were older than two seconds, one after the other" % AT_ONCE)
    expect_sleep(ex, "at once", "each replaced at once", slept, AT_ONCE_SECONDS, 3)


def storm(ex, server, wanted, kill_newborn):
    """For some seconds no worker lives for long."""
    before, most, over = forks(server), MOST_FORKS * wanted, time.monotonic() + WATCH_SECONDS
    kill(server)
    while time.monotonic() < over:
        time.sleep(0.01)
        if kill_newborn:
            kill(server)
    ex.expect("no storm", "at most %d forks in %d seconds" % (most, WATCH_SECONDS),
              lambda: forks(server) - before <= most,
              saw=lambda: "%d" % (forks(server) - before), hint=3, read="fork(2)")


def kill(server):
    for worker in server.children():
        with contextlib.suppress(ProcessLookupError):  # it has died by itself
            os.kill(worker, signal.SIGKILL)


def born(pid):
    """When a process began, by CLOCK_BOOTTIME."""
    return int(read("/proc/%d/stat" % pid).rpartition(") ")[2].split()[19]) / TICKS_A_SECOND


def forks(server):
    """How many workers have begun so far."""
    return server.printed().count("begins")


def lives(server, pid):
    try:
        return not server.status("State", pid).startswith("Z")
    except ProcessLookupError:
        return False
