"""03/herd: three ways to wait for a client. How many workers wake for one, and how many clients wait
behind one?"""

import re

from client import WHOLE
from words import how_many

REASON = "accept: woken"
STARTING = "build/exercises/03_preforking/herd"  # the learner's ways may not be the three
TEAMS = [2, 3], [6, 7, 8]  # numbers of workers, of which one each is tried: no mean is near both
CROWD = 100
BY_CHANCE = "reuseport"  # the kernel chooses a queue for each: the mean of some crowds is measured
CROWDS = 12
CHANCE = 6  # a prediction may be so far from that
HINTS = {"accept": 1, "reuseport": 2, "poll": 3}
MANUAL = {"accept": "accept(2)", "reuseport": "socket(7)", "poll": "poll(2)"}


def check(ex):
    chance = ex.chance()
    for team in TEAMS:
        of_a_team(ex, chance.choice(team))


def of_a_team(ex, workers):
    run = ex.run("predictions", workers)
    predicted = {way: (int(woken), int(stuck)) for way, woken, stuck in re.findall(
        r"^(\w+): (-?\d{1,9}) woken, (-?\d{1,9}) stuck$", run.stdout, re.MULTILINE)}
    ex.expect("prints", "two predictions for each of %s" % ", ".join(HINTS),
              lambda: set(predicted) == set(HINTS), saw=lambda: repr(run.stdout))
    for way in HINTS:
        woken, stuck = predicted[way]
        server = ex.serve("--workers", str(workers), "--timeout", "60", env={"WAY": way},
                          built=STARTING)
        compare(ex, way, "woken", "workers woken by a client", woken,
                count_woken(ex, server, workers))
        crowds = CROWDS if way == BY_CHANCE else 1
        stuck_each = [count_stuck(ex, server) for _ in range(crowds)]
        ex.did("let %s come, of %d others each" % (how_many(crowds, "crowd"), CROWD))
        compare(ex, way, "stuck", "of the %d left waiting behind it" % CROWD, stuck,
                sum(stuck_each) / crowds, CHANCE if way == BY_CHANCE else 0)
        server.end()


def compare(ex, way, key, what, predicted, measured, tolerance=0):
    """Does not print the measured number until the prediction is right. Where chance decides, the
    prediction may be somewhat beside it: otherwise the same one would be right only sometimes."""
    ex.expect("%s: %s" % (way, key), "%s: as many %s as you predict" % (way, what),
              lambda: abs(predicted - measured) <= tolerance,
              saw=lambda: how_it_differs(predicted, measured), hint=HINTS[way], read=MANUAL[way])
    ex.did("predicted %d, counted %g" % (predicted, measured))


def how_it_differs(predicted, right):
    if predicted < 0:
        return "no prediction yet"
    return "%s than your %d" % ("more" if right > predicted else "fewer", predicted)


def count_woken(ex, server, workers):
    """A client comes and stays. How many workers have gone back to sleep since?"""
    ex.expect("starts", "%d workers, asleep" % workers, lambda: len(server.children()) == workers
              and at_rest(server), within=2)
    before = naps(server)
    ex.hold(server, 1)
    ex.wait(lambda: naps(server) != before and at_rest(server))
    after = naps(server)
    return sum(after[pid] != before[pid] for pid in before)


def at_rest(server):
    """Have all woken workers gone back to sleep? A worker found asleep may be woken while the next
    one is looked at. Then it is awake at the second look, or has slept once more by then."""
    first = naps(server)
    return all_sleep(server) and all_sleep(server) and naps(server) == first


def all_sleep(server):
    return all(server.status("State", pid).startswith("S") for pid in server.children())


def naps(server):
    return server.naps(server.children())


def count_stuck(ex, server):
    """A hundred clients come while one is held. When all workers sleep, and each of the hundred has
    an answer or is in a queue, the clients in a queue wait behind the one. Those of an earlier
    crowd are still in it, though they have left."""
    before = server.waiting()
    crowd = [ex.client(server) for _ in range(CROWD)]
    for client in crowd:
        client.say(WHOLE)

    def is_settled():
        answered = sum(client.is_answered() for client in crowd)
        return at_rest(server) and answered + server.waiting() - before == CROWD

    ex.expect("settles", "an answer for each of them, or a place in a queue", is_settled,
              within=5)
    stuck = sum(not client.is_answered() for client in crowd)
    for client in crowd:
        client.reset()  # which leaves nothing in TIME_WAIT
    return stuck
