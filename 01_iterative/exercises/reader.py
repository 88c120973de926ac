"""01/reader: how many system calls a head costs, and whether each cut of it is read right."""

from words import how_many

REASON = "few"

USUAL = (b"GET /guestbook HTTP/1.1\r\nHost: here\r\nUser-Agent: check\r\nAccept: */*\r\n"
         b"Accept-Language: en\r\n\r\n")
MOST_READS = 3
READS = {"recvfrom", "recvmsg", "read", "readv"}


def check(ex):
    server = ex.serve()
    right(ex, server, "answers", "a head in one piece", [USUAL], 1)
    cut = USUAL.index(b"\r\n\r\n")
    for place in (1, cut + 1, cut + 2, cut + 3):
        right(ex, server, "pieces", "a head in two pieces, %s first" % how_many(place, "byte"),
              [USUAL[:place], USUAL[place:]], 2)
    right(ex, server, "pieces", "a head that comes a byte at a time",
          [USUAL[at:at + 1] for at in range(len(USUAL))], 2)
    too_long(ex, server)
    few(ex)
    right(ex, server, "rest", "a head with more behind its empty line",
          [USUAL + b"What follows is not ours to count.\r\n\r\n"], 3, len(USUAL))


def right(ex, server, key, expected, pieces, hint, length=None):
    """Sends the pieces, each after the server has read the one before, and checks the answer."""
    length = length or sum(map(len, pieces))
    client = ex.client(server)
    for piece in pieces:
        client.say(piece)
        ex.wait(lambda: server.unread() == 0, 1)
    answers = []

    def answered():
        answers.append(client.hear())
        return answers[-1] and answers[-1].status == 200 and answers[-1].body == b"%d\n" % length

    ex.expect(key, "%s: 200, and its length, %d" % (expected, length), answered,
              saw=lambda: answers[-1], hint=hint, read="tcp(7)")


def too_long(ex, server):
    """A head without an end, and then another client."""
    endless = ex.client(server)
    endless.say(b"GET / HTTP/1.1\r\nX: " + b"x" * 100000)
    ex.did("sent 100,000 bytes without an empty line")
    ex.expect("too long", "an end of the connection, with 431 or without",
              lambda: endless.is_closed(5), saw=lambda: "a connection that stays",
              hint=3, read="recv(2)")
    ex.expect("too long", "a server that lives, and answers the next client",
              lambda: server.alive() and ask(ex, server).status == 200, hint=3, read="recv(2)")


def ask(ex, server):
    client = ex.client(server)
    client.say(USUAL)
    return client.hear()


def few(ex):
    """Counts the calls of a client whose head came in one piece."""
    server = ex.serve(under=ex.traced("accept,accept4," + ",".join(sorted(READS))))
    ask(ex, server)
    ex.did("sent a head of %d bytes, in one piece, and counted the calls" % len(USUAL))
    server.end()
    reads = reads_of_client(server.calls)
    ex.expect("few", "at most %d calls that read it" % MOST_READS,
              lambda: 0 < len(reads) <= MOST_READS, saw=lambda: in_words(reads), hint=1,
              read="recv(2)")


def in_words(reads, most=4):
    """How many, and what the first ones were."""
    first = ["%s() = %d" % (call.name, call.result) for call in reads[:most]]
    more = ["..."] * (len(reads) > most)
    return "%s: %s" % (how_many(len(reads), "call"), ", ".join(first + more))


def reads_of_client(calls):
    """The calls that brought bytes of the first connection accepted."""
    client, reads = None, []
    for call in calls:
        if call.name.startswith("accept") and call.result is not None and call.result >= 0:
            client = str(call.result)
        elif call.name in READS and call.arguments.split(",")[0] == client and call.result > 0:
            reads.append(call)
    return reads
