"""06/computes: who waits while a page computes? Compares the guesses with what the servers do."""

import os
import select
import signal

import top
from sleeps import DEPTH, ENTRIES, FILE, computing_redis, computing_root, let_compute

REASON = "one page"

WITH_WORKERS = top.of_kind("maker") + top.of_kind("pool")
WALKS = 1  # of the page: 0.2 s
LOOKS = {0: 5, 1: 2}  # by the guess


def check(ex):
    guesses = read(ex)
    root = computing_root(ex.folder, WALKS)
    redis = computing_redis(ex)
    ex.did("made a page of {:,} steps that waits for nothing".format(WALKS * ENTRIES ** DEPTH))
    for name in top.BOOK:
        compare(ex, "one page", name, guesses[name][0], lambda: waits(ex, root, redis, name, 1))
    for name in top.BOOK:
        workers = ["--workers", "2"] if name in WITH_WORKERS else []
        compare(ex, "two pages", name, guesses[name][1],
                lambda: waits(ex, root, redis, name, 2, *workers))


def read(ex):
    """What the program prints: {name: [one page, two pages]}."""
    printed = ex.run().stdout
    rows = [line.split() for line in printed.splitlines()]
    guesses = {row[0]: [int(word) for word in row[1:]] for row in rows
               if len(row) == 3 and set(row[1:]) <= {"0", "1"}}
    ex.expect("prints", "a line for each of the seven servers: its name, and two numbers, 0 or 1",
              lambda: sorted(guesses) == sorted(top.BOOK), saw=lambda: repr(printed))
    return guesses


def compare(ex, key, name, guess, look):
    """That a visitor does not wait can be seen at once. On a busy machine a visitor may wait for
    another reason, so it has to wait only if it waits in every look."""
    looks = (look() for _ in range(LOOKS[guess]))
    waited = all(looks)
    words = {True: "has to wait", False: "does not wait"}
    ex.expect(key, "%s: a visitor that wants a file %s" % (name, words[waited]),
              lambda: guess == waited, saw=lambda: "your guess: %s" % words[bool(guess)],
              hint=1 if key == "one page" else 3, read="sched(7)")


def waits(ex, root, redis, name, pages, *options):
    """So many pages are being computed, and a file is asked for. Does the file come after the first
    of them? No clock decides that: a page is a thousand times as much work as a file."""
    server = ex.project(name, "--root", root, "--timeout", "60", *options, redis=redis)
    clients = let_compute(ex, server, pages)
    file = ex.client(server)
    file.say(FILE)
    first = select.select([each.socket for each in [*clients, file]], [], [], 60)[0]
    waited = any(client.socket in first for client in clients)
    os.killpg(server.pid, signal.SIGKILL)  # its children that compute, too
    server.end(None)
    return waited
