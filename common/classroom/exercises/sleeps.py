"""sleeps: does a process, a thread or a loop sleep until there is work for it? And what keeps it busy.

A single look cannot tell, because whatever sleeps may be about to wake. A thread (chapters 4 and 5) that
checks now and then whether there is work needs no signal, and hides that none comes. So it is watched for
longer than WOKEN_SECONDS, the longest that a signal may take: either it is seen to wake up, or it sleeps
for so long that its work is late. A loop (chapters 6 and 7) that naps instead of waiting naps longer than
it is watched, or is seen to wake; and then it is slow to answer, many times in a row.
"""

import os
import shutil
import time

import proc
import served
import top
from client import asking
from waiting import clock, patient
from words import how_many

WOKEN_SECONDS = 1  # for `within`
WATCHED_SECONDS = 0.5  # two ticks, or three
MOST_RUN = 0.005  # seconds of CPU time before it sleeps again: a tick needs a hundredth of that
RACE = "ThreadSanitizer: data race"
MOST_SLEEPS = 30  # a second; a tick is a sleep or two, five times a second
ASLEEP_SECONDS = 0.5
FILES = 8  # naps of ASLEEP_SECONDS would take 4 s,
AT_ONCE_SECONDS = 2  # and without them it is some milliseconds
FILE, PAGE = asking("/style.css"), asking("/guestbook")
COMPUTING = 0.02  # seconds of CPU time: more than it takes to come to a page that computes, far less than that
DEPTH = 6  # sections within sections
ENTRIES = 18  # of the guestbook: ENTRIES ** DEPTH steps are a walk, 0.2 s of computing


def expect_sleep(ex, server, expected, hint):
    """Expects that no thread wakes up for a while. The main one ticks, and does no more."""
    seconds = patient(WOKEN_SECONDS) + 0.5
    seen = []

    def sleeps():
        before = server.status("voluntary_ctxt_switches")
        woken = server.wakeups(seconds)
        seen[:] = woken, server.status("voluntary_ctxt_switches") - before
        return woken == 0 and seen[1] <= MOST_SLEEPS * seconds

    ex.expect("sleeps", "%s, for %.1f s" % (expected, seconds), sleeps,
              saw=lambda: "%s, and %d of the main thread" % (how_many(seen[0], "wake-up"), seen[1]),
              within=WOKEN_SECONDS, hint=hint, read="pthread_cond_wait(3)")


def expect_no_race(ex, server, hint):
    """Ends a server that is built with the thread sanitizer (SAN), and expects no report of it."""
    status = server.end()
    ex.expect("race", "no report of the thread sanitizer",
              lambda: RACE not in server.errors() and status != served.RACES,
              saw=lambda: report(server.errors()), hint=hint, read="pthread_mutex_lock(3)")


def report(errors):
    """Of what the sanitizer says, the functions in which it happened."""
    lines = [line.strip() for line in errors.splitlines()]
    places = [line.split(" ")[1] for line in lines if line.startswith("#0 ")]
    return "a data race in %s" % " and ".join(places[:2])


def expect_ticks(ex, key, server, expected, hint):
    """Expects that it but looks up at each tick. No busy machine makes one that sleeps look as if it did not:
    it may sleep less often then, but a loop that does not sleep has not slept once in the end."""
    seen = []

    def work():
        return server.status("voluntary_ctxt_switches"), server.ran()

    def rests():
        before, begun = work(), time.monotonic()
        time.sleep(WATCHED_SECONDS)  # a measurement needs this time
        sleeps, ran = (late - early for early, late in zip(before, work()))
        seen[:] = 1000 * ran, how_many(sleeps, "time")
        if sleeps == 0:
            return ran == 0 and server.status("State").startswith("S")
        return sleeps <= MOST_SLEEPS * (time.monotonic() - begun) and ran <= MOST_RUN * sleeps

    ex.expect(key, expected, rests, within=2, hint=hint, read="recv(2)",
              saw=lambda: "that it ran for %.0f ms within %g s, and went to sleep %s" % (
                  seen[0], WATCHED_SECONDS, seen[1]))


class Sleeps:
    """A test: has the server slept for a while? It gave its core up and has not been
    given one since. A process that waits for a core is not asleep."""

    def __init__(self, server):
        self._server = server
        self._last = None
        self._since = None

    def __call__(self):
        look = (self._server.status("voluntary_ctxt_switches"),
                self._server.status("nonvoluntary_ctxt_switches"))
        if look != self._last or not self._server.status("State").startswith("S"):
            self._since = time.monotonic()
        self._last = look
        return time.monotonic() - self._since >= patient(ASLEEP_SECONDS)


def expect_asleep(ex, key, server, expected, within=5, hint=None, read=None):
    ex.expect(key, expected, Sleeps(server), within=within, hint=hint, read=read,
              saw=lambda: "that it woke again and again, and has used %.1f s of CPU time" % (
                  server.cpu_seconds()))


def expect_no_naps(ex, server, client):
    """Expects a few files, one after the other, as soon as they are asked for. What is measured is
    sleep: neither the server nor this check waits for a core meanwhile."""
    begun = server.slept(clock)
    ex.expect("naps", "%d files, one after the other, each as soon as it is asked for" % FILES,
              lambda: all([client.get("/style.css").status == 200 for _ in range(FILES)])
              and server.slept(clock) - begun < patient(AT_ONCE_SECONDS),
              saw=lambda: "%.1f s until the last" % (server.slept(clock) - begun), hint=1)


def computing_root(folder, walks):
    """For --root: the project's files, and a guestbook page that is nothing but work: so many walks
    through sections that stand within each other. What it writes is a line."""
    root = os.path.join(folder, "computing")
    shutil.copytree(os.path.join(top.TOP, "templates"), os.path.join(root, "templates"))
    shutil.copytree(os.path.join(top.TOP, "public"), os.path.join(root, "public"),
                    ignore=shutil.ignore_patterns("book"))
    page = os.path.join(root, "templates", "guestbook", "index.html")
    with open(page, "w", encoding="ascii") as template:
        template.write(("{{#entries}}" * DEPTH + "{{/entries}}" * DEPTH) * walks + "done\n")
    return root


def computing_redis(ex):
    """The Redis that goes with it: its guestbook has ENTRIES entries."""
    redis = ex.redis()
    redis.seed(ENTRIES)
    return redis


def let_compute(ex, server, number=1):
    """So many clients whose pages keep a loop, or threads, busy by now."""
    begun = server.cpu_seconds()
    pages = ex.hold(server, number, PAGE)
    ex.wait(lambda: server.cpu_seconds() - begun > COMPUTING)
    return pages


def descriptors_named(server, name):
    """How many descriptors of a server and its children are of that kind: "[eventpoll]"."""
    return sum(each.endswith(name) for pid in [server.pid, *server.children()]
               for each in proc.descriptors(pid).values())
