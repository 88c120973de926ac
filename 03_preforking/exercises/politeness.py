"""03/politeness: do idle clients make way for clients that wait, and no others?"""

import os
import signal

REASON = "fifth"
WORKERS = 4
OPTIONS = ["--workers", str(WORKERS), "--keep-alive", "60", "--timeout", "60"]
HALF, REST = b"GET / HTTP/1.1\r\n", b"Host: here\r\n\r\n"
LOOKS = 25  # ticks; a worker checks at each of them, five times a second
LATER_LOOKS = 5
MADE_WAY_LOOKS = 20  # fewer than LOOKS: no count of them is right for both
STOPS_LOOKS = 10  # workers that do not care are killed after some five seconds


def check(ex):
    server = ex.serve(*OPTIONS)
    idle = [kept(ex, server) for _ in range(WORKERS)]
    expect_left_alone(ex, server, idle)
    fifth = ex.client(server)
    fifth.say(HALF + REST)
    ex.did("had a fifth client ask for the page")
    pass_ticks(ex, server, MADE_WAY_LOOKS, fifth.is_answered)
    ex.expect("fifth", "a page for it", lambda: is_page(fifth),
              saw=lambda: "nothing; %d in the queue" % server.waiting(), hint=1, read="tcp(7)")
    pass_ticks(ex, server, 1)  # more than one may have seen the fifth
    rest = [client for client in idle if not client.is_closed()]
    expect_left_alone(ex, server, [*rest, fifth], LATER_LOOKS)

    server = ex.serve(*OPTIONS)
    clients = [kept(ex, server) for _ in range(WORKERS)]
    busy = clients[:2]
    for client in busy:
        client.say(HALF)
    ex.did("had two of four clients ask for half of their next page")
    for who in ("a fifth", "a sixth"):
        client = ex.client(server)
        client.say(HALF + REST)
        pass_ticks(ex, server, MADE_WAY_LOOKS, client.is_answered)
        ex.expect("others", "a page for %s" % who, lambda c=client: is_page(c), hint=1)
    for client in busy:
        client.say(REST)
        ex.expect("busy", "a page for those two, when they have sent the rest",
                  lambda c=client: is_page(c), within=2, hint=2)

    stops(ex)


def kept(ex, server):
    """A client that has got its page, and keeps its connection."""
    client = ex.client(server)
    client.say(HALF + REST)
    ex.expect("page", "a page for a client that stays", lambda: is_page(client), within=2)
    return client


def is_page(client):
    """Has a page come? Does not wait for its first bytes."""
    if not client.is_answered():
        return False
    answer = client.hear()
    return answer and answer.status == 200


def pass_ticks(ex, server, looks, over=lambda: False):
    """Each worker has checked some times, or it is over before."""
    before = server.naps(server.children())

    def have_passed():
        now = server.naps(before)
        return all(now[pid] >= before[pid] + looks for pid in now)

    ex.wait(lambda: over() or have_passed(), 10)


def expect_left_alone(ex, server, clients, looks=LOOKS):
    """And no connection has been closed."""
    pass_ticks(ex, server, looks)
    ex.expect("alone", "that all %d stay while no other client comes" % len(clients),
              lambda: not any(client.is_closed() for client in clients),
              saw=lambda: "%d closed" % sum(client.is_closed() for client in clients), hint=2)


def stops(ex):
    server = ex.serve(*OPTIONS)
    idle = [kept(ex, server) for _ in range(WORKERS)]
    os.kill(server.pid, signal.SIGTERM)
    ex.did("asked the server to stop, with four idle clients")
    pass_ticks(ex, server, STOPS_LOOKS, lambda: all(client.is_closed() for client in idle))
    ex.expect("stops", "that their connections are closed at once",
              lambda: all(client.is_closed() for client in idle),
              saw=lambda: "%d still open" % sum(not client.is_closed() for client in idle), hint=3,
              read="signal(7)")
