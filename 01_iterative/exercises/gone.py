"""01/gone: whether the server survives clients that leave in the middle."""

import socket

from outcome import patient

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
    lives(ex, server, "ask and hang up while they wait", leave_the_queue)
    lives(ex, server, "reset their connections in the middle of the page", reset_in_the_page)
    lives(ex, server, "close their connections in the middle of the page", close_in_the_page)
    lives(ex, server, "ask, hang up in the middle of the page, and read the rest", hang_up)


def lives(ex, server, how, leave):
    """Lets clients leave in that way, and then asks for a whole page."""
    ex.did("let %d clients %s" % (LEAVE, how))
    ex.expect("lives", "a server that lives, and a whole page for the next client",
              lambda: leave(ex, server) or whole(ex, server), hint=1, read="signal(7)")
    ex.expect("one", "one process, which has never ended", lambda: not server.child_stats(),
              saw=lambda: "a child process", hint=2, read="signal(7)")


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
    """A server that sleeps in another way need not wake meanwhile: then the pause is a second."""
    client = ask(ex, server)
    ex.wait(client.is_answered)
    before = server.status("voluntary_ctxt_switches")
    ex.wait(lambda: server.status("voluntary_ctxt_switches") > before + TICKS, 1)
    return len(client.hear().body) == PAGE_SIZE


def whole(ex, server):
    return len(ask(ex, server).hear().body) == PAGE_SIZE


def ask(ex, server):
    client = ex.client(server)
    client.say(b"GET / HTTP/1.1\r\n\r\n")
    return client
