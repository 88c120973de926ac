"""04/pool: does each visitor get the number that was counted for it, over eight connections?

Redis holds back its replies until all visitors have asked. Then it sends them all while the server
is stopped, so the server finds them together.
"""

import re

from words import how_many

REASON = "own"

WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
VISITORS = 50
CONNECTIONS = 8


def check(ex):
    redis = ex.redis()
    redis.hold()
    server = ex.serve(redis=redis)
    with server.frozen():  # it may end as soon as two of them ask
        visitors = ex.hold(server, VISITORS, WHOLE)
    ex.wait(lambda: not server.alive() or all_wait(server))
    ex.wait(lambda: not server.alive() or redis.held() >= CONNECTIONS, 1)
    asking = redis.held()

    with server.frozen():
        redis.release()
        ex.wait(lambda: redis.counts().incr == VISITORS or redis.connections() > 1, 1)
        ex.wait(lambda: redis.held() == 0, 1)
    ex.did("let Redis reply when %d of them had asked" % asking)
    ex.expect("own", "%d pages with the numbers 1 to %d" % (VISITORS, VISITORS),
              lambda: sorted(numbers(visitors)) == list(range(1, VISITORS + 1)),
              saw=lambda: "%s, with %s" % (
                  how_many(len(numbers(visitors)), "page"),
                  how_many(len(set(numbers(visitors))), "different number")),
              within=2, hint=1, read="pthread_mutex_lock(3)")

    ex.expect("together", "%d visitors whose threads ask Redis at the same time" % CONNECTIONS,
              lambda: asking == CONNECTIONS, saw=lambda: asking, hint=2,
              read="pthread_cond_wait(3)")
    ex.expect("kept", "%d connections that stay open for later visitors" % CONNECTIONS,
              lambda: redis.connections() == CONNECTIONS, saw=redis.connections, within=1, hint=3,
              read="pthread_cond_wait(3)")
    another = ex.hold(server, 1, WHOLE)
    ex.expect("next", "number %d for the next visitor" % (VISITORS + 1),
              lambda: numbers(another) == [VISITORS + 1], saw=lambda: numbers(another), within=3,
              hint=3, read="pthread_cond_signal(3)")


def all_wait(server):
    """Every visitor has a thread that has read the request and sleeps."""
    return server.threads() > VISITORS and server.unread() == 0 and server.asleep()


def numbers(visitors):
    """The numbers on the pages that have come."""
    bodies = [visitor.first().body for visitor in visitors if visitor.status() == 200]
    found = [re.fullmatch(rb"You are visitor (\d+)\.\n", body) for body in bodies]
    return [int(number.group(1)) for number in found if number]
