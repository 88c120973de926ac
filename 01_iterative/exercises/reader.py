"""01/reader: how many system calls a head costs, and whether each cut of it is read right.

The calls are counted for all heads, so a server cannot be right for some of them, and use few calls
for others.
"""

import re
import string

from sleeps import expect_ticks
from words import how_many

REASON = "few"
SAN = "address,undefined"  # a write past the buffer ends the program

USUAL = (b"GET /guestbook HTTP/1.1\r\nHost: here\r\nUser-Agent: check\r\nAccept: */*\r\n"
         b"Accept-Language: en\r\n\r\n")
HEAD_MAX = 4096
MOST_READS = 3  # of a piece
CALLS = "%desc,%network"
# What returns more than 0, and has read nothing:
NO_READS = re.compile("accept|dup|fcntl|mmap|open|socket|.*(poll|select|send|write)")


def check(ex):
    chance = ex.chance()
    server = start(ex)
    right(ex, server, "answers", "a head in one piece", [some_head(chance)], 1)
    for of_the_end in (0, 1, 2, 3):
        head = some_head(chance)
        cut = len(head) - 4 + of_the_end
        right(ex, server, "pieces", "a head in two pieces, with %s of its end in the first"
              % how_many(of_the_end, "byte"), [head[:cut], head[cut:]], 2)
    head = some_head(chance, 100)
    right(ex, server, "pieces", "a head that comes a byte at a time",
          [head[at:at + 1] for at in range(len(head))], 2)
    full = some_head(chance, HEAD_MAX)
    at = chance.randrange(1000, 3000)
    right(ex, server, "full", "a head of HEAD_MAX bytes", [full[:at], full[at:]], 3)
    sleeps(ex, server, head)
    too_long(ex, server, chance)
    few(ex, server)
    server = start(ex)
    head = some_head(chance)
    right(ex, server, "rest", "a head with more behind its empty line",
          [head + b"What follows is not ours to count.\r\n\r\n"], 3, len(head))
    few(ex, server)


def start(ex):
    server = ex.serve(under=ex.traced(CALLS))
    server.pieces = []  # that its clients' heads have come in; 0: none is counted
    return server


def visitor(ex, server, pieces=0):
    server.pieces.append(pieces)
    return ex.client(server)


def some_head(chance, length=None):
    """A head of that length, or some: nobody can know it before its end has come."""
    begin, end = b"GET / HTTP/1.1\r\nX: ", b"\r\n\r\n"
    length = length or chance.randrange(60, 2000)
    more = chance.choices(string.ascii_lowercase.encode(), k=length - len(begin) - len(end))
    return begin + bytes(more) + end


def right(ex, server, key, expected, pieces, hint, length=None):
    """Sends the pieces, each after the server has taken the one before, and checks the answer."""
    length = length or sum(map(len, pieces))
    client = visitor(ex, server, len(pieces))
    for piece in pieces[:-1]:
        client.say(piece)
        expect_taken(ex, server)
    client.say(pieces[-1])
    answers = []

    def answered():
        answers.append(client.hear())
        return answers[-1] and answers[-1].status == 200 and answers[-1].body == b"%d\n" % length

    ex.expect(key, "%s: 200, and its length, %d" % (expected, length), answered,
              saw=lambda: answers[-1], hint=hint, read="tcp(7)")


def expect_taken(ex, server):
    """Says so only if it is not so: there are many pieces."""
    if not ex.wait(lambda: server.unread() == 0, 10):  # strace takes its time for each byte
        ex.expect("takes", "a server that takes the bytes of a piece before it waits for the next",
                  lambda: False, saw=lambda: "%d bytes not taken" % server.unread(), hint=1,
                  read="recv(2)")


def sleeps(ex, server, head):
    """Half a head, and then nothing: the server waits for the rest, and uses no processor."""
    client = visitor(ex, server)
    client.say(head[:50])
    expect_taken(ex, server)
    expect_ticks(ex, "sleeps", server, "a server that sleeps until the rest of a head comes", 1)
    client.close()


def too_long(ex, server, chance):
    """Heads without an end, in one piece and in pieces that would reach behind the buffer. And then
    another client, each time."""
    refused(ex, server, "a head of exactly HEAD_MAX bytes that has no end",
            [some_head(chance, HEAD_MAX + 4)[:HEAD_MAX]], told=True)
    endless = some_head(chance, 100000)[:-4]
    refused(ex, server, "100,000 bytes that have no end", [endless])
    for _ in range(3):
        size = chance.randrange(1000, HEAD_MAX)
        refused(ex, server, "the same in pieces of %d bytes" % size,
                [endless[at:at + size] for at in range(0, 5 * HEAD_MAX, size)])


def refused(ex, server, what, pieces, told=False):
    client = visitor(ex, server)
    for piece in pieces:
        client.say(piece)
        if not client.is_closed():
            expect_taken(ex, server)
    ex.did("sent %s" % what)
    if told:
        ex.expect("too long", "431", lambda: client.hear().status == 431, hint=3, read="recv(2)")
    ex.expect("too long", "an end of the connection", lambda: client.is_closed(5),
              saw=lambda: "a connection that stays", hint=3, read="recv(2)")
    ex.expect("too long", "a server that lives, and answers the next client",
              lambda: server.alive() and ask(ex, server, USUAL).status == 200, hint=3,
              read="recv(2)")


def ask(ex, server, head):
    client = visitor(ex, server, 1)
    client.say(head)
    return client.hear()


def few(ex, server):
    """Counts the calls for each head. One that took too many is named, the last of them."""
    server.end()
    calls = reads_of_clients(server.calls) + [[]] * len(server.pieces)
    heads = [(pieces, reads) for pieces, reads in zip(server.pieces, calls) if pieces]
    ex.did("counted the calls for each of %s" % how_many(len(heads), "head"))

    def is_few(pieces, reads):
        return 0 < len(reads) <= MOST_READS * pieces

    pieces, reads = next((each for each in heads[::-1] if not is_few(*each)), heads[-1])
    ex.expect("few", "at most %d calls that read a head in %s" % (
        MOST_READS * pieces, how_many(pieces, "piece")), lambda: is_few(pieces, reads),
              saw=lambda: in_words(reads), hint=1, read="recv(2)")


def in_words(reads, most=4):
    """How many, and what the first ones were."""
    first = ["%s() = %d" % (call.name, call.result) for call in reads[:most]]
    more = ["..."] * (len(reads) > most)
    return "%s: %s" % (how_many(len(reads), "call"), ", ".join(first + more))


def reads_of_clients(calls):
    """For each connection, in order: the calls that may have brought its bytes, from whatever
    descriptor and by whatever name."""
    clients = []
    for call in calls:
        if call.name.startswith("accept") and (call.result or 0) > 0:
            clients.append([])
        elif clients and (call.result or 0) > 0 and not NO_READS.match(call.name):
            clients[-1].append(call)
    return clients
