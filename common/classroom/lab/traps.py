"""traps: what a chapter of the lab does to the reader's server. Each trap returns what it saw, in a
sentence, or raises Missed with what it saw instead. None of them knows how the server does it.
"""

import contextlib
import os
import signal
import subprocess
import time

import proc
from tried import ANSWER_SECONDS, HALF, REST, Client, Missed, crowd, is_whole, visit
import waiting

VISITS, SILENT = 20, 5
SOON_SECONDS = waiting.patient(1)
QUIET_SECONDS = 0.1
STACKS_KB = 100 << 10  # more than the C library keeps of threads that have ended
SPIN_SECONDS, MOST_BUSY = 0.3, 0.5
LATE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "exercises", "unlucky.c")


def must(holds, seen):
    if not holds:
        raise Missed("trap", "something else", seen)


def until(test):
    return waiting.until(test, 1)


# ---- every chapter --------------------------------------------------------------------------


def serves(server):
    """A page, for a client that says it is the last one it wants."""
    with Client(server) as client:
        client.say(HALF + REST)
        heard, is_over = client.all(), client.is_closed()
    must(is_over, "a client asked for a page, and %d s later its connection had not ended" % ANSWER_SECONDS)
    must(heard, "a client asked for a page, and its connection ended without one")
    must(is_whole(heard), "a client asked for a page, and got %r" % heard[:60])
    must(visit(server), "a second client got no page")
    return "A page for one client, and for the next."


def leave(server):
    """Clients that go away before they are answered, in two ways, while the server looks elsewhere."""
    for text in (b"", HALF, HALF + REST):
        for way in (Client.reset, Client.leave):
            with server.frozen():
                for _ in range(3):
                    client = Client(server)
                    client.say(text)
                    way(client)
            must(until(lambda: visit(server)), "clients left without waiting for their answers, and %s" % (
                "the next one got no page" if server.alive() else "the server ended"))
    return "Clients left in the middle of it, and the next one got its page."


def leaves_nothing(server):
    settle(server)
    before, open_before, size = census(server), server.descriptors(), server.status("VmSize")
    served = sum(visit(server) for _ in range(VISITS))
    must(served == VISITS, "of %d clients, one after the other, %d got a page" % (VISITS, served))
    must(until(lambda: not server.zombies()), "after %d clients there were %s" % (
        VISITS, plural(len(server.zombies()), "zombie")))
    must(until(lambda: server.descriptors() <= open_before), "after %d clients the %s had %d descriptors, before them %d" % (
        VISITS, "parent" if server.children() else "server", server.descriptors(), open_before))
    must(until(lambda: census(server) <= before), "after %d clients there were %s and %s, before them %s and %s" % (
        VISITS, *census_in_words(census(server)), *census_in_words(before)))
    grown = server.status("VmSize") - size
    must(grown < STACKS_KB, "after %d clients, none of them there any more, its addresses (VmSize) had grown by %d MiB" % (
        VISITS, grown >> 10))
    return "%d clients left no zombie, no descriptor, no thread and no stack behind." % VISITS


# ---- one chapter ----------------------------------------------------------------------------


def starts_again(server):
    """On the same port at once. (Whoever closes first, keeps the connection in TIME_WAIT.)"""
    must(visit(server), "a client got no page")
    server.begin_again()
    must(visit(server), "after a restart a client got no page")
    return "Ended and started again at once, on the same port."


def goes_on(server):
    """Beside a client that says nothing. (In chapter 1 all others wait.)"""
    with Client(server):
        must(visit(server), "a client was connected and silent, and the next one got no page")
    return "A client was silent, and the next one got its page."


def closes_both(server):
    """A child has its client, and not the listening socket."""
    with Client(server):
        must(until(server.family), "a client connected, and no child came")
        listening = server.sockets(proc.LISTEN)

        def kept():
            return [pid for pid in server.family() if listening & {*proc.descriptors(pid).values()}]
        must(until(lambda: not kept()), "a child that serves a client had the listening socket open as well")
    must(until(lambda: not server.family()), "the client had left, and its child was still there")
    return "A child had its client's socket, and no listening socket."


def worker_killed(server):
    workers = server.children()
    must(workers, "there was no child before a client came")
    victim = min(workers)
    os.kill(victim, signal.SIGKILL)
    must(until(lambda: len({*server.children()} - {victim}) == len(workers)),
         "one of %s was killed, and %g s later there were %d" % (
             plural(len(workers), "worker"), SOON_SECONDS, len(server.children())))
    must(until(lambda: not server.zombies()), "one worker was killed, and stayed as a zombie")
    must(visit(server), "a worker was killed, and the next client got no page")
    return "One of %d workers was killed, and soon there were %d again." % (len(workers), len(workers))


def parent_killed(server):
    settle(server)
    os.kill(server.pid, signal.SIGKILL)
    must(until(lambda: not server.family()), "the parent was killed, and %g s later %s went on without it" % (
        SOON_SECONDS, plural(len(server.family()), "worker")))
    return "The parent was killed, and no worker outlived it."


def at_once(server, number=8):
    """Clients that all come at the same moment."""
    with contextlib.ExitStack() as stack:
        with server.frozen():
            clients = stack.enter_context(crowd(server, number, HALF + REST))
        until(lambda: all(client.is_answered() for client in clients))
        answered = sum(client.is_answered() and is_whole(client.all()) for client in clients)
    must(answered == number, "%d clients came at the same moment, and %d of them got a page" % (number, answered))
    return "%d clients came at the same moment, and each got its page." % number


def late_threads(server):
    """New threads begin late, as they may on a busy machine (unlucky.c)."""
    library = os.path.join(server.scratch, "late.so")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, LATE, "-ldl"], check=True)
    server.begin_again("LD_PRELOAD=" + library)
    seen = at_once(server)
    server.begin_again()
    return seen[:-1] + ", although its thread began late."


def same_threads(server):
    settle(server)
    before = {*server.thread_states()}
    must(sum(visit(server) for _ in range(VISITS)) == VISITS, "of %d clients not all got a page" % VISITS)
    new = {*server.thread_states()} - before
    must(not new, "%d clients came, and %s" % (VISITS, plural(len(new), "new thread")))
    return "%d clients came, and not one new thread." % VISITS


def never_reads(server):
    """Its socket is full before it asks. Meanwhile others are served, and the server sleeps."""
    with Client(server) as deaf:
        server.fill(deaf)
        deaf.say(HALF + REST)
        must(until(lambda: visit(server)), "a client asked and did not read, its socket was full, and nobody else was served")
        before = server.cpu_seconds()
        time.sleep(SPIN_SECONDS)
        busy = (server.cpu_seconds() - before) / SPIN_SECONDS
        must(busy < MOST_BUSY, "while a client did not read, the server used %d %% of a core" % (100 * busy))
        heard = deaf.all()
        must(is_whole(heard.lstrip(b"x")), "a client with a full socket read at last, and got %s" % (
            "%r of its answer" % heard.lstrip(b"x") if heard else "neither the rest of its answer nor an end"))
    return "A client did not read: others were served, the server slept, and at last it got its whole answer."


def says_half(server):
    """It stops in the middle of a word. Others are served; and when it says the rest, so is it."""
    with crowd(server, SILENT, HALF) as clients:
        must(until(lambda: visit(server)), "%d clients said half a request, and nobody else was served" % SILENT)
        for client in clients:
            client.say(REST)
        answered = sum(is_whole(client.all()) for client in clients)
    must(answered == SILENT, "%d clients said half a request, and later the rest: %d got a page" % (SILENT, answered))
    return "%d clients said half a request: others were served, and in the end so were they." % SILENT


def left_idle(server):
    """Silent clients cost a loop no time."""
    with crowd(server, SILENT) as clients:
        before = server.cpu_seconds()
        time.sleep(SPIN_SECONDS)
        busy = (server.cpu_seconds() - before) / SPIN_SECONDS
        heard = sum(client.is_answered() for client in clients)
    must(not heard, "of %d clients that had said nothing, %d were answered, or sent away" % (SILENT, heard))
    must(busy < MOST_BUSY, "%d clients were connected and silent, and the server used %d %% of a core" % (
        SILENT, 100 * busy))
    return "%d clients were silent, and the server slept." % SILENT


def settle(server):
    """Until it makes no more threads or processes: it may have begun a moment ago."""
    must(visit(server), "a client got no page")
    until(lambda: census(server) == (time.sleep(QUIET_SECONDS), census(server))[1])


def census(server):
    return 1 + len(server.family()), server.threads()


def census_in_words(counts):
    return plural(counts[0], "process", "processes"), plural(counts[1], "thread")


def plural(number, noun, nouns=None):
    return "%d %s" % (number, noun if number == 1 else nouns or noun + "s")


_OWN = {1: [starts_again], 2: [closes_both, at_once], 3: [worker_killed, parent_killed], 4: [late_threads],
      5: [same_threads, at_once], 6: [at_once, left_idle, never_reads], 7: [at_once, left_idle, never_reads, says_half]}
OF = {number: [serves, *own, *[goes_on] * (number > 1), leave, leaves_nothing] for number, own in _OWN.items()}
