"""calls: the system calls that a request costs, by name. The counts are exact; nothing is timed.

strace(1) writes down every call of a server, its children and threads included. It stops the server
at each call, which makes the server slow, but adds no call and removes none. How the counts are
made:

- First every worker gets a client, so that nothing is done for a first time later. Then the server
  gets two loads of a kind, the second longer by so many requests. The additional calls of the
  second are the cost of these requests. Opening and closing kept connections is in both and cancels
  out. Starting, stopping and warming up are in neither.
- Requests are counted in the same record, as the server received them, because `ab -k` asks more
  often than it was told.
- The number of bytes that ab leaves unread at its end is random, and with it a call or so for each
  client. Two thousand requests by a hundred clients are right to a few hundredths of a call.
- A call counts when it returns. A call that ended by a timeout, such as the tick of an idle worker,
  has nothing to do with requests and is left out. Work that is done once a second, such as checking
  a template, is partly in the figures. It is little, and it varies. So do the calls of threads,
  which sometimes wait for each other, and of loops, which find more or less to do at a time.

    with calls.Traced(open_server, save_as, core) as server:
        server.per_request("kept page")     -> PerRequest({"recvfrom": 1.0, ...}, 2000)

`open_server(log, under)` is a context manager that starts the server under that command; see
subjects.open_subject.
"""

import os
import re
import time
from collections import Counter, namedtuple
from typing import NamedTuple

from lib import Trouble
from lib.generators import ab
from lib.measuring import idle
from lib.subjects import places

Kind = namedtuple("Kind", "path kept")
KINDS = {"kept file": Kind("/index.html", True), "kept page": Kind("/guestbook", True),
         "new page": Kind("/guestbook", False)}

# The most calls that a request may cost. For a loop that is one read, one write and its share of a
# round. A new client adds accept and close, each with a check whether there is more, and the
# question whether the client has the response. A server that waits makes three commands to Redis
# and their replies, and looks at that connection first. With accept, read, write, a check whether
# the client said more, the same question and close, that is thirteen calls. 04 adds the nine calls
# by which the C library creates a thread and ends it, and the thread's number for the board. 02
# adds a process, its end, its own connection to Redis (WHY), and the three calls by which fork(3)
# keeps signals out since glibc 2.41. A kept file takes a read, a write, and a check for waiting
# clients where that is not known. After each 16 KiB, the question is asked there, too.
BUDGETS = {
    "kept file": {"iterative": 3.5, "forking": 2.5, "preforking": 3.5, "threading": 2.5,
                  "prethreading": 3.5, "poll": 2.5, "epoll": 2.5},
    "kept page": {"poll": 2.4, "epoll": 2.4},
    "new page": {"iterative": 14, "preforking": 14, "prethreading": 14,
                 "threading": 14 + 10, "forking": 14 + 15, "poll": 9, "epoll": 9},
}
KEPT_AT_ONCE = {"iterative": 1, "poll": 100, "epoll": 100}  # clients share a loop's rounds
FEW_AT_ONCE = 10

# The purpose of each call. cost prints it.
WHY = {
    "accept4": "takes the next client; 06 and 07 ask until there is none",
    "recvfrom": "the request; before closing, has the client said more; is an idle Redis still there",
    "write": "a command to Redis; in 06 and 07 all commands of a round",
    "read": "Redis' reply; in 06 and 07 many at once",
    "sendmsg": "the response, head and content together",
    "ioctl": "how much of the response has the client not acknowledged",
    "sendto": "the floor's answer",
    "close": "the client; in 02 also the other's copy of a socket, on both sides, and Redis",
    "poll": "06 sleeps until something happens",
    "epoll_wait": "07 and the floor sleep until something happens",
    "clock_nanosleep": "the floor naps, so that nobody has to wake it",
    "epoll_ctl": "a client is watched whose request was not there yet when it was accepted",
    "getsockopt": "how many wait? If nobody does, a connection is kept (01, 03, 05)",
    "clone": "02 makes a process",
    "set_robust_list": "the C library's, in a new process or thread: locks to release if it dies",
    "getpid": "a child's number, for the status page",
    "socket": "a child's own connection to Redis",
    "connect": "a child's own connection to Redis",
    "setsockopt": "its time limits: one to connect and write, one to read",
    "exit_group": "a child ends",
    "wait4": "02 reaps a child, and asks for more: one SIGCHLD may stand for several",
    "clone3": "04 makes a thread",
    "rseq": "the C library's, in a new thread: where the kernel is to write on which core it runs",
    "rt_sigprocmask": "the C library's: no signal to a thread that is half made, or half gone",
    "gettid": "a thread's number, for the status page",
    "madvise": "the C library's: the memory of an ended thread's stack is given back",
    "exit": "a thread ends",
    "futex": "04 and 05 wait for a lock or for their turn, or wake another",
}

CLIENTS = 100
REQUESTS = 2000
TICK_SECONDS = 0.15  # the servers' own is 0.2; so long a sleep was not ended by a client
QUIET_SECONDS = 0.06
PATIENCE_SECONDS = 10
LIMIT_SECONDS = 120


def budgets(server):
    """{kind: calls at most} for one of the seven."""
    return {kind: most[server] for kind, most in BUDGETS.items() if server in most}


def budget_load(kind, server):
    """The load under which a budget has to be kept, as (clients, requests)."""
    if not KINDS[kind].kept:
        return FEW_AT_ONCE, 300
    return KEPT_AT_ONCE.get(server, FEW_AT_ONCE), REQUESTS


# ---- strace, and what it writes -------------------------------------------------------------


def command(trace):
    """strace's command. -D makes strace a grandchild, so that the process that is started is the
    server itself. Only received bytes are written as text, and few of them."""
    return ["strace", "-D", "-f", "-q", "-T", "-s", "4", "-e", "raw=!" + ",".join(READS),
            "-o", trace]


# 4711 accept4(0x3, 0, 0, 0x80000) = 0x6 <0.000031>
# 4711 <... recvfrom resumed>"GET ", 2048, 0, NULL, NULL) = 98 <0.000107>
RETURN = re.compile(r"^\d+ +(?:<\.\.\. )?(\w+)(?: resumed>|\()(.*\) += .*)$", re.MULTILINE)
RESULT = re.compile(r"\) += (\S+)(?: (E\w+))?[^<]*(?:<([\d.]+)>)?$")
REQUEST = "GET "  # in a Counter of calls: how many requests were received
READS = "recvfrom", "read", "readv", "recvmsg"  # a graded server may receive with any of them


def count(text):
    """A Counter of the calls that return in this part of the record, by name, and of REQUEST. Half
    a call, a signal or the end of a process does not count."""
    counted = Counter()
    for name, rest in RETURN.findall(text):
        if not is_tick(name, rest):
            counted[name] += 1
            counted[REQUEST] += name in READS and '"%s"' % REQUEST in rest
    return counted


def is_tick(name, rest):
    """Did the call sleep until its time was up? Then it returned EAGAIN, or poll() and epoll_wait()
    returned 0."""
    result, error, seconds = RESULT.search(rest).groups()
    return float(seconds or 0) >= TICK_SECONDS and (
        error == "EAGAIN" or name in ("poll", "epoll_wait") and result in ("0", "0x0"))


class Record:
    def __init__(self, trace):
        self._file = open(trace, encoding="ascii", errors="replace")
        self._half = ""  # of a line

    def close(self):
        self._file.close()

    def count(self):
        """Counts what has come since the last call."""
        whole, end, self._half = (self._half + self._file.read()).rpartition("\n")
        return count(whole + end)

    def count_until_quiet(self):
        """Counts until nothing but ticks has come for a moment."""
        counted = self.count()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            time.sleep(QUIET_SECONDS)
            more = self.count()
            if not more:
                return counted
            counted += more
        raise Trouble("the server is not at rest after %d s" % PATIENCE_SECONDS)


# ---- of a server ---------------------------------------------------------------------------


class PerRequest(NamedTuple):
    """How many calls of each name a request costs, and the number of requests that were counted."""

    calls: dict[str, float]
    requests: int

    @property
    def total(self):
        return sum(self.calls.values())


class Traced:
    """A server under strace, from `with` to its end."""

    def __init__(self, open_server, save_as, client_core):
        self._trace = save_as + ".strace"
        self._save_as = save_as
        self._core = client_core
        self._opening = open_server(save_as + ".log", command(self._trace))

    def __enter__(self):
        self._server = self._opening.__enter__()
        self._record = Record(self._trace)
        return self

    def __exit__(self, *exception):
        self._record.close()
        self._opening.__exit__(*exception)
        os.remove(self._trace)  # the log is long

    def per_request(self, kind, clients=CLIENTS, requests=REQUESTS):
        """The PerRequest of one of KINDS."""
        few = 2 * clients
        at_once = min(clients, idle.most(self._server.name) or 1)
        with idle.held(self._server, KINDS[kind].path, at_once):
            pass  # every worker has served something
        self._load(kind, clients, few + requests)  # as many clients at once as there will ever be
        short = self._load(kind, clients, few)
        return difference(short, self._load(kind, clients, few + requests))

    def _load(self, kind, clients, requests):
        """Loads the server, and returns a Counter of its calls. Trouble if one request failed."""
        path, kept = KINDS[kind]
        load = ab.run(self._server.url + path, clients, places.Place(self._core), self._save_as, kept=kept,
                      requests=requests, limit=LIMIT_SECONDS)
        self._server.must_live()
        if load.failed or load.requests < requests:
            raise Trouble("under strace %d of %d requests failed: %s" % (
                requests - load.requests, requests, load.errors_text()))
        return self._record.count_until_quiet()


def difference(short, long):
    """The cost of the requests that the longer load has more. A name that has become rarer is left
    out, because requests were not the reason for those calls."""
    more = long - short
    requests = more.pop(REQUEST, 0)
    if not requests:
        raise Trouble("the longer load was not longer")
    return PerRequest({name: number / requests for name, number in more.most_common()}, requests)
