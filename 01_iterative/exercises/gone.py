"""01/gone: whether the server survives clients that leave in the middle."""

import socket

from waiting import patient

REASON = "lives"

PAGE_SIZE = 1 << 20
LEAVE = 20
SMALL = 536  # bytes of a packet: of small ones the kernel takes few at a time
TICKS = 3  # of the server, in which a slow client takes nothing


def check(ex):
    server = ex.serve()
    ex.expect("answers", "a whole page for a client that stays", lambda: whole(ex, server), hint=3)
    ex.expect("slow", "a whole page for a client that pauses before it reads",
              lambda: pauses(ex, server), hint=3, read="send(2)")
    ex.expect("one", "one process, while a client is being served", lambda: serves_alone(server),
              saw=lambda: "another process", hint=3, read="signal(7)")
    lives(ex, server, "ask and hang up while they wait", leave_the_queue)
    lives(ex, server, "reset their connections in the middle of the page", reset_in_the_page)
    lives(ex, server, "close their connections in the middle of the page", close_in_the_page)
    lives(ex, server, "ask, hang up in the middle of the page, and read the rest", hang_up)


def serves_alone(server):
    """Asked in the middle of a page: if SIGCHLD is ignored, a child that has served is gone at once."""
    with begun(server) as client:
        alone = not server.family()
        while client.recv(1 << 16):
            pass
    return alone


def lives(ex, server, how, leave):
    """Lets clients leave in that way, and then asks for a whole page."""
    ex.did("let %d clients %s" % (LEAVE, how))
    ex.expect("lives", "a server that lives, and a whole page for the next client",
              lambda: leave(ex, server) or whole(ex, server), hint=1, read="pipe(7)")


def leave_the_queue(ex, server):
    """A silent client holds the server, which so comes to the others only after they have left."""
    silent = ex.client(server)
    ex.wait(lambda: server.waiting() == 0)
    for _ in range(LEAVE):
        ask(ex, server).close()
    silent.close()


def reset_in_the_page(ex, server):
    for _ in range(LEAVE):
        client = ask(ex, server)
        ex.wait(client.is_answered)
        client.reset()


def close_in_the_page(ex, server):
    """The first bytes have come, and most of the page is not even in the kernel."""
    for _ in range(LEAVE):
        begun(server).close()


def hang_up(ex, server):
    """What comes after the end is answered with a reset. So the server writes after it was told that
    nobody reads."""
    for _ in range(LEAVE):
        client = begun(server)
        client.shutdown(socket.SHUT_RDWR)
        try:
            while client.recv(1 << 16):
                pass
        except OSError:
            pass
        client.close()


def begun(server):
    """A connection of small packets, on which the page has begun to come."""
    client = socket.socket()
    client.settimeout(patient(5))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SMALL)
    client.connect((server.host, server.port))
    client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    client.recv(1)
    return client


def pauses(ex, server):
    """First the kernel takes what has room, which wakes the server now and then. The pause begins when
    no more comes. A server that sleeps in another way need not wake in it: then it is a second."""
    client = ask(ex, server)
    ex.wait(client.is_answered)
    came, still = -1, unread(client)
    while came != still:
        came, before = still, server.status("voluntary_ctxt_switches")
        ex.wait(lambda: server.status("voluntary_ctxt_switches") > before + TICKS, 1)
        still = unread(client)
    return len(client.hear().body) == PAGE_SIZE


def unread(client):
    return len(client.socket.recv(PAGE_SIZE, socket.MSG_PEEK | socket.MSG_DONTWAIT))


def whole(ex, server):
    return len(ask(ex, server).hear().body) == PAGE_SIZE


def ask(ex, server):
    client = ex.client(server)
    client.say(b"GET / HTTP/1.1\r\n\r\n")
    return client
