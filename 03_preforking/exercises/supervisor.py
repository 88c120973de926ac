"""03/supervisor: are workers that die replaced, and how fast?"""

import contextlib
import os
import re
import signal
import time

import proc
from words import how_many

REASON = "replaced"
FEWEST, MOST = 12, 20  # workers
ROUNDS = 100  # of looking at them, so that a busy machine makes no storm look like a calm
GROWN_SECONDS = 2.5  # those that have lived so long are replaced at once
AT_ONCE_SECONDS = 0.5  # for FEWEST of them; nothing would be right
TOGETHER_SECONDS = 1
WATCH_SECONDS, MOST_FORKS = 4, 10  # a worker
RECOVERS_SECONDS = 10


def check(ex):
    wanted = ex.chance().randrange(FEWEST, MOST + 1)
    plugins = [os.path.join(ex.folder, "plugin.%d" % place) for place in range(wanted)]
    put(plugins)
    server = ex.serve("--workers", str(wanted), env={"PLUGIN": plugins[0][:-2]})
    team = Team(ex, server, wanted)
    team.expect("starts", "%d workers" % wanted, hint=1)
    ex.expect("says its place", "a line `worker PID begins in place PLACE` of each, as in the starting file",
              lambda: set(team.places()) == set(range(wanted)),
              saw=lambda: "such lines for %s" % how_many(len(team.places()), "place"), within=5)

    victim = server.children()[0]
    os.kill(victim, signal.SIGKILL)
    ex.did("killed worker %d" % victim)
    team.expect("replaced", "%d workers again" % wanted, besides=[victim], hint=1)
    grown_ones(ex, server, team, "at once")
    victims = server.children()
    with server.frozen():  # one pending SIGCHLD for all of them
        kill(victims)
        ex.wait(lambda: len(server.zombies()) >= wanted)
        begun = server.slept(boottime)
    ex.did("killed all of them while the parent was stopped")
    team.expect("all replaced", "%d new ones" % wanted, besides=victims, hint=1)
    expect_sleep(ex, "all at once", "all replaced together", slept_since(server, begun),
                 TOGETHER_SECONDS, 1)

    one_fails(ex, server, team, plugins)
    ex.did("killed all of them, and each new one at once")
    storm(ex, server, wanted)
    recovers(ex, server, team, "%d workers once more" % wanted)
    ex.expect("serves", "a page from one of them", ex.client(server).get)

    workers = server.children()
    ex.expect_end("ends", server)
    ex.expect("all end", "no worker that outlives the parent",
              lambda: not any(state(pid) not in ("", "Z") for pid in workers), within=5, read="prctl(2)")


def put(plugins):
    for plugin in plugins:
        open(plugin, "w").close()


class Team:
    """The workers of a server: so many, none of them one of the killed, and no zombie."""

    def __init__(self, ex, server, wanted):
        self._ex = ex
        self._server = server
        self.wanted = wanted

    def is_whole(self, besides=()):
        children = self._server.children()
        return (len(children) == self.wanted and not self._server.zombies()
                and not set(besides) & set(children))

    def places(self):
        """{place: the worker that began there last}, as they print it."""
        return {int(place): int(pid) for pid, place in re.findall(
            r"worker (\d+) begins in place (\d+)\n", self._server.printed())}

    def expect(self, key, expected, besides=(), within=5, hint=None):
        self._ex.expect(key, expected, lambda: self.is_whole(besides),
                        saw=lambda: "%s and %s" % (
                            how_many(len(self._server.children()), "worker"),
                            how_many(len(self._server.zombies()), "zombie")),
                        within=within, hint=hint, read="waitpid(2)")


def boottime():
    """By this clock the kernel knows when a process began."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def slept_since(server, begun, worker=None):
    """How long the parent has slept from then to its last fork, or to that of this worker."""
    stats = proc.everybody([worker] if worker else server.children())
    last = max((stat.born for stat in stats), default=0)
    return max(0, last / proc.TICKS_A_SECOND - boottime() + server.slept(boottime) - begun)


def expect_sleep(ex, key, expected, slept, most, hint):
    ex.expect(key, expected, lambda: slept < most, hint=hint, read="sigtimedwait(2)",
              saw=lambda: "a parent that slept for %.1f s while some were missing" % slept)


def grown_ones(ex, server, team, key, broken=None):
    """Time is the subject: a worker that has lived for a while has not failed at its start."""
    time.sleep(GROWN_SECONDS)
    slept = 0
    for place, victim in list(team.places().items())[:FEWEST]:
        if place == broken:
            continue
        kill([victim])
        ex.wait(lambda gone=victim: sleeps_beside(server, gone) or not state(gone))
        begun = server.slept(boottime)
        ex.wait(lambda place=place, gone=victim: team.places()[place] != gone)
        slept += slept_since(server, begun, team.places()[place])
    ex.did("killed %d that were older than two seconds, one after the other" % (FEWEST - (broken is not None)))
    expect_sleep(ex, key, "each replaced at once", slept, AT_ONCE_SECONDS, 3)


def one_fails(ex, server, team, plugins):
    """In one place workers die at their start, again and again. The others must not notice."""
    os.remove(plugins[0])
    kill([team.places()[0]])
    ex.did("took the plug-in of place 0 away, and killed its worker")
    grown_ones(ex, server, team, "places apart", broken=0)
    forks = lines(server)
    time.sleep(1)
    ex.expect("no storm", "at most five forks a second for that place", lambda: lines(server) - forks <= 5,
              saw=lambda: "%d" % (lines(server) - forks), hint=2, read="fork(2)")
    put(plugins[:1])
    recovers(ex, server, team, "all %d again, when it is back" % team.wanted)


def sleeps_beside(server, victim):
    """Does the parent sleep although this one is a zombie? Who is told of a death is awake, even if
    it waits for a core."""
    return state(victim) == "Z" and state(server.pid) == "S" and state(victim) == "Z"


def state(pid):
    """As ps(1) shows it; "" if there is no such process."""
    return next((stat.state for stat in proc.everybody([pid])), "")


def storm(ex, server, wanted):
    """For some seconds no worker lives for long. The forks are counted by what workers print, and by the
    processes that are seen, because a worker may print nothing. Some are missed, but not in a storm."""
    begun, rounds = time.monotonic(), 0
    printed, old, seen = lines(server), server.children(), set()
    kill(old)
    while time.monotonic() < begun + WATCH_SECONDS or rounds < ROUNDS:
        time.sleep(0.01)
        rounds += 1
        children = [stat.pid for stat in server.child_stats()]
        seen.update(children)
        kill(children)
    seconds = time.monotonic() - begun
    most = int(wanted * (MOST_FORKS + seconds - WATCH_SECONDS))
    forks = max(lines(server) - printed, len(seen - set(old)))
    ex.expect("no storm", "at most %d forks in %.0f seconds" % (most, seconds),
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
