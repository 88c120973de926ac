"""07/orange: do all workers but one ask Redis, for clients that have gone? And what does a loop do?"""

import json
import signal

from outcome import patient

REASON = "orange"

WORKERS = range(6, 21)  # how many are asked for is drawn; the wall needs one more
DESCRIPTORS = 5  # two connections, beside standard input, output and error
STATUS = b"GET /status.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def check(ex):
    redis = ex.redis()
    redis.hold()
    workers = ex.chance().choice(WORKERS)
    server = ex.project("prethreading", "--workers", str(workers + 1), "--timeout", "500",
                        redis=redis)
    paint(ex, server, workers)
    ex.expect("orange", "%d workers asking, one that reads this question, and none that waits" %
              workers, lambda: states(ex, server) == ["asking"] * workers + ["reading"], within=3,
              saw=lambda: ", ".join(states(ex, server)), hint=1, read="close(2)")
    server.end(signal.SIGKILL)  # its workers would wait for Redis

    server = ex.project("epoll", "--timeout", "500", redis=redis)
    paint(ex, server, workers)
    ex.expect("loop", "%d connections of epoll's that ask Redis" % workers,
              lambda: board(ex, server)["now"]["asking"] == workers, within=3,
              saw=lambda: board(ex, server)["now"])
    ex.did("asked epoll for a file: %s" % ex.client(server).get("/style.css").status)


def paint(ex, server, workers):
    """Runs the program to its end."""
    run = ex.run(server.port, workers, descriptors=DESCRIPTORS)
    ex.expect("orange", "a program that has said its %d requests, and ends with status 0" % workers,
              lambda: run.status == 0, saw=lambda: "status %d: %s" % (
                  run.status, run.stderr.strip()), hint=1, read="close(2)")


def states(ex, server):
    return sorted(slot["state"] for slot in board(ex, server)["slots"])


def board(ex, server):
    client = ex.client(server)
    client.seconds = patient(1)
    client.say(STATUS)
    answer = client.hear()
    client.close()
    return json.loads(answer.body)
