"""02/zombies: whether two hundred children who end at once are all buried."""

import os
import signal

from words import how_many

REASON = "buried"
CHILDREN = 200


def check(ex):
    server = ex.serve("--timeout", "60")
    crowd = ex.hold(server, CHILDREN)
    ex.expect("served", "%d children, one for each" % CHILDREN,
              lambda: len(server.children()) == CHILDREN,
              saw=lambda: how_many(len(server.children()), "child", "children"), within=5,
              read="fork(2)")

    os.kill(server.pid, signal.SIGSTOP)
    for client in crowd:
        client.close()
    ex.did("stopped the parent, and closed the clients")
    ex.expect("ended", "no child left when its client has gone", lambda: not server.children(),
              saw=lambda: how_many(len(server.children()), "child", "children"), within=5)
    os.kill(server.pid, signal.SIGCONT)
    ex.did("let the parent go on")
    ex.expect("buried", "no zombie a second later", lambda: not server.zombies(),
              saw=lambda: how_many(len(server.zombies()), "zombie"), within=1, hint=1,
              read="waitpid(2)")

    still_accepts(ex, server)


def still_accepts(ex, server):
    """Who waits for all children, WNOHANG or not, waits for those who live, too."""
    ex.hold(server, 1)
    ex.expect("held", "one child, its client silent", lambda: len(server.children()) == 1,
              saw=lambda: how_many(len(server.children()), "child", "children"), within=2)
    for visitor in ("a page for one visitor", "a page for another, when the first has left"):
        client = ex.client(server)
        ex.expect("answered", visitor, client.get, hint=3,
                  read="waitpid(2)")
        client.close()
        ex.expect("buried again", "its child buried, and the silent one's alive",
                  lambda: len(server.children()) == 1 and not server.zombies(),
                  saw=lambda: "%s and %s" % (how_many(len(server.children()), "child", "children"),
                                             how_many(len(server.zombies()), "zombie")),
                  within=1, hint=3, read="waitpid(2)")
