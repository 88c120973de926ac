"""04/pool: does each visitor get the number that was counted for it, over eight connections?

The Redis of this check counts, and holds back its replies until the check says otherwise: all of
them, those on one connection, or all but one (redises.py). Threads begin late, and
pthread_cond_wait(3) returns for nothing at first (rare.c).
"""

import re

from client import WHOLE
from sleeps import WOKEN_SECONDS, expect_no_race, expect_sleep
from words import how_many

REASON = "own"
SAN = "thread"

VISITORS = 50
CONNECTIONS = 8
MORE = 3 * CONNECTIONS


def check(ex):
    redis = ex.counting_redis()
    server = ex.serve("--timeout", "500", redis=redis, env=ex.rare("thread,early"))  # a fifth of it is Redis' time
    asking = all_at_once(ex, server, redis)
    ex.expect("together", "%d visitors whose threads ask Redis at the same time" % CONNECTIONS,
              lambda: asking == CONNECTIONS, saw=lambda: asking, hint=2,
              read="pthread_cond_wait(3)")
    one_is_slow(ex, server, redis)
    one_comes_back(ex, server, redis)
    ex.expect("kept", "%d connections, opened once, that stay open for later visitors" %
              CONNECTIONS, lambda: (redis.used, redis.connections()) == (CONNECTIONS, CONNECTIONS),
              saw=lambda: "%d used so far, %d open" % (redis.used, redis.connections()), within=1,
              hint=3, read="pthread_cond_wait(3)")
    expect_no_race(ex, server, 3)


def all_at_once(ex, server, redis):
    """All visitors come, and Redis replies when as many have asked as can. Returns how many."""
    redis.hold()
    before = len(redis.told)
    with server.frozen():  # it may end as soon as two of them ask
        visitors = ex.hold(server, VISITORS, WHOLE)
    ex.wait(lambda: not server.alive() or all_wait(server, VISITORS))
    ex.wait(lambda: not server.alive() or redis.asking() >= CONNECTIONS, 1)
    asking = redis.asking()
    with server.frozen():  # so that it finds these replies together
        redis.release()
    ex.did("let Redis reply when %d of them had asked" % asking)
    expect_numbers(ex, "own", visitors, redis, before, 1)
    return asking


def one_is_slow(ex, server, redis):
    """All connections are taken. Then all but one reply, and nobody else has to wait for that one."""
    redis.hold()
    before = len(redis.told)
    visitors = ex.hold(server, MORE, WHOLE)
    ex.wait(lambda: all_wait(server, MORE))
    redis.hold_one()
    ex.did("held back the replies on one connection alone")
    expect_numbers(ex, "any", visitors, redis, before, 2, but=1)
    redis.release()
    expect_numbers(ex, "slow", visitors, redis, before, 2)


def one_comes_back(ex, server, redis):
    """All connections are taken, and as many visitors wait. Then a single one is given back."""
    ex.wait(lambda: server.threads() == 1)
    redis.hold()
    before = len(redis.told)
    visitors = ex.hold(server, 2 * CONNECTIONS, WHOLE)
    ex.wait(lambda: all_wait(server, len(visitors)) and redis.asking() == CONNECTIONS)
    expect_sleep(ex, server, "threads that sleep until a connection is given back", 2)
    asked = redis.asked
    redis.reply_to_one()
    ex.did("let Redis reply to one of them")
    ex.expect("woken", "a question by one that waited, as soon as a connection is given back",
              lambda: redis.asked == asked + 1,
              saw=lambda: how_many(redis.asked - asked, "question"), within=WOKEN_SECONDS, hint=3,
              read="pthread_cond_signal(3)")
    redis.release()
    expect_numbers(ex, "rest", visitors, redis, before, 3)


def all_wait(server, visitors):
    """Every visitor has a thread that has read the request and sleeps."""
    return server.threads() > visitors and server.unread() == 0 and server.asleep()


def expect_numbers(ex, key, visitors, redis, before, hint, but=0):
    """Expects that all visitors, but so many, have read the numbers told since then, each one."""
    def holds():
        read = sorted(numbers(visitors))
        return len(read) == len(visitors) - but and read == redis.told[before:]

    ex.expect(key, "a page for each of %s, with a number that Redis counted for it" %
              how_many(len(visitors) - but, "visitor"), holds, saw=lambda: "%s, and on them %s of %d" % (
                  how_many(len(numbers(visitors)), "page"),
                  how_many(len(set(numbers(visitors)) & set(redis.told[before:])), "number"),
                  len(redis.told) - before), within=2, hint=hint, read="pthread_mutex_lock(3)")


def numbers(visitors):
    """The numbers on the pages that have come."""
    bodies = [visitor.first().body for visitor in visitors if visitor.status() == 200]
    found = [re.fullmatch(rb"You are visitor (\d{1,15})\.\n", body) for body in bodies]
    return [int(number.group(1)) for number in found if number]
