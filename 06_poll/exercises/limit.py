"""06/limit: may fifty clients wait for Redis, and no more? And is a place given back, however the wait ends?"""

import os
import types
from collections import Counter

from sleeps import expect_asleep, expect_no_naps
from words import how_many

REASON = "refused"

PAGE = b"GET /guestbook HTTP/1.1\r\nHost: here\r\n\r\n"
FILE = b"GET /style.css HTTP/1.1\r\nHost: here\r\n\r\n"
VISITORS = 3
MOST_ASKING, TOO_MANY = 50, 5  # clients that may wait for Redis, and that come then


def check(ex):
    serves_meanwhile(ex)
    gives_back(ex)
    fails_at_once(ex)


def serves_meanwhile(ex):
    """--timeout is long, so that the server does not give Redis up while the check looks."""
    redis = ex.redis()
    redis.hold()
    server = ex.serve("--timeout", "500", "--keep-alive", "500", redis=redis)
    pages = ex.hold(server, VISITORS, PAGE)
    ex.expect("asks", "a command sent to Redis", lambda: redis.held() == 1, within=5)
    ex.did("held back the replies of Redis, and let one more client ask for a file")
    file = ex.client(server)
    file.say(FILE)
    ex.expect("awake", "the file, while Redis is silent", file.is_answered, within=2,
              saw=lambda: "nothing: the loop waits for Redis", hint=1, read="poll(2)")
    ex.expect_status("file", "the whole file", file, 200)
    ex.expect("one", "one process with one thread",
              lambda: not server.children() and server.threads() == 1,
              saw=lambda: "%s, %s" % (how_many(len(server.children()), "child", "children"),
                                      how_many(server.threads(), "thread")))

    pages[0].say(PAGE)
    ex.did("let one of the clients that wait for a page ask for another one")
    expect_asleep(ex, "sleeps", server, "a loop that sleeps until there is something to do", hint=3,
                  read="poll(2)")
    expect_no_naps(ex, server, file)

    turns_away(ex, server, pages)
    ex.did("let Redis reply")
    redis.release()
    ex.expect("pages", "a page for each of the %d that waited" % len(pages),
              lambda: statuses(pages) == {200: len(pages)}, within=5, saw=lambda: in_words(pages), hint=3)
    ex.expect("another", "the other page for the client that has asked for two",
              lambda: pages[0].hear().status == 200, saw=lambda: "another status, or none", hint=3)
    ex.expect("once", "that Redis was asked once for each page",
              lambda: redis.asked() == len(pages) + 1,
              saw=lambda: "INCR, %s" % how_many(redis.asked(), "time"), hint=3)
    ex.expect_end("ends", server)


def turns_away(ex, server, pages):
    """So many wait for Redis that the next ones are refused; adds those that wait to `pages`."""
    pages += ex.hold(server, MOST_ASKING - len(pages), PAGE)
    ex.wait(lambda: server.unread() <= len(PAGE))  # of the client that has asked twice
    refused = ex.hold(server, TOO_MANY, PAGE)
    ex.expect("refused", "503 at once for these %d, because %d wait for Redis" % (
        TOO_MANY, MOST_ASKING), lambda: statuses(refused) == {503: TOO_MANY},
              within=2, saw=lambda: in_words(refused), hint=1)
    ex.expect("wait", "that the %d who came first still wait" % MOST_ASKING,
              lambda: not any(page.is_answered() for page in pages), saw=lambda: in_words(pages), hint=3)


def gives_back(ex):
    """Those that wait are told that Redis has gone. Then as many may wait as before."""
    redis = ex.redis()
    server = ex.serve("--timeout", "500", "--keep-alive", "500", redis=redis)
    for again in "", ", and once more":
        redis.hold()
        pages = []
        turns_away(ex, server, pages)
        redis.hang_up()
        ex.did("had Redis end its connections%s" % again)
        ex.expect("told", "an answer for each that waited", lambda: all(each.status() for each in pages), within=5,
                  saw=lambda: "none for %d" % sum(not each.status() for each in pages), hint=3)
        redis.release()
        ex.expect("again", "a page when Redis is there again",
                  lambda: ex.client(server).visit("/guestbook") == 200, within=5,
                  saw=lambda: "none, time and again", hint=3)


def fails_at_once(ex):
    """No command can even be handed over while there is no Redis. Its socket's name comes later."""
    late = os.path.join(ex.folder, "late.sock")
    server = ex.serve("--timeout", "500", "--keep-alive", "500", redis=types.SimpleNamespace(where="unix:" + late))
    visitors = MOST_ASKING + TOO_MANY
    told = Counter()

    def all_told():
        told.update(ex.client(server).visit("/guestbook") for _ in range(visitors))
        return told == {503: visitors}

    ex.did("let %d clients ask for a page, one after the other, while there is no Redis" % visitors)
    ex.expect("none there", "503 for each of them", all_told, saw=lambda: counted(told), hint=2)
    os.symlink(ex.redis().where[len("unix:"):], late)
    ex.did("started Redis")
    ex.expect("there", "a page, now that there is one", lambda: ex.client(server).visit("/guestbook") == 200,
              within=5, saw=lambda: "none, time and again", hint=1)


def statuses(clients):
    return Counter(each.status() for each in clients)


def in_words(clients):
    return counted(statuses(clients))


def counted(found):
    """A Counter of statuses, as one would say it."""
    return ", ".join("%s for %d" % (status or "no answer", number) for status, number in found.items())
