"""buffers: the traps of queue.c, a bounded buffer between the thread that accepts and those that work."""

import contextlib
import signal
import time

import proc
from traps import must, rests, sleeps_in_the_end, until
from tried import HALF, MOMENT_SECONDS, REST, SOON_SECONDS, Client, crowd, fault, hear_all, is_whole, visit
import waiting

MOST = 300  # clients
LATER_SECONDS = 0.2  # less than RARE=wake takes: the first client's worker does not have its core again yet
LATE_SECONDS = 0.6  # more: a worker that was woken in vain has it again
TRIES = 3  # on a busy machine the second client may come too late


def full(server):
    """Those outside wait, or are refused at once. Those inside are served when they ask at last."""
    with filled(server) as (inside, outside):
        must(outside, "%d clients came that said nothing, and all were accepted: nothing bounds the buffer" % len(inside))
        is_refused = outside.is_answered()
        sleeps_in_the_end(server, "the buffer was full")
        must_serve(inside, "the buffer was full, then all its clients asked")
        outside.say(HALF + REST)
        heard = outside.all()
        must(b" 503 " in heard[:13] if is_refused else is_whole(heard), "a client came when the buffer was full, and got %s" % fault(heard))
    must(until(lambda: visit(server)), "the buffer was full, all its clients went, and the next one got no page")
    return "The buffer and the workers took %d clients. The next one %s." % (
        len(inside), "got a 503 at once" if is_refused else "waited until there was room")


def wakes(server):
    """Although a thread loses its core before it takes a lock, or when it was woken (rare.c)."""
    late = "each thread lost its core for half a second %s, "
    begin_late(server, "lock")
    must(visit(server), late % "before it took a lock" + "and a client got no page")
    begin_late(server, "wake")
    for _ in range(TRIES):
        with crowd(server, 1, HALF + REST) as clients:
            time.sleep(LATER_SECONDS)
            served = visit(server)
            must(served and is_whole(clients[0].all()), late % "when it was woken" + "and one of two clients got no page")
        time.sleep(LATE_SECONDS)
        sleeps_in_the_end(server, late % "when it was woken" + "two clients came and went")
    with crowd(server, 3, HALF + REST) as clients:
        must(all(map(is_whole, hear_all(clients))), late % "when it was woken" + "and one of three clients at once got no page")
    return "Threads lost their core before they took a lock, or when they were woken, and no client was forgotten."


def begin_late(server, where):
    server.begin_rare(where)
    until(server.asleep)


def stops(server):
    """With all the clients that it has room for."""
    with filled(server) as (inside, _):
        server.kill(signal.SIGTERM)
        until(lambda: not server.listeners())
        must_serve(inside, "the server was told to stop (SIGTERM) when its buffer was full, then all its clients asked")
        must(until(lambda: not server.alive(), 3 * SOON_SECONDS), "the server was told to stop (SIGTERM), all clients were served, "
             "and %g s later it had not ended" % waiting.patient(3 * SOON_SECONDS))
    return "It was told to stop when its buffer was full, served those %d clients, and ended." % len(inside)


@contextlib.contextmanager
def filled(server):
    """Clients that say nothing, until one is not accepted, or is refused: those inside, and that one."""
    until(server.asleep)
    with contextlib.ExitStack() as stack:
        inside, client = [], None
        while len(inside) < MOST and not client:
            client = stack.enter_context(Client(server))

            def is_inside():
                return server.sockets(proc.ESTABLISHED, client.port()) and server.asleep() and not client.is_answered()

            if until(is_inside, MOMENT_SECONDS) or until(lambda: rests(server)) and is_inside():
                inside.append(client)
                client = None
        yield inside, client


def must_serve(clients, when):
    for client in clients:
        client.say(HALF + REST)
    served = sum(map(is_whole, hear_all(clients)))
    must(served == len(clients), "%s, and of %d that had been accepted %d got a page" % (when, len(clients), served))


OF = {5: [full, wakes, stops]}
READ = {wakes: (5, "Break the buffer"), stops: (5, "A full buffer"), full: (5, "A full buffer")}
