"""07/edge: whether an edge-triggered loop answers all of a burst, and is still edge-triggered."""

import time

from sleeps import expect_asleep
from waiting import Missed, patient
from words import how_many

REASON = "burst"

# Longer than its answer, so that the answers never fill a socket. New room would be an edge, too.
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\nX: %s\r\n\r\n" % (b"x" * 250)
BURST = 100 * 1000 // len(REQUEST)  # requests: 100 kB
FIRST = REQUEST[:7]  # of a request cut in two
BURST_SECONDS = 5  # a loop that looks around ten times a second is not done by then
MOST_RAN, MOST_WOKEN = 0.1, 20  # seconds and wake-ups, when all is done
CROWD = 200
MOST_KB = 16  # of memory for a client


def check(ex):
    server = ex.serve("--timeout", "500", under=ex.traced("epoll_ctl"))
    client = ex.client(server)
    ex.expect("one", "an answer", lambda: client.get().status == 200)
    burst(ex, server, client)
    goes_to_sleep(ex, server)
    asks_and_ends(ex, server)
    crowd(ex, server)
    server.end()
    stays_edge_triggered(ex, server, 1 + 1 + CROWD)


def burst(ex, server, client):
    """The server is stopped while the client sends, so that all of it is one edge."""
    ex.did("sent %d requests at once, %d bytes, while the server is stopped (SIGSTOP)" % (
        BURST, BURST * len(REQUEST)))
    with server.frozen():
        client.say(REQUEST * BURST + FIRST)
    answers, deadline = [], time.monotonic() + patient(BURST_SECONDS)

    def all_have_come():
        try:
            while len(answers) < BURST and time.monotonic() < deadline:
                answers.append(client.hear())
        except Missed:
            return False
        return len(answers) == BURST and all(
            answer and answer.status == 200 for answer in answers)

    ex.expect("burst", "%d answers" % BURST, all_have_come,
              saw=lambda: how_many(len(answers), "answer") + ", and then nothing more", hint=1,
              read="epoll(7)")
    ex.did("sent the rest of a request that the burst had begun")
    client.say(REQUEST[len(FIRST):])
    ex.expect("rest", "an answer to that request", lambda: client.hear().status == 200, hint=2)


def goes_to_sleep(ex, server):
    """At once: a loop that looks around for a while first would be late for what comes after that."""
    def work():
        return server.ran(), server.status("voluntary_ctxt_switches")

    before = work()
    expect_asleep(ex, "sleeps", server, "a loop that sleeps until something happens", hint=3,
                  read="epoll_wait(2)")
    ran, woken = (late - early for early, late in zip(before, work()))
    ex.expect("at once", "that it went to sleep at once", lambda: ran < MOST_RAN and woken < MOST_WOKEN,
              saw=lambda: "%.1f s of CPU time, and %s" % (ran, how_many(woken, "wake-up")), hint=3,
              read="epoll_wait(2)")


def asks_and_ends(ex, server):
    """The request and the end of the client's side are one edge."""
    client = ex.client(server)
    with server.frozen():
        client.say(REQUEST)
        client.half_close()
    ex.did("sent one request and closed the client's side, while the server is stopped")
    ex.expect("last", "an answer to its last request", lambda: client.hear().status == 200, hint=2)
    ex.expect("let go", "that the server closes the connection", lambda: client.is_closed(2),
              saw=lambda: "a connection that stays open", hint=2)


def crowd(ex, server):
    before = server.status("VmData")
    clients = [ex.client(server) for _ in range(CROWD)]
    for client in clients:
        client.say(REQUEST + FIRST)
    ex.did("let each of %d clients send a request, and the beginning of another" % CROWD)
    ex.expect("crowd", "an answer for each of them",
              lambda: all(client.hear().status == 200 for client in clients), hint=2)
    grown = (server.status("VmData") - before) / CROWD
    ex.expect("memory", "at most %d KiB of memory for a client" % MOST_KB, lambda: grown <= MOST_KB,
              saw=lambda: "%d KiB" % grown, hint=3)
    for client in clients:
        client.close()
    ex.expect("closes", "that the server notices when clients leave",
              lambda: server.descriptors() < CROWD, within=2,
              saw=lambda: "%d descriptors" % server.descriptors(), hint=2)


def stays_edge_triggered(ex, server, clients):
    told = [call.arguments for call in server.calls if "EPOLLOUT" in call.arguments
            or "EPOLLET" in call.arguments or "_MOD" in call.arguments]
    ex.expect("edge", "one epoll_ctl() for each of %d clients, with EPOLLET" % clients,
              lambda: len(told) == clients and all("EPOLLET" in each for each in told),
              saw=lambda: "%d, the last of them epoll_ctl(%s)" % (len(told), told[-1]) if told else "none",
              hint=3, read="epoll_ctl(2)")
