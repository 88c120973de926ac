"""07/workers: whether several loops share one queue: without a herd, each with its share, and with
a replacement for a loop that dies.
"""

import os
import signal

from sleeps import FILE, computing_redis, computing_root, descriptors_named, let_compute

REASON = "loops"

LOOPS = 4
OTHERS = (2, 3, 5, 6)
CROWD = 100
MOST_WAKEUPS = 2  # for a client, in all loops: one would do, and four are a herd
LEAST = CROWD // 10  # clients of each loop
WALKS = 5  # of the page: about a second


def check(ex):
    root, redis = computing_root(ex.folder, WALKS), computing_redis(ex)
    start(ex, root, redis, ex.chance().choice(OTHERS)).end()
    server = start(ex, root, redis, LOOPS)
    ex.expect("queue", "one listening socket for port %d" % server.port,
              lambda: server.listeners() == 1, saw=lambda: server.listeners(), hint=1,
              read="socket(7)")
    one_by_one(ex, server)
    one_computes(ex, server)
    one_dies(ex, server)
    ex.expect_end("ends", server, hint=1, read="wait(2)")
    ex.expect("leaves", "that none of its processes is left", lambda: not server.family(), within=2, hint=1,
              read="prctl(2)")


def start(ex, root, redis, loops):
    """A server with so many loops, which have been counted."""
    server = ex.serve("--root", root, "--timeout", "500", "--workers", str(loops), redis=redis)
    ex.expect("loops", "%d child processes, each with an epoll" % loops,
              lambda: are_there(server, loops), within=2, hint=1, read="epoll_create1(2)",
              saw=lambda: "%d children and %d epolls" % (
                  len(server.children()), descriptors_named(server, "[eventpoll]")))
    return server


def one_by_one(ex, server):
    """Each client comes when all loops sleep. So a wake-up is a context switch, and is counted."""
    loops = server.children()
    ex.wait(lambda: all_sleep(server, loops))
    woken = sum(server.naps(loops).values())
    before = {pid: server.descriptors(pid) for pid in loops}

    def shares():
        return [server.descriptors(pid) - before[pid] for pid in loops]

    def comes(number):
        ex.client(server)
        return ex.wait(lambda: sum(shares()) >= number and all_sleep(server, loops))

    ex.did("stopped the parent, and let %d clients connect, each when all loops sleep" % CROWD)
    with server.frozen():  # it hands no client over
        ex.expect("accepted", "that the loops accept each of them",
                  lambda: all(map(comes, range(1, CROWD + 1))),
                  saw=lambda: "%d accepted" % sum(shares()), hint=1, read="accept(2)")
    each = (sum(server.naps(loops).values()) - woken) / CROWD
    ex.expect("herd", "at most %d wake-ups for a client, in all loops together" % MOST_WAKEUPS,
              lambda: each <= MOST_WAKEUPS, saw=lambda: "%.1f" % each, hint=2,
              read="epoll_ctl(2)")
    ex.expect("share", "at least %d clients for each loop" % LEAST,
              lambda: min(shares()) >= LEAST,
              saw=lambda: ", ".join(map(str, sorted(shares(), reverse=True))), hint=3,
              read="epoll_ctl(2)")


def one_computes(ex, server):
    """New clients have one queue, so none of them has to wait for the loop that computes."""
    page, = let_compute(ex, server)
    ex.did("let one loop compute a page for a second")
    crowd = ex.hold(server, CROWD, FILE)

    def all_are_served():
        return all(client.is_answered() for client in crowd) and not page.is_answered()

    ex.expect("free", "a file for each of them before that page is ready", all_are_served,
              within=5, saw=lambda: "%d without an answer" % sum(
                  not client.is_answered() for client in crowd), hint=1, read="epoll(7)")
    ex.wait(page.is_answered, 60)
    ex.expect("page", "the page", lambda: page.hear().status == 200)


def one_dies(ex, server):
    victim = server.children()[0]
    os.kill(victim, signal.SIGKILL)
    ex.did("killed one loop (SIGKILL)")
    ex.expect("replaced", "%d loops again, and no zombie" % LOOPS,
              lambda: victim not in server.children() and are_there(server)
              and not server.zombies(), within=2, hint=1, read="waitpid(2)",
              saw=lambda: "%d children and %d epolls" % (
                  len(server.children()), descriptors_named(server, "[eventpoll]")))
    crowd = ex.hold(server, CROWD, FILE)
    ex.expect("served", "a file for each of them",
              lambda: all(client.hear().status == 200 for client in crowd), hint=1)


def are_there(server, loops=LOOPS):
    return len(server.children()) == loops == descriptors_named(server, "[eventpoll]")


def all_sleep(server, loops):
    return all(server.status("State", pid).startswith("S") for pid in loops)
