"""07/drain: whether SIGTERM lets the clients be served that have asked, and lets no other in."""

import os
import signal
import socket

from sleeps import Sleeps

REASON = "answered"

PAGE = b"GET /guestbook HTTP/1.1\r\nHost: here\r\n\r\n"
ASKING = 50
QUEUED = 260, 600  # so that no small number of rounds is enough
MUSES_SECONDS = 1.5  # that Redis takes to answer: longer than a server that has nothing to do
AT_ONCE_SECONDS = 1  # may take to end
SILENT = 20


def check(ex):
    waits_for_redis(ex)
    waits_for_nobody(ex)


def waits_for_redis(ex):
    redis = ex.redis()
    redis.hold()
    server = ex.serve("--timeout", "500", "--keep-alive", "60", redis=redis)
    kept = ex.client(server)
    ex.expect("serves", "a file", lambda: kept.get("/style.css").status == 200)
    silent = ex.hold(server, SILENT, b"")
    asking = ex.hold(server, ASKING, PAGE)
    everybody = ASKING + SILENT + 1
    ex.wait(lambda: redis.held() == 1 and server.descriptors() > everybody)
    ex.wait(Sleeps(server))

    ex.did("stopped the server (SIGSTOP), sent SIGTERM, and let it go on")
    with server.frozen():
        asking += ex.hold(server, ex.chance().randint(*QUEUED), PAGE)
        os.kill(server.pid, signal.SIGTERM)
    ex.expect("shut", "that no new client gets in", lambda: not gets_in(server), within=2, hint=2,
              read="close(2)")
    ex.expect("silent", "that the server does not wait for silent clients",
              lambda: all(client.is_closed() for client in [kept, *silent]), within=2, hint=3)

    ex.wait(lambda: not server.alive(), MUSES_SECONDS)
    ex.expect("waits", "a server that waits for Redis", server.alive,
              saw=lambda: "an end with status %d" % server.end(None), hint=1,
              read="signalfd(2)")

    ex.did("let Redis answer")
    redis.release()
    answers = [client.hear() for client in asking]
    ex.expect("answered", "%d pages, some for clients that were in the accept queue" % len(asking),
              lambda: all(answer and answer.status == 200 for answer in answers),
              saw=lambda: "%d of them" % sum(
                  bool(answer) and answer.status == 200 for answer in answers),
              hint=1, read="accept(2)")
    ex.expect("asked", "that Redis was asked for each of them", lambda: redis.asked() == len(asking),
              saw=lambda: "INCR, %d times" % redis.asked(), hint=3)
    ex.expect("closed", "Connection: close in each of them", lambda: all(
        answer.fields.get("connection") == "close" for answer in answers), hint=3)
    ex.expect_end("ends", server, None, hint=3)


def waits_for_nobody(ex):
    """Otherwise a server might run on for a fixed time."""
    server = ex.serve("--timeout", "120")
    silent = ex.client(server)
    ex.wait(lambda: server.waiting() == 0)
    os.kill(server.pid, signal.SIGTERM)
    ex.did("sent SIGTERM to a server with one silent client")
    ex.expect("at once", "an end without delay", lambda: not server.alive(),
              within=AT_ONCE_SECONDS, hint=3)
    ex.expect("lets go", "that it has let the client go", silent.is_closed)


def gets_in(server):
    """Is a connection accepted, or at least put into the queue?"""
    try:
        socket.create_connection((server.host, server.port), 1).close()
    except OSError:
        return False
    return True
