"""calls: the system calls that a request costs, by name, as `strace -c` counts them. Nothing is timed.

strace(1) counts every call of a server, its children and threads included. It stops the server at each call, which
makes the server slow, but adds no call and removes none. A server is run twice, and gets the same warm-up and a load
of the same kind. The second load is longer by so many requests, and the additional calls are their cost. Starting,
stopping, warming up, and opening and closing kept connections are in both, and cancel out.

- The server says how many requests it has received, because `ab -k` asks more often than it was told.
- The number of bytes that ab leaves unread at its end is random, and with it a call or so for each client. Two
  thousand requests by a hundred clients are right to a few hundredths of a call.
- What is done by the clock is in the figures as well: once a second a template is checked, and an idle worker wakes
  five times. So there are as many clients as workers. The calls of threads vary, which sometimes wait for each
  other, and of loops, which find more or less to do at a time.

`open_server(log, under)` is a context manager that starts the server under that command.
"""

import re
from collections import Counter, namedtuple

import processes
import waiting
from lib import Trouble, subjects
from lib.generators import ab
from lib.measuring import idle
from lib.subjects import places

Kind = namedtuple("Kind", "path kept")
KINDS = {"kept file": Kind("/index.html", True), "kept page": Kind("/guestbook", True),
         "new page": Kind("/guestbook", False)}
CLIENTS, REQUESTS = 100, 2000
LIMIT_SECONDS = 120
LINE = re.compile(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", re.MULTILINE)
END = re.compile(r"^100\.00 .* total$", re.MULTILINE)

PerRequest = namedtuple("PerRequest", "calls requests")  # {name: how many a request}; of so many


def per_request(open_server, save_as, cores, kind, clients=CLIENTS, requests=REQUESTS):
    """The PerRequest of one of KINDS."""
    (few, short), (many, long) = (counted(open_server, save_as, cores, KINDS[kind], clients, number)
                                  for number in (2 * clients, 2 * clients + requests))
    return PerRequest({name: count / (many - few) for name, count in (long - short).most_common()}, many - few)


def counted(open_server, save_as, cores, kind, clients, requests):
    """(requests, a Counter of calls) of one run. Trouble if one request failed."""
    record, log = save_as + ".strace", save_as + ".log"
    with open(record, "wb"), open_server(log, ["strace", "-DD", "-f", "-q", "-c", "-o", record]) as server:
        if subjects.is_known(server.name):
            with idle.held(server, kind.path, min(clients, idle.most(server.name) or 1)):
                pass  # every worker has served something
        for number in (2 * clients, requests):  # as many clients at once as there will ever be
            load = ab.run(server.url + kind.path, clients, places.Place(cores), save_as, kept=kind.kept,
                          requests=number, limit=LIMIT_SECONDS)
            if load.failed or load.requests < number:
                raise Trouble("under strace %d of %d requests failed: %s" % (
                    number - load.requests, number, load.errors_text()))
        server.must_live()
    if not waiting.until(lambda: END.search(processes.printed(record)), 5):
        raise Trouble("strace has counted nothing")
    said = subjects.farewell(processes.printed(log))
    return (said.requests if said else requests), Counter(
        {name: int(count) for count, name in LINE.findall(processes.printed(record)) if name != "total"})
