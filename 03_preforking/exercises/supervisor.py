"""03/supervisor: are workers that die replaced, and how fast?"""

import contextlib
import os
import signal
import time

from lib.measuring.meter import TICKS_A_SECOND, read
from words import how_many

REASON = "replaced"
FEWEST, MOST = 12, 20  # workers
GROWN_SECONDS = 2.5  # those that have lived so long are replaced at once
AT_ONCE_SECONDS = 0.5  # for FEWEST of them; nothing would be right
TOGETHER_SECONDS = 1
WATCH_SECONDS, MOST_FORKS = 4, 10  # a worker
RECOVERS_SECONDS = 10


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
    with server.frozen():  # one pending SIGCHLD for all of them
        kill(victims)
        ex.wait(lambda: len(server.zombies()) >= wanted)
        begun = server.slept(boottime)
    ex.did("killed all of them while the parent was stopped")
    team.expect("all replaced", "%d new ones" % wanted, besides=victims, hint=1)
    expect_sleep(ex, "all at once", "all replaced together", slept_since(server, begun),
                 TOGETHER_SECONDS, 1)

    os.remove(plugin)
    ex.did("took the plug-in away, and killed all of them")
    storm(ex, server, wanted, kill_newborn=False)
    open(plugin, "w").close()
    ex.did("put the plug-in back")
    recovers(ex, server, team, "%d workers again" % wanted)
    ex.did("killed all of them, and each new one at once")
    storm(ex, server, wanted, kill_newborn=True)
    recovers(ex, server, team, "%d workers once more" % wanted)
    ex.expect("serves", "a page from one of them", ex.client(server).get)

    workers = server.children()
    ex.expect_end("ends", server)
    ex.expect("all end", "no worker that outlives the parent",
              lambda: not any(state(pid) not in ("", "Z") for pid in workers), within=5, read="prctl(2)")


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


def boottime():
    """By this clock the kernel knows when a process began."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def slept_since(server, begun):
    """How long the parent has slept from then to its last fork."""
    texts = filter(None, (read("/proc/%d/stat" % pid) for pid in server.children()))
    last = max((int(text.rpartition(") ")[2].split()[19]) for text in texts), default=0)
    return max(0, last / TICKS_A_SECOND - boottime() + server.slept(boottime) - begun)


def expect_sleep(ex, key, expected, slept, most, hint):
    ex.expect(key, expected, lambda: slept < most, hint=hint, read="sigtimedwait(2)",
              saw=lambda: "a parent that slept for %.1f s while some were missing" % slept)


def grown_ones(ex, server, team):
    """Time is the subject: a worker that has lived for a while has not failed at its start."""
    time.sleep(GROWN_SECONDS)
    slept = 0
    for victim in server.children()[:FEWEST]:
        kill([victim])
        ex.wait(lambda gone=victim: sleeps_beside(server, gone) or not state(gone))
        begun = server.slept(boottime)
        ex.wait(lambda gone=victim: team.is_whole([gone]))
        slept += slept_since(server, begun)
    ex.did("killed %d that were older than two seconds, one after the other" % FEWEST)
    expect_sleep(ex, "at once", "each replaced at once", slept, AT_ONCE_SECONDS, 3)


def sleeps_beside(server, victim):
    """Does the parent sleep although this one is a zombie? Who is told of a death is awake, even if
    it waits for a core."""
    return state(victim) == "Z" and state(server.pid) == "S" and state(victim) == "Z"


def state(pid):
    """As ps(1) shows it; "" if there is no such process."""
    return read("/proc/%d/stat" % pid).rpartition(") ")[2][:1]


def storm(ex, server, wanted, kill_newborn):
    """For some seconds no worker lives for long. The forks are counted by what workers print, and by the
    processes that are seen, because a worker may print nothing. Some are missed, but not in a storm."""
    most, over = MOST_FORKS * wanted, time.monotonic() + WATCH_SECONDS
    printed, old, seen = lines(server), server.children(), set()
    kill(old)
    while time.monotonic() < over:
        time.sleep(0.01)
        children = [stat.pid for stat in server.child_stats()]
        seen.update(children)
        if kill_newborn:
            kill(children)
    forks = max(lines(server) - printed, len(seen - set(old)))
    ex.expect("no storm", "at most %d forks in %d seconds" % (most, WATCH_SECONDS),
              lambda: forks <= most, saw=lambda: "%d" % forks, hint=3, read="fork(2)")


def recovers(ex, server, team, expected):
    """A parent may sleep before it forks again, and not for too long."""
    begun = server.slept()
    ex.wait(lambda: team.is_whole() or server.slept() - begun > RECOVERS_SECONDS, 60)
    team.expect("recovers", expected, within=0, hint=3)


def lines(server):
    return server.printed().count("begins")


def kill(workers):
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):  # it has died by itself
            os.kill(worker, signal.SIGKILL)
