"""02/descriptors: who closes what after a fork."""

import os
import re
import signal
import socket

from client import REST
import proc
from words import how_many

REASON = "free"
FEWEST, MOST = 10, 40  # requests


def check(ex):
    server = ex.serve("--timeout", "60")
    ex.expect_children("starts", "one child, the counter", server, 1)
    counter = server.children()[0]
    before = server.descriptors()
    requests = ex.chance().randrange(FEWEST, MOST)
    answers = [ex.client(server).visit() for _ in range(requests)]
    ex.did("made %d requests, each on a connection of its own" % requests)
    ex.expect("all answered", "a page for each", lambda: answers == [200] * requests,
              saw=lambda: how_many(answers.count(200), "page"))
    ex.expect_descriptors("flat", "no more descriptors in the parent than before", server, before)
    ex.wait(lambda: server.children() == [counter])  # or one that ends would be taken for another
    outlives_its_parent(ex, server, counter, requests + 1)


def outlives_its_parent(ex, server, counter, visitors):
    """What the parent had open goes with it, unless somebody else has it open, too."""
    held = ex.hold(server, 1)[0]
    ex.expect_children("held", "one child more, its client silent", server, 2)
    opened = opened_by(counter)
    server.end(signal.SIGKILL)
    ex.did("killed the parent")
    ex.expect("free", "its port, free for the next server", lambda: can_listen(server),
              within=1, hint=1, read="listen(2)")
    ex.expect("waits", "a counter that goes on while a visitor is served",
              lambda: not has_ended(counter), saw=lambda: "that it has ended", hint=2, read="pipe(7)")
    held.say(REST)
    answer = held.hear()
    ex.expect("lives", "a child that serves its visitor to the end",
              lambda: answer and answer.status == 200,
              saw=lambda: answer or "an end without an answer", hint=3, read="fork(2)")
    ex.did("had the last visitor leave")
    ex.expect("ends", "a counter that ends when nobody is left to write", lambda: has_ended(counter),
              saw=lambda: "the counter, asleep in its read", within=2, hint=2, read="pipe(7)")
    total = "%d visitors" % visitors
    ex.expect("counted", "\"%s\" on standard output" % total, lambda: server.printed().endswith("\n%s\n" % total),
              saw=lambda: server.printed().strip().splitlines()[-1], hint=3, read="pipe(7)")
    ex.expect("needs", "a counter that has the pipe's reading end, no other end, and no socket",
              lambda: opened == ["the reading end of a pipe"], saw=lambda: ", ".join(opened),
              hint=3, read="proc(5)")


def opened_by(pid):
    """What of pipes and sockets it has open, in words."""
    found = []
    for number, link in proc.descriptors(pid).items():
        info = proc.read("/proc/%d/fdinfo/%d" % (pid, number))
        flags = int(re.search(r"^flags:\s*(\d+)", info, re.MULTILINE).group(1), 8)
        if link.startswith("pipe:"):
            end = "writing" if flags & os.O_ACCMODE else "reading"
            found.append("the %s end of a pipe" % end)
        elif link.startswith("socket:"):
            found.append("a socket")
    return sorted(found)


def can_listen(server):
    """As the next server would, with SO_REUSEADDR. Raises OSError if the port is taken."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((server.host, server.port))
        listener.listen()
    return True


def has_ended(pid):
    """It is gone, or a zombie that its new parent has not reaped yet."""
    return all(stat.state == "Z" for stat in proc.everybody(pids=[pid]))
