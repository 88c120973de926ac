"""06/sleeper: is a file served while Redis does not reply?"""

from loop import expect_asleep, expect_no_naps
from words import how_many

REASON = "awake"

PAGE = b"GET /guestbook HTTP/1.1\r\nHost: here\r\n\r\n"
FILE = b"GET /style.css HTTP/1.1\r\nHost: here\r\n\r\n"
VISITORS = 3
MOST_ASKING, TOO_MANY = 50, 5  # clients that may wait for Redis, and that come then
TIMEOUT, IDLE = 15, 10  # seconds; Redis may take a fifth of the first. The rest is for a busy machine


def check(ex):
    serves_meanwhile(ex)
    is_not_patient_for_ever(ex)


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
    ex.expect("file", "the whole file", lambda: file.hear().status == 200)
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
    for page in [*pages, pages[0]]:
        ex.expect("pages", "a page for each request", lambda: page.hear().status == 200, hint=2)
    ex.expect("once", "that Redis was asked once for each page",
              lambda: redis.counts().incr == len(pages) + 1,
              saw=lambda: "INCR, %s" % how_many(redis.counts().incr, "time"), hint=3)
    ex.expect_end("ends", server)


def turns_away(ex, server, pages):
    """So many wait for Redis that the next ones are refused; adds those that wait to `pages`."""
    pages += ex.hold(server, MOST_ASKING - VISITORS, PAGE)
    ex.wait(lambda: server.unread() <= len(PAGE))  # of the client that has asked twice
    refused = ex.hold(server, TOO_MANY, PAGE)
    ex.expect("refused", "503 at once for these %d, because %d wait for Redis" % (
        TOO_MANY, MOST_ASKING), lambda: [each.status() for each in refused] == [503] * TOO_MANY,
              within=2, saw=lambda: [each.status() for each in refused], hint=3)
    ex.expect("wait", "that the others still wait",
              lambda: not any(page.is_answered() for page in pages))


def is_not_patient_for_ever(ex):
    """Redis may take a fifth of --timeout. An idle connection's time is later, and whatever wakes the
    loop then is no clock of Redis'."""
    redis = ex.redis()
    redis.hold()
    server = ex.serve("--timeout", str(TIMEOUT), "--keep-alive", str(IDLE), redis=redis)
    idle, client = ex.client(server), ex.client(server)
    ex.expect("idles", "a file", lambda: idle.get("/style.css").status == 200)
    client.say(PAGE)
    ex.did("let a client ask for a page, and Redis reply no more")
    ex.expect("deadline", "504 when Redis does not reply at all",
              lambda: client.hear().status == 504, hint=3)
    ex.expect("clock", "that 504 after %d s, before another connection has idled for %d s" % (
                  TIMEOUT // 5, IDLE),
              lambda: idle.get("/style.css").status == 200,
              saw=lambda: "that the idle connection was closed first", hint=3, read="poll(2)")
    redis.release()
    ex.expect("again", "a page when Redis replies again",
              lambda: ex.client(server).get("/guestbook").status == 200, within=1, hint=3)
