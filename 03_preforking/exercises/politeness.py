"""03/politeness: do idle clients make way for clients that wait, and no others?"""

from outcome import PATIENCE

REASON = "fifth"
WORKERS = 4
OPTIONS = ["--workers", str(WORKERS), "--keep-alive", "60", "--timeout", "60"]
HALF, REST = b"GET / HTTP/1.1\r\n", b"Host: here\r\n\r\n"
LOOKS = 25  # ticks; a worker checks at each of them, five times a second
LATER_LOOKS = 5
MADE_WAY_SECONDS = 4 / PATIENCE  # in all fewer than those ticks: no time limit is right for both


def check(ex):
    server = ex.serve(*OPTIONS)
    idle = [kept(ex, server) for _ in range(WORKERS)]
    expect_left_alone(ex, server, idle)
    fifth = ex.client(server)
    fifth.say(HALF + REST)
    ex.did("had a fifth client ask for the page")
    ex.expect("fifth", "a page for it", lambda: is_page(fifth), within=MADE_WAY_SECONDS,
              saw=lambda: "nothing; %d in the queue" % server.waiting(), hint=1, read="tcp(7)")
    pass_ticks(ex, server, 1)  # more than one may have seen the fifth
    expect_left_alone(ex, server, [each for each in [*idle, fifth] if not each.is_closed()], LATER_LOOKS)

    server = ex.serve(*OPTIONS)
    clients = [kept(ex, server) for _ in range(WORKERS)]
    busy = clients[:2]
    for client in busy:
        client.say(HALF)
    ex.did("had two of four clients ask for half of their next page")
    for who in ("a fifth", "a sixth"):
        client = ex.client(server)
        client.say(HALF + REST)
        ex.expect("others", "a page for %s" % who, lambda c=client: is_page(c),
                  within=MADE_WAY_SECONDS, hint=1)
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


def pass_ticks(ex, server, looks):
    """Each worker has checked some times."""
    before = {pid: ticks(server, pid) for pid in server.children()}
    ex.wait(lambda: all(ticks(server, pid) >= before[pid] + looks for pid in before), 10)


def expect_left_alone(ex, server, clients, looks=LOOKS):
    """And no connection has been closed."""
    pass_ticks(ex, server, looks)
    ex.expect("alone", "that all %d stay while no other client comes" % len(clients),
              lambda: not any(client.is_closed() for client in clients),
              saw=lambda: "%d closed" % sum(client.is_closed() for client in clients), hint=2)


def ticks(server, pid):
    """How often it has slept so far."""
    return server.status("voluntary_ctxt_switches", pid)


def stops(ex):
    server = ex.serve(*OPTIONS)
    idle = [kept(ex, server) for _ in range(WORKERS)]
    server.end()
    ex.did("asked the server to stop, with four idle clients")
    ex.expect("stops", "that their connections are closed at once",
              lambda: all(client.is_closed() for client in idle), within=1,
              saw=lambda: "%d still open" % sum(not client.is_closed() for client in idle), hint=3,
              read="signal(7)")
