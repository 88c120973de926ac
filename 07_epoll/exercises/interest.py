"""07/interest: how often the kernel is told of a change, and whether the loop still sleeps.

strace counts in both parts, so that a server cannot know which one it is in.
"""

from loop import Sleeps, expect_asleep, expect_no_naps

REASON = "epoll_ctl"

PAGE = b"GET /guestbook HTTP/1.1\r\nHost: here\r\n\r\n"
LARGE = b"GET /tux.png HTTP/1.1\r\nHost: here\r\n\r\n"
REQUESTS = 100
CLIENTS = 5
MOST = 1.2  # epoll_ctl() a request
CALLS = "epoll_ctl,io_uring_enter"


def check(ex):
    counts(ex)
    sleeps_while_redis_is_asked(ex)


def counts(ex):
    """Several clients ask in turn, over kept connections. The calls at their start count, too."""
    server = ex.serve("--timeout", "500", "--keep-alive", "500", redis=ex.redis(),
                      under=ex.traced(CALLS))
    clients = [ex.client(server) for _ in range(CLIENTS)]
    answers = [clients[number % CLIENTS].get("/guestbook" if number % 4 else "/style.css")
               for number in range(REQUESTS)]
    statuses = {answer and answer.status for answer in answers}
    ex.did("let %d clients ask %d times over kept connections, for pages and files" % (
        CLIENTS, REQUESTS))
    ex.expect("answers", "200 each time", lambda: statuses == {200}, saw=lambda: statuses)
    server.end()
    each = len(server.calls) / REQUESTS
    ex.expect("epoll_ctl", "at most %g calls of epoll_ctl() a request, and one for each client" % MOST,
              lambda: CLIENTS / REQUESTS <= each <= MOST, saw=lambda: "%.2f" % each,
              hint=1 if each > 2 else 2,
              read="epoll_ctl(2)")


def sleeps_while_redis_is_asked(ex):
    redis = ex.redis()
    redis.hold()
    server = ex.serve("--timeout", "500", "--keep-alive", "500", redis=redis,
                      under=ex.traced(CALLS))
    talks, leaves, resets, slow = clients = [ex.client(server) for _ in range(4)]
    for client in clients:
        client.get("/style.css")  # so that the kernel knows each of them
        client.say(PAGE)
    ex.did("let four clients ask for a page")
    ex.expect("asks", "that the loop asks Redis", lambda: redis.held() == 1, within=5)
    ex.wait(Sleeps(server))  # then it has read all four requests
    talks.say(PAGE)
    slow.say(LARGE * 100)
    leaves.half_close()
    resets.reset()
    ex.did("let them send more, leave and reset, while Redis is silent")
    expect_asleep(ex, "sleeps", server, "a loop that sleeps until Redis answers", hint=3, read="epoll_ctl(2)")
    expect_no_naps(ex, server, ex.client(server))

    redis.release()
    ex.did("let Redis answer")
    for client, which in ((talks, "the first of two pages"), (talks, "the second one"),
                          (leaves, "the page of a client that has closed its side")):
        ex.expect("pages", which, lambda: client.hear().status == 200, hint=3)
    ex.expect("begins", "that the client that does not read is sent something", slow.is_answered,
              within=5)
    expect_asleep(ex, "full", server, "a loop that sleeps when the socket is full", hint=2)
    answers = [slow.hear() for _ in range(101)]
    ex.expect("rest", "all of its answers, when it reads", lambda: all(
        answer and answer.status == 200 for answer in answers), hint=2)
    ex.expect_end("ends", server)
