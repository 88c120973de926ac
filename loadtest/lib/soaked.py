"""soaked: one turn of a soak, and whether a server holds on to more than before.

Three kinds of clients come at the same time:

    wrk     on kept connections: files, pages, posts, and what has to be refused (soaked.lua)
    ab      on a new connection for each page
    we      break connections off, before, in, or after a request

Then all of them leave, the server comes to rest, and what it holds is read. Memory is the
proportional set size of its processes without the files that they have mapped, because how many
others share the C library is not their doing. Connections to Redis are not among the descriptors.
They have a figure of their own, because a pool opens as many as are used at once.
"""

import contextlib
import json
import os
import re
import socket
import statistics
import struct
import time
from collections import Counter, namedtuple
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lib import Trouble
from lib.generators import ab, load
from lib.measuring import machine, meter, processes, web
from lib.reporting import table
from lib.subjects import places, redis

SCRIPT = os.path.join(machine.TOP, "loadtest", "lib", "soaked.lua")
KEPT, NEW = 16, 4  # clients at once, of wrk and of ab
EVERY_SECONDS = 0.01  # a connection that is broken off
GRACE_SECONDS = 60  # beyond a turn's length, for the load generators to end
REST_SECONDS = 15  # a server waits for a request for 10 s
MOST_ENTRIES = 10100  # common/guestbook.h: then the oldest are dropped
QUARTERS = 4
EXPECTED = {200, 204, 206, 303, 304, 400, 403, 404, 405, 413, 415}
CLASSES = ["2xx", "3xx", "4xx", "5xx"]
# The board of these two has a slot for each possible worker. With the thousands that are the
# default, its memory would grow by a mebibyte until each slot has had its turn.
OPTIONS = {"forking": ["--workers", "256"], "threading": ["--workers", "256"]}

HEAD = b" /guestbook HTTP/1.1\r\nHost: localhost\r\n"
POST = (b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 34\r\n\r\n"
        b"guest-name=Ada")
PIECES = [b"", b"GET" + HEAD[:20], b"POST" + HEAD + POST, b"GET" + HEAD + b"\r\n",
          b"GET /tux.png HTTP/1.1\r\nHost: localhost\r\n\r\n"]

Held = namedtuple("Held", "memory descriptors processes threads redis")
MOST_GROWTH = Held(2**20, 0, 0, 0, KEPT + NEW + 1)  # malloc(3) settles late; see above for Redis


@dataclass
class Turn:
    """So many seconds of clients for one server."""

    server: str
    life: int  # which of the server's lives: it is started again if the run was interrupted
    seconds: float = 0.0
    answers: dict[str, int] = field(default_factory=dict)  # by class, as the server counted them
    statuses: Counter = field(default_factory=Counter)  # those that wrk and ab received
    errors: Counter = field(default_factory=Counter)  # by kind, of wrk's and ab's connections
    broken_off: int = 0  # by us
    stall: float = 0.0  # the longest time for which we ourselves got no CPU
    said: list[str] = field(default_factory=list)  # what the server printed meanwhile
    held: Held | None = None  # after it
    wrong: list[str] = field(default_factory=list)

    @property
    def requests(self):
        return sum(self.answers.values())

    @property
    def unexpected(self):
        """Answers that the mix should not get, and connections that failed."""
        return Counter({str(each): count for each, count in self.statuses.items()
                        if each not in EXPECTED}) + self.errors


COLUMNS = ["server", "life", "seconds", "requests", *CLASSES, "broken_off", "statuses", "errors",
           "stall_seconds", "memory_bytes", *Held._fields[1:], "said", "wrong"]


def raw(turn):
    row = dict(server=turn.server, life=turn.life, seconds="%.1f" % turn.seconds,
               requests=turn.requests, broken_off=turn.broken_off, **turn.answers,
               statuses=counts_text(turn.statuses), errors=counts_text(turn.errors),
               stall_seconds="%.2f" % turn.stall, said="; ".join(turn.said),
               wrong="; ".join(turn.wrong))
    if turn.held:
        row.update(turn.held._asdict(), memory_bytes=turn.held.memory)
    return table.raw_row(COLUMNS, row)


def counts_text(counts):
    return ", ".join("%s: %s" % (each, table.count(counts[each])) for each in sorted(counts))


class Subject:
    """A server with a Redis of its own, for the time of a `with`."""

    def __init__(self, run, name, life):
        self.name = name
        self.server = None
        self._run = run
        self._life = life
        self._save_as = os.path.join(run.folder, "raw", name.replace("/", "_"))
        self._status = None  # after the last turn
        self._asked = 0  # how often for its status, since then
        self._told = 0  # lines of its log that are known

    def __enter__(self):
        self._redis = self._run.hosts.redis(self._save_as + ".redis")
        self._redis.seed()
        self.server = self._run.open(self.name, self._save_as + ".log", self._redis,
                                     OPTIONS.get(self.name.split("@")[0], ()))
        self.server.__enter__()
        self._status = self._rest()
        self._said()
        return self

    def __exit__(self, *exception):
        self.server.__exit__(*exception)

    def turn(self, seconds):
        """The Turn, even if something fails."""
        turn = Turn(self.name, self._life)
        began = time.monotonic()
        self._asked = 0
        try:
            try:
                self._load(turn, seconds)
            except Trouble as trouble:  # a load generator gave up
                turn.errors[str(trouble)] += 1
            self.server.must_live()
            before, self._status = self._status, self._rest()
            turn.answers = {each: self._status["responses"][each] - before["responses"][each]
                            for each in CLASSES}
            self._compare(turn)
            turn.held = self._held()
        except Trouble as trouble:
            turn.wrong.append(str(trouble))
        turn.seconds = time.monotonic() - began
        turn.said = self._said()
        return turn

    # ---- clients ------------------------------------------------------------------------------

    def _load(self, turn, seconds):
        csv, url, place = self._save_as + ".csv", self.server.url, places.Place(self._run.cores.client)
        wrk = ["wrk", "-t1", "-c%d" % KEPT, "-d%d" % max(1, round(seconds)), "--timeout", "10",
               "-s", SCRIPT, url]
        deadline = time.monotonic() + seconds + GRACE_SECONDS
        kept, new = load.run("a load generator", [
            (place, wrk), (place, ab.command(url + "/guestbook", NEW, csv, seconds=seconds))], self._save_as,
                             meanwhile=lambda clients: self._break_off(turn, clients, deadline))
        pages = ab.parse(new, processes.printed(csv))
        report = re.search(r"^{.*}$", kept, re.MULTILINE)
        if not report:
            raise Trouble("wrk wrote no report")
        answers = json.loads(report.group())
        turn.statuses = Counter({int(each): n for each, n in answers.pop("statuses").items()})
        turn.statuses[200] += pages.requests
        turn.errors += Counter(answers) + Counter(pages.errors)

    def _break_off(self, turn, clients, deadline):
        """Breaks connections off until the clients have ended."""
        where = urlsplit(self.server.url)
        while not all(map(processes.has_ended, clients)):
            with contextlib.suppress(OSError), \
                    socket.create_connection((where.hostname, where.port), 10) as client:
                # With a linger of 0 seconds close() resets the connection; without, it ends it.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                  struct.pack("ii", turn.broken_off % 2, 0))
                client.sendall(PIECES[turn.broken_off % len(PIECES)])
                turn.broken_off += 1
            asleep = time.monotonic()
            time.sleep(EVERY_SECONDS)
            now = time.monotonic()
            turn.stall = max(turn.stall, now - asleep - EVERY_SECONDS)
            if now > deadline:
                raise Trouble("the load generators did not end")

    # ---- the server ---------------------------------------------------------------------------

    def _rest(self):
        """Waits until no connection is open but its own. Returns the server's status."""
        deadline = time.monotonic() + REST_SECONDS
        while True:
            status = json.loads(web.fetch(self.server.url, "/status.json")[1])
            self._asked += 1
            if sum(status["now"].values()) <= 1:
                return status
            if time.monotonic() > deadline:
                raise Trouble("clients that have left are still there: %s" % status["now"])
            time.sleep(0.1)

    def _held(self):
        """What it holds, as soon as two readings agree: a child may be about to end."""
        deadline = time.monotonic() + REST_SECONDS
        before, held = None, self._read()
        while held[1:] != (before or ())[1:] and time.monotonic() < deadline:
            time.sleep(0.25)
            before, held = held, self._read()
        return held

    def _read(self):
        stats = meter.Tree(self.server.pid).stats()
        memory = descriptors = 0
        for stat in stats:
            text = machine.read("/proc/%d/smaps_rollup" % stat.pid)
            memory += sum(meter.kib(text, "Pss_" + kind) or 0 for kind in ("Anon", "Shmem"))
            with contextlib.suppress(OSError):
                descriptors += len(os.listdir("/proc/%d/fd" % stat.pid))
        found = re.search(r"connected_clients:(\d+)", self._redis.ask("INFO", "clients"))
        connections = int(found.group(1)) - 1  # without the one that asks
        return Held(memory, descriptors - connections, len(stats),
                    sum(stat.threads for stat in stats), connections)

    def _compare(self, turn):
        """The server has counted what the clients received, and perhaps what was not read."""
        received = sum(turn.statuses.values()) + turn.errors["not 2xx"] + self._asked
        lost = turn.broken_off + KEPT + NEW + sum(turn.errors.values())
        if turn.statuses and not 0 <= turn.requests - received <= lost:
            turn.wrong.append("it counted %s answers, and %s were received" % (
                table.count(turn.requests), table.count(received)))
        entries = self._redis.number("LLEN", redis.ENTRIES)
        if entries > MOST_ENTRIES:
            turn.wrong.append("the guestbook has %s entries" % table.count(entries))

    def _said(self):
        """The lines that it has printed since this was last asked."""
        lines = processes.printed(self._save_as + ".log").splitlines()
        new, self._told = lines[self._told:], len(lines)
        return new


# ---- what follows from it -------------------------------------------------------------------


def lives_of(turns):
    """A server's lives, the longest first: lists of turns. One that is too short to be judged is
    left out."""
    lives = {}
    for turn in turns:
        if turn.held:
            lives.setdefault(turn.life, []).append(turn)
    return [life for life in sorted(lives.values(), key=len, reverse=True) if len(life) >= QUARTERS]


def first_and_last(life):
    """What the server held in the first quarter of its life, and in the last: two Held, of
    medians."""
    size = len(life) // QUARTERS
    return [Held(*map(statistics.median_low, zip(*(turn.held for turn in part))))
            for part in (life[:size], life[-size:])]


def grown(life):
    """The figures that grew from the first quarter of a life to the last."""
    first, last = first_and_last(life)
    return [name for name, before, now, most in zip(Held._fields, first, last, MOST_GROWTH)
            if now - before > most]
