"""07/uring: whether the eighth server does what the other seven do. `make grade` looks closer."""

import ctypes
import errno
import os
import re
import signal

from lib.measuring import machine, meter
from loop import descriptors_named, expect_asleep
from words import how_many

REASON = "held"

HELD = 200
PAGE = b"GET /guestbook HTTP/1.1\r\nHost: here\r\n\r\n"
HALF = b"GET /style.css HTTP/1.1\r\n"
REST = b"Host: here\r\n\r\n"
FORM = b"guest-name=Ada&guest-remarks=The+eighth"
POST = (b"POST /guestbook HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\n" % len(FORM)) + FORM
IO_URING_SETUP, IO_URING_ENTER = 425, 426  # their numbers on every machine, since Linux 5.1
MULTISHOT_ACCEPT = (5, 19)  # since that one


def check(ex):
    need_io_uring(ex)
    serves(ex)
    has_deadlines(ex)
    drains(ex)


def need_io_uring(ex):
    """Many container runtimes forbid it, and an administrator may (kernel.io_uring_disabled)."""
    release = os.uname().release
    if tuple(map(int, re.findall(r"\d+", release)[:2])) < MULTISHOT_ACCEPT:
        ex.skip("io_uring needs Linux %d.%d here, and this is %s" % (*MULTISHOT_ACCEPT, release))
    libc = ctypes.CDLL(None, use_errno=True)
    parameters = ctypes.create_string_buffer(120)  # struct io_uring_params
    ring = libc.syscall(IO_URING_SETUP, 1, parameters)
    if ring < 0:
        ex.skip("io_uring: %s" % os.strerror(ctypes.get_errno() or errno.ENOSYS))
    os.close(ring)


def serves(ex):
    redis = ex.redis()
    server = ex.serve("--timeout", "500", redis=redis)
    ex.expect("ring", "a ring, and no epoll", lambda: descriptors_named(server, "[io_uring]") == 1
              and descriptors_named(server, "[eventpoll]") == 0, read="io_uring_queue_init(3)")
    silent, half = ex.hold(server, HELD // 2, b""), ex.hold(server, HELD // 2, HALF)
    client = ex.client(server)
    client.say(HALF + REST)
    ex.expect("held", "a file for another client", client.is_answered, within=2,
              saw=lambda: "nothing: it waits for one client's operation at a time", hint=1,
              read="io_uring(7)")
    with open(os.path.join(machine.TOP, "public", "style.css"), "rb") as file:
        style = file.read()
    ex.expect("file", "the file as it is", lambda: client.hear().body == style, hint=2)
    with open(os.path.join(machine.TOP, "public", "tux.png"), "rb") as file:
        tux = file.read()
    ex.expect("large", "a larger one", lambda: client.get("/tux.png").body == tux, hint=2)
    expect_asleep(ex, "sleeps", server, "a loop that sleeps while no client sends anything", hint=3)
    ex.expect("waits", "that it sleeps in io_uring_enter(2), number %d" % IO_URING_ENTER,
              lambda: call_of(server) in (None, IO_URING_ENTER), saw=lambda: "number %d" % call_of(server),
              within=1, hint=1, read="io_uring_enter(2)")
    for each in silent:
        each.say(HALF)
    for each in [*silent, *half]:
        each.say(REST)
    ex.did("let those %d clients send the rest" % HELD)
    ex.expect("rest", "a file for each of them",
              lambda: all(each.hear().status == 200 for each in [*silent, *half]), hint=2)
    ex.expect("one", "one process with one thread",
              lambda: not server.children() and threads(server) == 1,
              saw=lambda: "%s, %s" % (how_many(len(server.children()), "child", "children"),
                                      how_many(threads(server), "thread")))
    guestbook(ex, server, redis, client)
    for each in [*silent, *half]:
        each.close()
    ex.expect("closes", "that the server closes the connections of clients that leave",
              lambda: server.descriptors() < HELD, within=2,
              saw=lambda: "%d descriptors" % server.descriptors(), hint=3)


def call_of(server):
    """The number of the system call in which it sleeps; None if we may not know."""
    words = meter.read("/proc/%d/syscall" % server.pid).split()
    return int(words[0]) if words and words[0] != "running" else None


def threads(server):
    """Without those that the kernel may make for the ring: iou-wrk, iou-sqp."""
    folder = "/proc/%d/task" % server.pid
    number = 0
    for task in os.listdir(folder):
        with open(os.path.join(folder, task, "comm"), encoding="ascii") as name:
            number += not name.read().startswith("iou-")
    return number


def guestbook(ex, server, redis, client):
    client.say(POST)
    ex.expect("post", "303 for an entry", lambda: client.hear().status == 303, hint=3)
    ex.expect("page", "a page that shows it",
              lambda: b"The eighth" in client.get("/guestbook").body, hint=3)
    ex.expect("connection", "one connection to Redis", lambda: redis.connections() == 1,
              saw=redis.connections, hint=3)
    redis.hang_up()
    ex.did("let Redis hang up, as if it were restarted")
    ex.expect("again", "a page over a new connection",
              lambda: client.get("/guestbook").status == 200, within=2, hint=3)
    redis.hold()
    asks = ex.client(server)
    asks.say(PAGE)
    ex.wait(lambda: redis.held() == 1)
    ex.expect("meanwhile", "a file, while Redis is silent",
              lambda: client.get("/style.css").status == 200, hint=3)
    redis.release()
    ex.expect("answered", "the page, when Redis answers", lambda: asks.hear().status == 200, hint=3)


def has_deadlines(ex):
    server = ex.serve("--timeout", "1", "--keep-alive", "1")
    silent, half = ex.client(server), ex.client(server)
    half.say(HALF)
    ex.expect("408", "408 for half a request", lambda: half.hear().status == 408, hint=3,
              read="io_uring_submit_and_wait_timeout(3)")
    ex.expect("silent", "an end for a client that says nothing", silent.is_closed, within=3, hint=3)
    ex.expect("503", "503 for a page without a Redis",
              lambda: ex.client(server).get("/guestbook").status == 503, hint=3)


def drains(ex):
    redis = ex.redis()
    redis.hold()
    server = ex.serve("--timeout", "20", redis=redis)
    asks = ex.client(server)
    asks.say(PAGE)
    ex.wait(lambda: redis.held() == 1)
    os.kill(server.pid, signal.SIGTERM)
    ex.did("sent SIGTERM, while a page waits for Redis")
    redis.release()
    ex.expect("drains", "the page", lambda: asks.hear().status == 200, hint=3, read="signalfd(2)")
    ex.expect_end("ends", server, None, hint=3)
