"""xray: a server under strace while a few clients come at the same moment.

    shot(program, where, plan, folder)   -> Shot

The same clients also come without strace, so that a picture can say what tracing cost.
"""

import asyncio
import contextlib
import os
import re
import shlex
import statistics
import string
import time
from typing import NamedTuple
from urllib.parse import urlsplit

import calls
import processes
import top
from lib import Trouble
from lib.measuring import machine
from lib.seeing import lanes
from lib.subjects import companions, peers

NAMES = string.ascii_uppercase  # of clients; there are no more
WORKERS = 4  # of a server that keeps some
REST_SECONDS = 0.03  # before clients come, and after
ANSWER_SECONDS = 20
TEXT_BYTES = 96  # of what was received or sent
TRIES = 3  # the one in the middle is shown


class Plan(NamedTuple):
    """Who comes, and what for."""

    clients: int = 4
    delay: "int | None" = 10  # milliseconds to Redis; None: nobody asks it
    work: int = 0  # milliseconds that a page computes
    pause: int = 0  # milliseconds after which the last client asks; each one before it takes as much longer
    url: str = "/guestbook"

    def of(self, shots):
        """In words, with Redis only if a server has asked it."""
        said = ["%d client%s at once" % (self.clients, "" if self.clients == 1 else "s"),
                "Redis %d ms away" % self.delay if self.delay is not None and any(
                    shot.watched.asks_redis for shot in shots) else "",
                "%d ms of computing a page" % self.work if self.work else "",
                "A asks after %d ms, %s after %d ms" % (
                    self.waits("A"), NAMES[self.clients - 1], self.pause) if self.pause else ""]
        return ", ".join(filter(None, said))

    def waits(self, name):
        """Milliseconds from this client's connecting to its request."""
        return self.pause * (self.clients - NAMES.index(name))


class Shot(NamedTuple):
    """What was seen of one server."""

    name: str
    guests: list
    watched: lanes.Watched
    begin: float  # when the first client came
    total: float  # seconds until the last answer; 0: there was none
    plain: "float | None"  # the same without strace


# ---- clients --------------------------------------------------------------------------------


class Guest(NamedTuple):
    """A client. It says its name in the Host field, which is how the lanes know it."""

    name: str
    begin: float  # it connects
    end: float
    how: str  # the status of its answer; or "closed", "silent"


async def visit_one(name, address, plan):
    """The Guest of this name."""
    begin, how = time.time(), "closed"
    with contextlib.suppress(OSError, EOFError):
        try:
            how = await asyncio.wait_for(ask(name, address, plan), ANSWER_SECONDS)
        except asyncio.TimeoutError:
            how = "silent"
    return Guest(name, begin, time.time(), how)


async def ask(name, address, plan):
    """The status of its answer."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        await asyncio.sleep(plan.waits(name) / 1000)
        writer.write(("GET %s HTTP/1.1\r\nHost: client-%s\r\nConnection: close\r\n\r\n" % (
            plan.url, name)).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"\nContent-Length: (\d+)", head, re.IGNORECASE)
        await (reader.readexactly(int(length.group(1))) if length else reader.read())
        return head.split()[1].decode("ascii", "replace")
    finally:
        writer.close()


def visit(address, plan):
    """All clients at once; returns them as Guests when the last has gone."""
    async def come():
        return await asyncio.gather(*(visit_one(name, address, plan) for name in NAMES[:plan.clients]))

    return asyncio.run(come())


def first(guests):
    """When the first of them came."""
    return min(guest.begin for guest in guests)


def total(guests):
    """Seconds until the last answer; 0: there was none."""
    return max((guest.end - first(guests) for guest in guests if guest.how.isdigit()), default=0)


# ---- servers --------------------------------------------------------------------------------


class Program:
    """One of the seven or a companion by its name, or any server by a command line (see
    peers.command_line)."""

    def __init__(self, text):
        self._is_ours, self._is_companion = text in top.NAMES, text in companions.NAMES
        own = "cd %s && exec %s --port 0 --redis {redis}" % tuple(map(shlex.quote, (
            machine.TOP, top.path_of(text)))) if self._is_ours else companions.line(text) if self._is_companion else text
        self._line = own if self._is_ours else peers.command_line(own)
        self.name = text if self._is_ours or self._is_companion else os.path.basename(shlex.split(text)[0])

    @property
    def asks_redis(self):
        """Can it be told where Redis is?"""
        return "{redis" in self._line or self._is_companion

    def line(self, plan):
        if self._is_companion:
            return companions.line(self.name, plan.work)
        if plan.work and not self._is_ours:
            raise Trouble("%s: WORK is for the seven and the companions" % self.name)
        return self._line + " --workers %d" % WORKERS * (self.name in top.of_kind("pool") and self._is_ours) + (
            " --work %d" % plan.work) * (plan.work > 0)


def started(program, where, plan, log, under=()):
    return peers.Command(program.name, program.line(plan), None, log, where, under)


# ---- tracing --------------------------------------------------------------------------------


def shot(program, where, plan, folder):
    """The Shot of one server: of TRIES visits the one in the middle. The record of strace and what the
    server printed stay in `folder`."""
    save_as = os.path.join(folder, program.name)
    with started(program, where, plan, save_as + "-untraced.log") as server:
        plain = statistics.median(map(total, visits(server.url, plan)))
    record = save_as + ".strace"
    with started(program, where, plan, save_as + ".log", traced(record)) as server:
        seen, root = visits(server.url, plan), server.pid
    watched = lanes.build(*calls.read(processes.printed(record).splitlines()), where, root)
    guests = sorted(seen, key=total)[TRIES // 2]
    return Shot(program.name, guests, watched, first(guests), total(guests), plain)


def traced(record):
    """What a server is started under."""
    return calls.command(record, "/^(%s)$" % lanes.TRACED, text_bytes=TEXT_BYTES, times=True)


def visits(url, plan):
    """TRIES visits. One before them does not count: every worker meets Redis."""
    address, seen = (urlsplit(url).hostname, urlsplit(url).port), []
    visit(address, plan._replace(clients=WORKERS))
    for _ in range(TRIES):
        time.sleep(REST_SECONDS)
        seen.append(visit(address, plan))
    time.sleep(REST_SECONDS)
    return seen
