"""asks: the traps of ask.c, in which each visitor asks Redis for a number. As in traps, none of them knows how the
server does it: a number in the page is enough, and the status 503 if there is none.
"""

import contextlib
import re
import time

import traps
from traps import must, plural, rests, sleeps_in_the_end, until
from tried import HALF, REST, SOON_SECONDS, Client, crowd, fault, hear_all, is_whole
import waiting

MANY, AT_ONCE, FOUR, THREE = 200, 8, 4, 3  # visitors; fewer of them, if its queue is short
NEAR_MS, FAR_MS = 5, 20  # to Redis
TRIES, MOST_WORKERS = 3, 100
ASKED_SECONDS = 5  # a busy machine takes its time to ask Redis who is held


def counts(server):
    """Some ask at once, and Redis is so far away that their replies come together."""
    begin(server, NEAR_MS)
    numbers, number = [], min(AT_ONCE, server.queue())
    while len(numbers) < MANY:
        with crowd(server, number, HALF + REST) as clients:
            must_be_numbers(hear_all(clients), "%s asked at the same moment" % plural(number, "client"), numbers)
    others = len(numbers) - len({*numbers})
    must(not others, "of %d visitors %d got a number that another one had got" % (len(numbers), others))
    return "%d visitors got %d different numbers." % (len(numbers), len(numbers))


def wait(server):
    """For Redis at the same time, and in chapter 1 one after another. A busy machine gets more tries."""
    begin(server, FAR_MS)
    number, is_first, waits = min(FOUR, server.queue()), server.chapter == 1, []
    one_by_one = number * FAR_MS

    def waited_together():
        with crowd(server, number) as clients:
            began = time.monotonic()
            for client in clients:
                client.say(HALF + REST)
            heard = hear_all(clients)
            waits.append(1000 * (time.monotonic() - began))
        must_be_numbers(heard, "%d visitors came at once" % number, [])
        return is_first or waits[-1] < one_by_one - FAR_MS / 2

    is_this_chapter_s = until(waited_together, SOON_SECONDS)
    seen = "Redis was %d ms away, and the last of %d visitors at once had its number after %d ms" % (FAR_MS, number, min(waits))
    must(min(waits) >= (one_by_one if is_first else FAR_MS), seen + ": not each of them has waited for Redis")
    must(is_this_chapter_s, "%s. This has the form of chapter %d, and the waits of chapter 1" % (seen, server.chapter))
    return seen + "."


def leaves_while_asking(server):
    """In three ways. Whoever comes then may get its memory, and must not get its number."""
    begin(server, 0)
    number, before = min(THREE, server.queue()), server.descriptors()  # workers of a pool may connect to Redis later
    for leave in (Client.close, Client.reset, Client.leave):
        server.store.hold()
        with crowd(server, number, HALF + REST) as clients:
            must(until(server.store.held, ASKED_SECONDS) and until(lambda: rests(server), ASKED_SECONDS), "clients came, and Redis was asked nothing")
            leave(clients[0])
            with Client(server) as late:
                sleeps_in_the_end(server, "a client left while it was waiting for its number")
                server.store.release()
                numbers = [*map(number_in, hear_all(clients[1:]))]
                late.is_closed()  # reads what has come
                must(not late.so_far(), "a client left while it was waiting for its number, and the next one got an answer before it asked")
                late.say(HALF + REST)
                numbers.append(number_in(late.all()))
        must(all(numbers) and len({*numbers}) == number and numbers[-1] == max(numbers), "a client left while it was waiting for its number. "
             "The next ones, and at last one that came later, got %s" % ", ".join(str(number or "none") for number in numbers))
    must(server.chapter < 6 or until(lambda: server.descriptors() <= before), "clients left while they were waiting for their numbers, "
         "and afterwards the server had %d descriptors, before them %d" % (server.descriptors(), before))
    return "Clients left while they were waiting for their numbers, and nobody else got these."


def goes_and_comes_back(server):
    """While nobody asks, and while some have asked."""
    begin(server, 0)
    server.redis(0)
    returns(server, "Redis was started again")
    for asking in (0, min(THREE, server.queue())):
        server.store.hold()
        with contextlib.ExitStack() as stack:
            clients = ask(server, asking, stack) if asking else []
            server.redis(None)
            heard = hear_all(clients)
        server.store.release()
        must(all(map(is_away, heard)), "clients had asked, Redis went away, and one of them got, in place of status 503, %s" % (
            next((words(each) for each in heard if not is_away(each)), "")))
        must(until(lambda: is_away(visit(server))), "Redis was gone, and a client got, in place of status 503, %s" % words(visit(server)))
        must(all(is_away(visit(server)) for _ in range(TRIES)), "Redis was gone, and not every client got the status 503")
        sleeps_in_the_end(server, "Redis was gone")
        server.redis(0)
        returns(server, "Redis was gone, and came back")
    return "Without Redis there was a 503, and when it was back there were numbers."


def ask(server, number, stack):
    """Clients that ask at once, until Redis is asked. A pool's worker may first find that its old connection has ended."""
    for _ in range(MOST_WORKERS):
        clients = stack.enter_context(crowd(server, number, HALF + REST))
        if not until(lambda: server.store.held() or all(client.is_closed() for client in clients), ASKED_SECONDS) or server.store.held():
            break
    must(server.store.held(), "clients came, and Redis was asked nothing")
    return clients


def returns(server, when):
    """Each worker of a pool may first find that its old connection has ended, and says so. Silence is something else."""
    def has_number():
        answers = iter(lambda: visit(server), b"")
        return any(number_in(answer) for _, answer in zip(range(MOST_WORKERS), answers))

    must(until(has_number), "%s, and %g s later a client got no number, but %s" % (
        when, waiting.patient(SOON_SECONDS), words(visit(server))))


# ---- what visitors hear -------------------------------------------------------------------------


def begin(server, ms):
    """With Redis so far away, until a first visitor has a number."""
    server.redis(ms)
    server.begin_again()
    returns(server, "the server began")


def visit(server):
    with Client(server) as client:
        client.say(HALF + REST)
        return client.all()


def number_in(answer):
    """That of the visitor; None if there is none."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"chunked" in head.lower():
        body = body.partition(b"\r\n")[2]
    found = re.search(rb"\d+", body)
    return int(found[0]) if is_whole(answer) and found else None


def must_be_numbers(heard, when, numbers):
    """Which come behind `numbers`."""
    for answer in heard:
        must(number_in(answer) is not None, "%s, and one of them got no number, but %s" % (when, words(answer)))
        numbers.append(number_in(answer))


def is_away(answer):
    return bool(re.match(rb"HTTP/1\.\d 503 ", answer))


def words(answer):
    return fault(answer) or "a page without a number"


COMMON = [counts, wait, leaves_while_asking, goes_and_comes_back]
# Memory is counted where one thread serves all clients. In a pool, 2,000 visits add too little to each worker, and
# AddressSanitizer keeps something of each thread of chapter 4.
OF = {1: [*COMMON, traps.frees], **{number: [*COMMON, traps.leaves_nothing] for number in range(2, 6)},
      **{number: [*COMMON, *traps.LOOP] for number in (6, 7)}}
READ = {leaves_while_asking: (7, "Free a client that is asking")}
