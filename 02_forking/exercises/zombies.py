"""02/zombies: whether every child is reaped, even one that ends before its parent has noted it.

strace watches all forks, so that a server cannot know which of them it holds.
"""

import os
import signal
import time

from outcome import schedule
from words import how_many

REASON = "reaped in time"
CHILDREN = 200
QUICK = 2  # visitors whose children end while the parent is still in fork(2),
HELD_SECONDS = 5  # which takes so long
FORKS = "?clone,?clone3,?fork,?vfork"
HELD_IN_FORK = ["-e", "inject=%s:delay_exit=%d" % (FORKS, HELD_SECONDS * 1000000)]
MOST_SECONDS = HELD_SECONDS - 1  # from a question to the end of the child that answers it, but for its wait for a core
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


def check(ex):
    all_at_once(ex)
    before_the_parent_knows(ex)
    after_a_refusal(ex)


def all_at_once(ex):
    server = ex.serve("--timeout", "60", under=ex.traced(FORKS))
    crowd = ex.hold(server, CHILDREN)
    ex.expect("served", "%d children, one for each" % CHILDREN,
              lambda: len(server.children()) == CHILDREN,
              saw=lambda: how_many(len(server.children()), "child", "children"), within=8,
              read="fork(2)")
    os.kill(server.pid, signal.SIGSTOP)
    for client in crowd:
        client.close()
    ex.did("stopped the parent, and closed the clients")
    ex.expect("ended", "no child left when its client has gone", lambda: not server.children(),
              saw=lambda: how_many(len(server.children()), "child", "children"), within=8)
    os.kill(server.pid, signal.SIGCONT)
    ex.did("let the parent go on")
    ex.expect("all reaped", "no zombie a second later", lambda: not server.zombies(),
              saw=lambda: how_many(len(server.zombies()), "zombie"), within=1,
              read="waitpid(2)")
    still_accepts(ex, server)


def still_accepts(ex, server):
    """A parent that waits for children that still live serves nobody meanwhile."""
    ex.hold(server, 1)
    ex.expect("held", "one child, its client silent", lambda: len(server.children()) == 1,
              saw=lambda: how_many(len(server.children()), "child", "children"), within=2)
    for visitor in ("a page for one visitor", "a page for another, when the first has left"):
        client = ex.client(server)
        client.say(REQUEST)
        expect_status(ex, "answered", visitor, client, 200, read="waitpid(2)")
        client.close()
        ex.expect("reaped again", "its child reaped, and the silent client's alive",
                  lambda: len(server.children()) == 1 and not server.zombies(),
                  saw=lambda: "%s and %s" % (how_many(len(server.children()), "child", "children"),
                                             how_many(len(server.zombies()), "zombie")),
                  within=1, read="waitpid(2)")


def before_the_parent_knows(ex):
    """With one place in the table: a child that stays in it leaves no room for the next."""
    under = ex.traced(FORKS)
    under += HELD_IN_FORK
    server = ex.serve("--timeout", "60", "--workers", "1", under=under)
    ex.did("had strace hold the parent for %d seconds in each fork" % HELD_SECONDS)
    for number in range(1, QUICK + 1):
        client = ex.client(server)
        begun = time.monotonic()
        client.say(REQUEST)
        expect_status(ex, "answered quickly", "a page for visitor %d" % number, client, 200, hint=1)
        ex.wait(lambda: not server.children())
        lived = time.monotonic() - begun - sum(sum(schedule(pid)) for pid in server.zombies())
        ex.expect("ended in time", "its child ended, as soon as it has served it",
                  lambda: lived < MOST_SECONDS, saw=lambda: "%.1f s until then" % lived, hint=2,
                  read="fork(2)")
        ex.expect("reaped in time", "its child reaped, though it ended before fork had returned",
                  lambda: not server.children() and not server.zombies(),
                  saw=lambda: "%s, %s" % (how_many(len(server.children()), "child", "children"),
                                          how_many(len(server.zombies()), "zombie")),
                  within=HELD_SECONDS + 2, hint=1, read="sigprocmask(2)")


def after_a_refusal(ex):
    """A signal that stays blocked where fork_child() returns early is never handled again."""
    server = ex.serve("--timeout", "60", "--workers", "1", under=ex.traced(FORKS))
    first = ex.hold(server, 1)[0]
    ex.expect("one place", "one child, in the only place", lambda: len(server.children()) == 1,
              saw=lambda: how_many(len(server.children()), "child", "children"), within=2)
    second = ex.client(server)
    second.say(REQUEST)
    expect_status(ex, "refused", "503 for a visitor without a place", second, 503)
    first.close()
    ex.expect("reaped after that", "the child reaped when its client has left",
              lambda: not server.children() and not server.zombies(),
              saw=lambda: how_many(len(server.zombies()), "zombie"), within=2, hint=3,
              read="sigprocmask(2)")


def expect_status(ex, key, expected, client, status, hint=None, read="fork(2)"):
    ex.expect(key, expected, lambda: client.status() == status, within=5, hint=hint, read=read,
              saw=lambda: "status %d" % client.status() if client.status() else "no answer")
