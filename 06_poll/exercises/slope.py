"""06/slope: what is looked at for a request? Compares the guesses with what strace(1) counts."""

REASON = "poll, 10"

REQUESTS = 100
ROUNDS = ("poll", "ppoll", "epoll_wait", "epoll_pwait")
TRACED = ",".join(ROUNDS + ("recvfrom",))


def check(ex):
    result = ex.run()
    rows = [tuple(line.split()) for line in result.stdout.splitlines()]
    for name in ("poll", "epoll"):
        for silent in (10, 500):
            guesses = [row[2] for row in rows if row[:2] == (name, str(silent)) and len(row) == 3]
            ex.expect("prints", "a line \"%s %d \", and your number" % (name, silent),
                      lambda: len(guesses) == 1 and guesses[0].isdecimal(),
                      saw=lambda: repr(result.stdout))
            count = a_request(ex, name, silent)
            guess = int(guesses[0])
            compare(ex, name, silent, int(guesses[0]), count)


def compare(ex, name, silent, guess, count):
    """The number that was counted stays a secret until the guess is right."""
    hint = 3 if name == "epoll" else 1 if guess < silent else 2
    ex.expect("%s, %d" % (name, silent), "%s with %d silent clients: as many as you guess" % (
        name, silent), lambda: near(guess, count), hint=hint,
              saw=lambda: "%s than your %d" % ("more" if count > guess else "fewer", guess),
              read="poll(2)" if name == "poll" else "epoll_wait(2)")
    ex.did("counted %g for each request" % count)


def near(guess, count):
    """Right to 2 %, or exactly where that is less than one."""
    return abs(guess - count) <= 0.02 * count


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
