"""05/little: how many pages a second does the project's prethreading serve, and was that predicted?

Each client comes VISITS times in a round. What counts are the pages after as many as there are
clients. Other work on the machine can only make a round slower. So there are several rounds (more
if PATIENCE is larger), and the best one counts.
"""

import re
import threading
import time

from client import Client
from waiting import Missed, patient

REASON = "many"

VISITS = 2
ROUNDS = 3
NEAR = 0.15
LIMIT_SECONDS = 30


def cases(chance):
    """key, workers, ms, clients, pause, hint. No number is near the answers to all of them."""
    workers = chance.randint(3, 5)
    yield "many", workers, chance.randint(30, 40), 3 * workers, 0, 1
    yield "few", chance.randint(8, 12), chance.randint(100, 120), chance.randint(2, 4), 0, 2
    ms = chance.randint(40, 60)
    yield "pause", chance.randint(9, 12), ms, chance.randint(5, 8), chance.randint(6, 10) * ms, 2
    workers, ms = chance.randint(5, 7), chance.randint(80, 110)
    yield "further", workers, ms, 4 * workers, 3 * ms, 3


def check(ex):
    for key, workers, ms, clients, pause, hint in cases(ex.chance()):
        predicted = prediction(ex, workers, ms, clients, pause)
        server = ex.project("prethreading", "--workers", str(workers), redis=ex.slow_redis(ms))
        measured = 0
        for _ in range(round(patient(ROUNDS))):
            measured = max(measured, pages_per_second(server, clients, pause))
            if predicted <= measured * (1 + NEAR):
                break  # near, or too low: no further round would bring that closer
        ex.did("let %d clients come %d times, each answer of Redis %d ms late" % (
            clients, VISITS, ms))
        ex.expect(key, "%d workers, %d ms, %d clients, a pause of %d ms: predicted within 15 %%" % (
            workers, ms, clients, pause), lambda: is_near(predicted, measured),
                  saw=lambda: "%.1f pages a second, and %.1f predicted" % (measured, predicted),
                  hint=hint)
        server.end()


def prediction(ex, *arguments):
    """The number that the learner's program prints."""
    run = ex.run(*arguments)
    ex.expect("prints", "a number for %d workers, %d ms, %d clients, %d ms" % arguments,
              lambda: run.status == 0 and re.fullmatch(r"\d{1,9}(\.\d+)?", run.stdout.strip()),
              saw=lambda: "status %d, and %r" % (run.status, run.stdout), read="printf(3)")
    return float(run.stdout)


def is_near(predicted, measured):
    return abs(predicted - measured) <= NEAR * measured


def pages_per_second(server, clients, pause):
    """Lets so many clients come, each VISITS times, with a pause of so many ms before the next."""
    came = []  # when a page did
    failures = []

    def visit():
        try:
            for _ in range(VISITS):
                client = Client(server.host, server.port, LIMIT_SECONDS)
                failures.append(client.visit("/guestbook") != 200)
                came.append(time.monotonic())
                time.sleep(pause / 1000)
        except (Missed, OSError):
            failures.append(True)

    crowd = [threading.Thread(target=visit, daemon=True) for _ in range(clients)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    came.sort()
    return 0 if any(failures) else (len(came) - clients) / (came[-1] - came[clients - 1])
