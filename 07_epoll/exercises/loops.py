"""07/loops: whether each worker is a loop, and which clients one of them keeps waiting."""

import select

from loop import FILE, computing_redis, computing_root, descriptors_named, let_compute

REASON = "listeners"

LOOPS = 4
OTHERS = (2, 3, 5, 6)
CROWD = 100
LEAST = CROWD // LOOPS
WALKS = 5  # of the page: about a second


def check(ex):
    root, redis = computing_root(ex.folder, WALKS), computing_redis(ex)
    start(ex, root, redis, ex.chance().choice(OTHERS)).end()
    server = start(ex, root, redis, LOOPS)
    crowd = ex.hold(server, CROWD, FILE)
    ex.expect("all", "a file for each of them",
              lambda: all(client.hear().status == 200 for client in crowd),
              saw=lambda: "%d without an answer: is there a queue that nobody empties?" % sum(
                  not client.is_answered() for client in crowd), hint=3, read="socket(7)")
    holds_one(ex, server)
    ex.expect_end("ends", server, hint=3, read="wait(2)")
    ex.expect("leaves", "that none of its processes is left", lambda: not server.family(), within=2, hint=3,
              read="prctl(2)")


def start(ex, root, redis, loops):
    """A server with so many loops, which have been counted."""
    server = ex.serve("--root", root, "--timeout", "60", "--workers", str(loops), redis=redis)
    ex.expect("listeners", "%d listeners for port %d" % (loops, server.port),
              lambda: server.listeners() == loops, saw=lambda: server.listeners(), hint=1,
              read="socket(7)")
    ex.expect("loops", "%d epolls" % loops,
              lambda: descriptors_named(server, "[eventpoll]") == loops,
              saw=lambda: descriptors_named(server, "[eventpoll]"), within=2, hint=2,
              read="epoll_create1(2)")
    return server


def holds_one(ex, server):
    """A page that computes keeps one loop busy. The clients belong to their loops already."""
    crowd = ex.hold(server, CROWD, b"")
    page = let_compute(ex, server)
    ex.did("let one loop compute a page for a second, while all clients ask for a file")
    for client in crowd:
        client.say(FILE)
    answered = set()

    def some_are_served():
        """Counts the clients served before the page. The kernel shares them out by chance."""
        if not page.is_answered():
            answered.update(client for client in crowd if client.is_answered())
        return len(answered) >= LEAST

    ex.expect("held", "that at least %d of %d are served meanwhile" % (LEAST, CROWD),
              some_are_served, within=5, saw=lambda: len(answered), hint=2, read="epoll(7)")
    select.select([page.socket], [], [], 60)
    ex.expect("page", "the page", lambda: page.hear().status == 200)
    ex.expect("others", "files for the others, when the page is ready",
              lambda: all(client.hear().status == 200 for client in crowd))
