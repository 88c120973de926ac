"""02/descriptors: who closes what after a fork."""

import signal
import socket

from words import how_many

REASON = "flat"
REQUESTS = 1000
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


def check(ex):
    server = ex.serve("--timeout", "60")
    ex.expect("answered", "a page for a visitor", lambda: visit(ex, server) == 200)
    before = server.descriptors()
    ex.did("counted the parent's descriptors: %d" % before)
    answers = [visit(ex, server) for _ in range(REQUESTS)]
    ex.did("made %d requests, each on a connection of its own" % REQUESTS)
    ex.expect("all answered", "a page for each", lambda: answers == [200] * REQUESTS,
              saw=lambda: how_many(answers.count(200), "page"))
    ex.expect("flat", "no more descriptors in the parent than before",
              lambda: server.descriptors() <= before,
              saw=lambda: "%d, after %d" % (server.descriptors(), before), within=1, hint=1,
              read="close(2)")

    client = ex.client(server)
    client.say(REQUEST)
    ex.expect("ends", "a connection that ends after the page",
              lambda: client.hear() and client.is_closed(within=2),
              saw=lambda: "a page, and a connection that stays", hint=2, read="close(2)")
    outlives_its_parent(ex, server)


def visit(ex, server):
    """One request; the status of its answer, None if there is none. A reset ends it: a thousand
    ends of the usual kind would leave a thousand connections in TIME_WAIT."""
    client = ex.client(server)
    answer = client.get()
    client.reset()
    return answer and answer.status


def outlives_its_parent(ex, server):
    """The listener's last name goes with the parent; the client's, with the child."""
    ex.wait(lambda: not server.children())  # or one of those who end would be taken for his
    held = ex.hold(server, 1)[0]
    ex.expect("held", "one child, its client silent", lambda: len(server.children()) == 1,
              saw=lambda: how_many(len(server.children()), "child", "children"), within=2)
    server.end(signal.SIGKILL)
    ex.did("killed the parent")
    ex.expect("free", "its port, free for the next server", lambda: can_listen(server),
              within=1, hint=2, read="listen(2)")
    held.say(b"Host: here\r\n\r\n")
    answer = held.hear()
    ex.expect("lives", "a child that serves its visitor to the end",
              lambda: answer and answer.status == 200,
              saw=lambda: answer or "an end without an answer", hint=3, read="fork(2)")


def can_listen(server):
    """As the next server would, with SO_REUSEADDR. Raises OSError if the port is taken."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((server.host, server.port))
        listener.listen()
    return True
