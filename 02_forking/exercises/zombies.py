"""02/zombies: whether every child is reaped, even one that ends before its parent has noted it.

strace watches all forks, so that a server cannot know which of them it holds.
"""

import os
import signal
import time

from client import WHOLE
from proc import schedule
from words import how_many

REASON = "reaped in time"
CHILDREN = 200
QUICK = 2  # visitors whose children end while the parent is still in fork(2),
HELD_SECONDS = 5  # which takes so long
FORKS = "?clone,?clone3,?fork,?vfork"
MOST_SECONDS = HELD_SECONDS - 1  # from a question to the end of the child that answers it, but for its wait for a core


def check(ex):
    all_at_once(ex)
    before_the_parent_knows(ex)
    after_a_refusal(ex)


def all_at_once(ex):
    server = ex.serve("--timeout", "60", under=ex.traced(FORKS))
    crowd = ex.hold(server, CHILDREN)
    ex.expect_children("served", "%d children, one for each" % CHILDREN, server, CHILDREN, within=8,
                       read="fork(2)")
    os.kill(server.pid, signal.SIGSTOP)
    for client in crowd:
        client.close()
    ex.did("stopped the parent, and closed the clients")
    ex.expect_children("ended", "no child left when its client has gone", server, 0, within=8)
    os.kill(server.pid, signal.SIGCONT)
    ex.did("let the parent go on")
    ex.expect("all reaped", "no zombie a second later", lambda: not server.zombies(),
              saw=lambda: how_many(len(server.zombies()), "zombie"), within=1,
              read="waitpid(2)")
    still_accepts(ex, server)


def still_accepts(ex, server):
    """A parent that waits for children that still live serves nobody meanwhile."""
    ex.hold(server, 1)
    ex.expect_children("held", "one child, its client silent", server, 1)
    for visitor in ("a page for one visitor", "a page for another, when the first has left"):
        client = ex.client(server)
        client.say(WHOLE)
        ex.expect_status("answered", visitor, client, 200, read="waitpid(2)")
        client.close()
        expect_reaped(ex, REASON, "its child reaped, and the silent client's alive", server, 1, 1, hint=1,
                      read="waitpid(2)")


def before_the_parent_knows(ex):
    """With one place in the table: a child that stays in it leaves no room for the next."""
    under = ex.traced(FORKS)
    under += ["-e", "inject=%s:delay_exit=%d" % (FORKS, HELD_SECONDS * 1000000)]
    server = ex.serve("--timeout", "60", "--workers", "1", under=under)
    ex.did("had strace make each fork last %d seconds in the parent" % HELD_SECONDS)
    for number in range(1, QUICK + 1):
        client = ex.client(server)
        begun = time.monotonic()
        client.say(WHOLE)
        ex.expect_status("answered quickly", "a page for visitor %d" % number, client, 200, hint=1,
                         read="fork(2)")
        ex.wait(lambda: not server.children())
        lived = time.monotonic() - begun - sum(sum(schedule(pid)) for pid in server.zombies())
        ex.expect("ended in time", "its child ended, as soon as it has served it",
                  lambda: lived < MOST_SECONDS, saw=lambda: "%.1f s until then" % lived, hint=2,
                  read="fork(2)")
        time.sleep(max(0, begun + HELD_SECONDS - time.monotonic()))  # strace waits, whatever has happened
        expect_reaped(ex, REASON, "its child reaped, before the next one comes", server, 0, 2, hint=1,
                      read="fork(2)")


def after_a_refusal(ex):
    """A signal that stays blocked where fork_child() returns early is never handled again."""
    server = ex.serve("--timeout", "60", "--workers", "1", under=ex.traced(FORKS))
    first = ex.hold(server, 1)[0]
    ex.expect_children("one place", "one child, in the only place", server, 1)
    second = ex.client(server)
    second.say(WHOLE)
    ex.expect_status("refused", "503 for a visitor without a place", second, 503, read="fork(2)")
    first.close()
    expect_reaped(ex, "reaped after that", "the child reaped when its client has left", server, 0, 2,
                  hint=3)


def expect_reaped(ex, key, expected, server, alive, within, hint=None, read="sigprocmask(2)"):
    ex.expect(key, expected, lambda: len(server.children()) == alive and not server.zombies(),
              saw=lambda: "%s and %s" % (how_many(len(server.children()), "child", "children"),
                                         how_many(len(server.zombies()), "zombie")),
              within=within, hint=hint, read=read)
