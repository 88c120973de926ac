"""06/slope: what is looked at for a request? Compares the guesses with what strace(1) counts."""

import re

REASON = "poll, few"

FEW = range(5, 21)  # silent clients; how many of them is drawn
MANY = range(200, 401)
REQUESTS = 100
ROUNDS = ("poll", "ppoll", "epoll_wait", "epoll_pwait")
TRACED = ",".join(ROUNDS + ("recvfrom",))


def check(ex):
    chance = ex.chance()
    silent = {"few": chance.choice(FEW), "many": chance.choice(MANY)}
    for name in ("poll", "epoll"):
        for word, number in silent.items():
            guess = read(ex, name, number)
            compare(ex, "%s, %s" % (name, word), name, number, guess)


def read(ex, name, silent):
    """The program's guess."""
    printed = ex.run(silent).stdout
    guesses = [line.split()[1] for line in printed.splitlines()
               if line.split()[:1] == [name] and len(line.split()) == 2]
    ex.expect("prints", "a line \"%s \", and a number" % name,
              lambda: len(guesses) == 1 and re.fullmatch("[0-9]{1,9}", guesses[0]), saw=lambda: repr(printed))
    return int(guesses[0])


def compare(ex, key, name, silent, guess):
    """The number that was counted stays a secret until the guess is right."""
    count = a_request(ex, name, silent)
    hint = 3 if name == "epoll" else 1 if guess < silent else 2
    ex.expect(key, "%s with %d silent clients: as many as you say" % (name, silent),
              lambda: guess == round(count), hint=hint,
              saw=lambda: "%s than your %d" % ("more" if count > guess else "fewer", guess),
              read="poll(2)" if name == "poll" else "epoll_wait(2)")
    ex.did("counted %g for each request" % count)


def a_request(ex, name, silent):
    """Entries, or events, for each of REQUESTS: those of the call that reported the request. strace
    changes none of these numbers."""
    server = ex.project(name, "--timeout", "500", redis=ex.redis(), under=ex.traced(TRACED))
    ex.hold(server, silent, b"")
    asks = ex.client(server)
    for number in range(REQUESTS + 1):
        if asks.get("/style.css").status != 200:
            ex.skip("%s did not answer request %d" % (name, number))
    server.end()
    sums, last = [], 0
    for call in server.calls:
        if call.name in ROUNDS:
            last = looked_at(call)
        elif '"GET ' in call.arguments:
            sums.append(last)
    return sum(sums[1:]) / REQUESTS  # the first came with its connection


def looked_at(call):
    """The entries that poll([...], NFDS, MS) got, or the events that epoll_wait() returned."""
    if call.name == "poll":
        return int(call.arguments.rpartition("], ")[2].split(",")[0])
    if call.name == "ppoll":
        return int(call.arguments.partition("], ")[2].split(",")[0])
    return call.result
