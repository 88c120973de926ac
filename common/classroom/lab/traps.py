"""traps: what a chapter of the lab does to the reader's server. Each trap returns what it saw, in a
sentence, or raises Missed with what it saw instead. None of them knows how the server does it.
"""

import contextlib
import os
import resource
import signal

import proc
from tried import ANSWER_SECONDS, HALF, REST, SOON_SECONDS, Client, Missed, crowd, fault, hear_all, is_whole, visit, visits
import waiting

VISITS, SILENT, AT_ONCE = 20, 5, 8
ROUNDS = 8  # of visits: what a server keeps is a leak if each of them adds to it
QUIET_SECONDS, SPIN_SECONDS = 0.1, 0.2
MOST_BUSY, LEAST_BUSY = 0.5, 0.02  # of the time: it wants a core; and of what it wants, it uses it
STACKS_KB = VISITS * 64  # the smallest stacks that a C library gives to so many threads, and less
MANY_VISITS, LEAK_BYTES = 2000, 32 << 10  # the smallest piece that malloc(3) gives has 24 bytes or more
MANY, SPARE_DESCRIPTORS = 1100, 100
# A chapter, and words that stand there in a heading or in bold.
DEAD, CLOSE, STACKS = (2, "The dead stay"), (2, "One becomes two"), (4, "Your server")


def must(holds, seen, read=None):
    if not holds:
        raise Missed("trap", "something else", seen, read=read)


def until(test, seconds=SOON_SECONDS):
    return waiting.until(test, seconds)


# ---- every chapter --------------------------------------------------------------------------


def serves(server):
    """A page, for a client that says it is the last one it wants."""
    for who in ("a client", "a second client"):
        with Client(server) as client:
            client.say(HALF + REST)
            is_over = until(client.is_closed, ANSWER_SECONDS)
            must(is_over, "%s asked for a page, and %g s later its connection had not ended" % (who, waiting.patient(ANSWER_SECONDS)))
            heard = client.end_of()
        must(heard, "%s asked for a page, and its connection ended without one" % who)
        must(is_whole(heard), "%s asked for a page, and got %s" % (who, fault(heard)))
    return "A page for one client, and for the next."


def sleeps_in_the_end(server, when):
    """Is there a moment in which it hardly wants a core? On a busy machine one that only looks up now and then
    waits long for a core, but hardly uses what it gets."""
    seen = []

    def sleeps():
        if server.rested():
            return True
        seen.append(server.busy(SPIN_SECONDS))
        return seen[-1][1] < MOST_BUSY

    if not until(sleeps):
        used, wanted = map(sum, zip(*seen))
        must(used < LEAST_BUSY * wanted, "%s, and the server used %d %% of a core" % (when, 100 * wanted / len(seen)))
    must(server.alive(), "%s, and the server ended" % when)


def idle(server):
    """Nobody, and clients that say nothing, cost no time."""
    sleeps_in_the_end(server, "nobody was connected")
    visit(server)
    number = min(SILENT, server.queue())
    with crowd(server, number) as clients:
        sleeps_in_the_end(server, "%s connected and said nothing" % plural(number, "client"))
        heard = sum(client.is_answered() for client in clients)
        clients[0].close()
        sleeps_in_the_end(server, "one of several silent clients had left")
    sleeps_in_the_end(server, "clients had come and gone")
    must(not heard, "of %s that had said nothing, %d were answered, or sent away" % (plural(number, "client"), heard))
    return "%s silent, and the server slept." % plural(number, "client was", "clients were")


def leave(server):
    """Clients that go away before they are answered, in two ways, while the server looks elsewhere."""
    settle(server)
    before = server.descriptors()
    for text in (b"", HALF, HALF + REST):
        for way in (Client.reset, Client.leave):
            with server.frozen():
                for _ in range(min(3, server.queue())):
                    client = Client(server)
                    client.say(text)
                    way(client)
            must(until(lambda: visit(server)), "clients left without waiting for their answers, and %s" % (
                "the next one got no page" if server.alive() else "the server ended"))
    sleeps_in_the_end(server, "clients had left without waiting for their answers")
    must(until(lambda: server.descriptors() <= before), "clients left without waiting for their answers, and afterwards "
         "the server had %d descriptors, before them %d" % (server.descriptors(), before))
    return "Clients left in the middle of it, and the next one got its page."


def leaves_nothing(server):
    """What is left may grow with the first clients, as when each thread gets memory of its own, and not for ever."""
    settle(server)
    for _ in range(ROUNDS):
        before, open_before, size = census(server), server.descriptors(), server.status("VmSize")
        served = visits(server, VISITS)
        must(served == VISITS, "of %d clients, one after the other, %d got a page" % (VISITS, served))
        must(no_zombies(server), "after %d clients there were %s" % (VISITS, plural(len(server.zombies()), "zombie")), DEAD)
        if until(lambda: census(server) <= before and server.descriptors() <= open_before, SOON_SECONDS / 2) and (
                server.status("VmSize") < size + STACKS_KB):
            return "%d clients left no zombie, no descriptor, no thread and no stack behind." % VISITS
    must(server.descriptors() <= open_before, "after %d clients the %s had %d descriptors, before them %d" % (
        VISITS, "parent" if server.children() else "server", server.descriptors(), open_before), CLOSE)
    must(census(server) <= before, "after %d clients there were %s and %s, before them %s and %s" % (
        VISITS, *census_in_words(census(server)), *census_in_words(before)))
    must(False, "after %d clients, none of them there any more, its addresses (VmSize) had grown by %d MiB" % (
        VISITS, (server.status("VmSize") - size) >> 10), STACKS)


def no_zombies(server):
    """A server may also reap them when the next client comes, so that the last one stays."""
    for _ in range(3):
        if until(lambda: len(server.zombies()) < 2, SOON_SECONDS / 2):
            return True
        visit(server)
    return False


def frees(server):
    """What a client needs in memory is given back, and first of all what can be counted after a few."""
    server.begin_again("ASAN_OPTIONS=quarantine_size_mb=0")  # which would keep what is freed
    leaves_nothing(server)
    for _ in range(ROUNDS):
        before, served = server.memory(), visits(server, MANY_VISITS)
        must(served == MANY_VISITS, "of %d clients, one after the other, %d got a page" % (MANY_VISITS, served))
        if until(lambda: server.memory() < before + LEAK_BYTES, QUIET_SECONDS):
            return "%d clients left no memory behind." % MANY_VISITS
    must(False, "each time that %d clients had come and gone, the server had some %d KiB of memory more" % (
        MANY_VISITS, (server.memory() - before) >> 10))


# ---- one chapter ----------------------------------------------------------------------------


def starts_again(server):
    """On the same port at once. (Whoever closes first, keeps the connection in TIME_WAIT.)"""
    for _ in range(SILENT):  # a kernel that remembers many others does not remember this one
        serves(server)
        if until(server.remembers, QUIET_SECONDS):
            break
    server.begin_again()
    must(visit(server), "after a restart a client got no page")
    return "Ended and started again at once, on the same port."


def goes_on(server):
    """Beside clients that say nothing at first, and then each asks in turn. A pool needs a worker for each of them.
    If the workers have queues of their own, a visitor may come into that of one that waits: then others come."""
    settle(server)
    doors, workers = server.listeners(), max(len(server.children()), server.threads() - 1)
    number = 1 if doors > 1 else max(1, min(3, workers - 1)) if workers else 3
    with contextlib.ExitStack() as stack:
        silent, visitors = stack.enter_context(crowd(server, number)), []

        def served():
            if not visitors or doors > 1 and len(visitors) < server.queue():
                visitors.append(stack.enter_context(Client(server)))
                visitors[-1].say(HALF + REST)
            return [each for each in visitors if each.is_closed()]

        must(until(served, ANSWER_SECONDS) and is_whole(served()[0].all()),
             "%s connected and silent, and the next one got no page" % plural(number, "client was", "clients were"))
        for count, client in enumerate(silent, 1):
            client.say(HALF + REST)
            heard = client.all()
            must(is_whole(heard), "%s silent, the next one got its page, and then the silent ones asked in turn: "
                 "number %d got %s" % (plural(number, "client was", "clients were"), count, fault(heard)))
    return "%s silent, and the next one got its page. So did they, when they asked." % plural(
        number, "client was", "clients were")


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


def three_end(server):
    """At the same moment, for a parent that is stopped: signals of the same number are not counted."""
    settle(server)
    with crowd(server, 3) as clients:
        accepted = until(lambda: len(server.sockets(proc.ESTABLISHED)) >= 3)
        must(accepted, "three clients were connected, and not all of them were accepted")
        with server.stopped():
            for client in clients:
                client.say(HALF + REST)
            must(all(map(is_whole, hear_all(clients))), "three clients had connected, then the parent was "
                 "stopped, and not all of them got a page")
            until(lambda: not server.children())
    must(no_zombies(server), "three children ended while the parent was stopped, and afterwards there were %s" % plural(
        len(server.zombies()), "zombie"), DEAD)
    return "Three children ended while the parent was stopped, and none stayed a zombie."


def same_workers(server):
    settle(server)
    before = {*server.children()}
    must(before, "there was no child before a client came")
    must(visits(server, 4) == 4, "of 4 clients not all got a page")
    settle(server)
    gone = before - {*server.children()}
    must(not gone, "after four visits %d of %s were others" % (len(gone), plural(len(before), "worker")))
    return "Four clients came, and the workers were the same as before."


def worker_killed(server):
    """One, and then two while the parent is stopped, which hears of it by one signal."""
    settle(server)
    workers = server.children()
    must(workers, "there was no child before a client came")
    for number, noun in (1, "one of %s was"), (2, "first one of %s was killed, then two more were"):
        victims = sorted(server.children())[:number]
        with server.stopped():
            for victim in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
            until(lambda: not {*victims} & {*server.children()})
        must(until(lambda: len({*server.children()}) == len(workers), 3 * SOON_SECONDS),
             "%s killed, and %g s later there were %d" % (
                 noun % plural(len(workers), "worker"), waiting.patient(3 * SOON_SECONDS), len(server.children())))
        must(until(lambda: not server.zombies()), "workers were killed, and stayed as zombies")
        must(until(lambda: visit(server)), "a worker was killed, and the next client got no page")
    return "One of %d workers was killed, and soon there were %d again." % (len(workers), len(workers))


def parent_killed(server):
    settle(server)
    server.kill()
    must(until(lambda: not server.family()), "the parent was killed, and %g s later %s went on without it" % (
        waiting.patient(SOON_SECONDS), plural(len(server.family()), "worker")))
    return "The parent was killed, and no worker outlived it."


def parent_gone(server):
    """Before a worker has said that it shall not outlive it: prctl(2) is late (rare.c)."""
    server.begin_rare("prctl")
    until(server.family)
    server.kill()
    must(until(lambda: not server.family(), 3 * SOON_SECONDS), "the parent was killed just after a fork, and %s went on without it" % plural(
        len(server.family()), "worker"))
    return "The parent was killed just after a fork, and no worker outlived it."


def chld_ignored(server):
    """Whoever starts a server may ignore SIGCHLD, and a program inherits that."""
    server.begin_again("--ignore-signal=CHLD")
    settle(server)
    number = len(server.children())
    must(number, "there was no child before a client came")
    victim = min(server.children())
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in server.children())
    must(until(lambda: len(server.children()) == number, 3 * SOON_SECONDS), "the server was started by a program that ignores SIGCHLD. "
         "One of %s was killed, and %g s later there were %d" % (
             plural(number, "worker"), waiting.patient(3 * SOON_SECONDS), len(server.children())))
    return "It was started with SIGCHLD ignored, and replaced a worker all the same."


def at_once(server):
    """Clients that all come at the same moment, as many as its queue has room for."""
    number = min(AT_ONCE, server.queue())
    with contextlib.ExitStack() as stack:
        with server.frozen():
            clients = stack.enter_context(crowd(server, number, HALF + REST))
        until(lambda: all(client.is_closed() for client in clients), ANSWER_SECONDS)
        answered = sum(map(is_whole, hear_all([client for client in clients if client.is_answered()])))
    must(answered == number, "%d clients came at the same moment, and %d of them got a page" % (number, answered))
    return "%d clients came at the same moment, and each got its page." % number


def late_threads(server):
    """New threads begin late, as they may on a busy machine (rare.c)."""
    server.begin_rare("thread,early")
    return at_once(server)[:-1] + ", although its thread began late."


def same_threads(server):
    settle(server)
    before = {*server.thread_states()}
    must(visits(server, VISITS) == VISITS, "of %d clients not all got a page" % VISITS)
    new = {*server.thread_states()} - before
    must(not new, "%d clients came, and %s" % (VISITS, plural(len(new), "new thread")))
    return "%d clients came, and not one new thread." % VISITS


def never_reads(server):
    """Its socket is full before it asks. Meanwhile others are served, and the server sleeps."""
    with Client(server) as deaf:
        server.fill(deaf)
        deaf.say(HALF + REST)
        must(until(lambda: visit(server)), "a client asked and did not read, its socket was full, and nobody else was served")
        sleeps_in_the_end(server, "a client did not read")
        heard = deaf.all().lstrip(b"x")
        when = "a client with a full socket read at last, and got "
        must(heard or not deaf.is_closed(), when + "the end of the connection before its answer", (6, "As far as it can"))
        must(is_whole(heard), when + ("of its answer %s" % fault(heard) if heard else "neither the rest of its answer nor an end"))
    return "A client did not read: others were served, the server slept, and at last it got its whole answer."


def few_bytes(server):
    """A socket that is nearly full takes a part of what it is given (rare.c)."""
    server.begin_rare("send")
    with Client(server) as client:
        client.say(HALF + REST)
        heard = client.all()
        must(is_whole(heard), "send() took ten bytes at a time, as it may, and a client got %s" % fault(heard or client.so_far()))
    return "send() took ten bytes at a time, and a client got its whole answer."


def not_yet(server):
    """poll() may say that there is something, and recv() that there is nothing after all (rare.c)."""
    server.begin_rare("recv")
    must(visit(server), "recv() said EAGAIN once, as it may although poll() has told of a client, and that client got no page")
    return "recv() said EAGAIN once, which means \"not yet\", and the client got its page."


def gone_between(server):
    """A client leaves after poll() has told of it, and before it is accepted (rare.c): beside another one, and alone."""
    server.begin_rare("accept")
    with Client(server) as first:
        until(lambda: server.sockets(proc.ESTABLISHED))
        visit(server)  # this is the one that leaves
        first.say(HALF + REST)
        must(is_whole(first.all()), "a client left between poll() and accept(), and another one asked and got no page")
    visits(server, 2)  # one of them leaves
    must(until(lambda: visit(server)), "a client left between poll() and accept() when nobody else was connected, and the next one got no page")
    return "A client left between poll() and accept(), and another one got its page."


def says_half(server):
    """It stops in the middle of a word. Others are served; and when it says the rest, so is it."""
    number = min(SILENT, server.queue())
    with crowd(server, number, HALF) as clients:
        must(until(lambda: visit(server)), "%d clients said half a request, and nobody else was served" % number, (6, "As far as it can"))
        sleeps_in_the_end(server, "%d clients had said half a request" % number)
        for client in clients:
            client.say(REST)
        answered = sum(map(is_whole, hear_all(clients)))
    must(answered == number, "%d clients said half a request, and later the rest: %d got a page" % (number, answered))
    return "%d clients said half a request: others were served, and in the end so were they." % number


def out_of_descriptors(server):
    """More clients than it may open descriptors for: the others wait in the queue, and the server sleeps."""
    settle(server)
    server.allow(3)
    with crowd(server, 3 + min(3, server.queue())):
        sleeps_in_the_end(server, "no descriptor was left for the next client")
    must(until(lambda: visit(server), 3 * SOON_SECONDS), "no descriptor was left for the next client, all of them left, and a visitor got no page")
    return "Clients came until no descriptor was left: the server slept, and went on when they had gone."


def many(server):
    """More than an array may have places for."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.ExitStack() as stack:
        for each in (os.getpid(), server.pid):
            resource.prlimit(each, resource.RLIMIT_NOFILE, (most, most))
        number = min(MANY, most - SPARE_DESCRIPTORS)
        count, before, few = 0, server.descriptors(), min(SILENT, server.queue())
        while count < number and until(lambda: server.descriptors() >= before + count, SOON_SECONDS / 2):
            try:
                stack.enter_context(crowd(server, few))
            except Missed as missed:  # perhaps the server has just ended
                must(False, "%d clients were connected, and %s" % (count, missed.saw))
            count += few
        sleeps_in_the_end(server, "%d clients were connected" % count)
    must(until(lambda: visit(server)), "%d clients were connected, all of them left, and a visitor got no page" % count)
    return "%d clients were silent, more than some arrays have places for." % count


def settle(server):
    """Until it makes no more threads or processes, and sleeps: it may have begun a moment ago."""
    def rests():
        before = census(server)
        return (server.rested() or server.busy(QUIET_SECONDS)[1] < MOST_BUSY) and census(server) == before

    until(rests, 3 * SOON_SECONDS)
    must(visit(server), "a client got no page")
    until(rests, 3 * SOON_SECONDS)


def rests(server):
    """Has it done what it can?"""
    return server.rested() or server.busy(QUIET_SECONDS)[1] < LEAST_BUSY


def census(server):
    return 1 + len(server.family()), server.threads()


def census_in_words(counts):
    return plural(counts[0], "process", "processes"), plural(counts[1], "thread")


def plural(number, noun, nouns=None):
    return "%d %s" % (number, noun if number == 1 else nouns or noun + "s")


# Where a page says more, if the reader has come to it, and if it is not where the reader's own server is.
READ = {starts_again: (1, "Start it again"), leave: (1, "Write to nobody"),
        closes_both: (2, "One becomes two"), three_end: (2, "The dead stay"), worker_killed: (3, "Kill a worker"),
        parent_killed: (3, "Kill the parent"), parent_gone: (3, "Kill the parent"), late_threads: (4, "Break it"),
        never_reads: (6, "When a send is partial"), few_bytes: (6, "When a send is partial"), not_yet: (6, "As far as it can"),
        out_of_descriptors: (7, "Do not pause")}
FIRST = [serves, idle]  # before anybody traces it: what turns in a loop would fill the trace
LOOP = [at_once, idle, never_reads, says_half, few_bytes, not_yet, gone_between, out_of_descriptors, many, frees]
_OWN = {1: [starts_again], 2: [closes_both, at_once, three_end], 3: [worker_killed, parent_killed, parent_gone, chld_ignored, same_workers],
        4: [late_threads, out_of_descriptors, frees], 5: [same_threads, at_once], 6: LOOP, 7: LOOP}
OF = {number: [serves, *[idle] * (number < 6), *own, *[goes_on] * (number > 1), leave, *[leaves_nothing] * (frees not in own)] for number, own in _OWN.items()}
