"""05/little: how many pages a second does the project's prethreading serve, and was that predicted?

A round is a few waves of pages, and is measured from the first request to the last response. Other
work on the machine can only make a round slower. So there are several rounds (more if PATIENCE is
larger), and the best one counts.
"""

import itertools
import socket
import threading
import time

from outcome import patient

REASON = "many"

PAGE = b"GET /guestbook HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
WAVES = 4
ROUNDS = 3
NEAR = 0.15
LIMIT_SECONDS = 30

# key, workers, milliseconds, clients, hint
CASES = [("many", 4, 100, 12, 1), ("few", 8, 100, 3, 2), ("further", 6, 150, 24, 3)]


def check(ex):
    for key, workers, ms, clients, hint in CASES:
        predicted = prediction(ex, workers, ms, clients)
        server = ex.project("prethreading", "--workers", str(workers), redis=ex.slow_redis(ms))
        pages = WAVES * min(workers, clients)
        measured = 0
        for _ in range(round(patient(ROUNDS))):
            measured = max(measured, pages_per_second(server, clients, pages))
            if predicted <= measured * (1 + NEAR):
                break  # near, or too low: no further round would bring that closer
        ex.did("let %d clients ask for %d pages, each answer of Redis %d ms late" % (
            clients, pages, ms))
        ex.expect(key, "%d workers, %d ms, %d clients: predicted within 15 %%" % (
            workers, ms, clients), lambda: is_near(predicted, measured),
                  saw=lambda: "%.1f pages a second, and %.1f predicted" % (measured, predicted),
                  hint=hint)
        server.end()


def prediction(ex, *arguments):
    """The number that the learner's program prints."""
    run = ex.run(*arguments)
    ex.expect("prints", "a number for %d workers, %d ms, %d clients" % arguments,
              lambda: run.status == 0 and is_number(run.stdout),
              saw=lambda: "status %d, and %r" % (run.status, run.stdout), read="printf(3)")
    return float(run.stdout)


def is_number(text):
    try:
        return float(text) >= 0
    except ValueError:
        return False


def is_near(predicted, measured):
    return abs(predicted - measured) <= NEAR * measured


def pages_per_second(server, clients, pages):
    """Asks for so many pages, from so many clients at a time."""
    tickets = itertools.count()  # next() on it is one step of the interpreter
    failures = []

    def ask_again_and_again():
        try:
            while next(tickets) < pages:
                ask(server)
        except OSError as error:
            failures.append(error)

    crowd = [threading.Thread(target=ask_again_and_again, daemon=True) for _ in range(clients)]
    begin = time.monotonic()
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    seconds = time.monotonic() - begin
    return 0 if failures else pages / seconds


def ask(server):
    """Asks for one page, and reads to the end of the connection."""
    with socket.create_connection((server.host, server.port), LIMIT_SECONDS) as client:
        client.sendall(PAGE)
        begin = client.recv(65536)
        if not begin.startswith(b"HTTP/1.1 200 "):
            raise OSError("no page: %r" % begin[:40])
        while client.recv(65536):
            pass
