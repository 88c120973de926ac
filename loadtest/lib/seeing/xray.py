"""xray: a server under strace while a few clients come at the same moment.

    shots(program, where, plan, folder, levels)   -> a Shot for each number of clients
    lanes_svg(server, store, folder)              -> the picture of one server, ready to be shown

Each is also given the same clients without strace, so that a picture can say what tracing cost.
"""

import asyncio
import contextlib
import os
import re
import shlex
import signal
import statistics
import string
import subprocess
import tempfile
import time
from typing import NamedTuple
from urllib.parse import urlsplit

from lib import Trouble
from lib.measuring import machine, processes
from lib.seeing import lanes, picture, trace
from lib.subjects import companions, relay, peers, servers

NAMES = string.ascii_uppercase  # of clients; there are no more
WORKERS = 4  # of a server that keeps some
MOST_KEPT = 1000  # a larger default of --workers is a limit, and is left alone
HELP_SECONDS = 1
REST_SECONDS = 0.03  # before clients come, and after
ANSWER_SECONDS = 20
SLOW_SECONDS = 1  # that the silent one stays, if the server lets it
LOOK_SECONDS = 0.001
TRIES = 3  # the one in the middle is shown


class Plan(NamedTuple):
    """Who comes, and what for."""

    clients: int = 4
    delay: int = 10  # milliseconds to Redis
    work: int = 0  # milliseconds that a page computes
    kept: bool = False  # each asks twice on one connection
    slow: bool = False  # the first says half a request, and no more
    crash: bool = False  # whoever serves the first is killed
    url: str = "/guestbook"

    def __str__(self):
        said = ["%d client%s at once" % (self.clients, "" if self.clients == 1 else "s"),
                "Redis %d ms away" % self.delay,
                "%d ms of computing a page" % self.work if self.work else "",
                "each asks twice on one connection" if self.kept else "",
                "A says half a request and falls silent" if self.slow else "",
                "the worker that serves A is killed" if self.crash else ""]
        return ", ".join(filter(None, said))


class Shot(NamedTuple):
    """What was seen of one server."""

    name: str
    guests: list
    watched: lanes.Watched
    begin: float  # when the first client came
    total: float  # seconds until the last answer; 0: there was none
    plain: float | None  # the same without strace


# ---- clients --------------------------------------------------------------------------------


class Span(NamedTuple):
    """From connecting, or from asking again, to the answer."""

    begin: float
    end: float
    how: str  # the status; or "closed", "silent"


class Guest(NamedTuple):
    """A client. It says its name in the Host field, which is how the lanes know it."""

    name: str
    is_slow: bool
    spans: list[Span]

    async def visit(self, address, plan):
        request = "GET %s HTTP/1.1\r\nHost: client-%s\r\n%s" % (
            plan.url, self.name, "" if plan.kept else "Connection: close\r\n")
        request = request.encode() + (b"" if self.is_slow else b"\r\n")
        seconds = SLOW_SECONDS if self.is_slow else ANSWER_SECONDS
        streams = []
        for _ in range(2 if plan.kept else 1):
            begin, how = time.time(), "closed"
            with contextlib.suppress(OSError, EOFError):
                try:
                    how = await asyncio.wait_for(ask(address, request, streams), seconds)
                except asyncio.TimeoutError:
                    how = "silent"
            self.spans.append(Span(begin, time.time(), how))
        for _, writer in streams:
            writer.close()


async def ask(address, request, streams):
    """The status of the answer. `streams`: a connection that is kept, or nothing yet."""
    if not streams:
        streams.append(await asyncio.open_connection(*address))
    reader, writer = streams[0]
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"\nContent-Length: (\d+)", head, re.IGNORECASE)
    await (reader.readexactly(int(length.group(1))) if length else reader.read())
    if re.search(rb"\nConnection: close", head, re.IGNORECASE):
        streams.pop()[1].close()
    return head.split()[1].decode("ascii", "replace")


def visit(address, plan, look=None):
    """All clients at once; returns them when the last has gone. `look` is called all the while."""
    guests = [Guest(name, plan.slow and name == "A", []) for name in NAMES[:plan.clients]]

    async def watch():
        while True:
            look()
            await asyncio.sleep(LOOK_SECONDS)

    async def come():
        watcher = look and asyncio.ensure_future(watch())
        await asyncio.gather(*(guest.visit(address, plan) for guest in guests))
        if watcher:
            watcher.cancel()

    asyncio.run(come())
    return guests


def first(guests):
    """When the first of them came."""
    return min(guest.spans[0].begin for guest in guests)


def total(guests):
    """Seconds until the last answer; that to a silent client is not counted."""
    return max((span.end - first(guests) for guest in guests if not guest.is_slow
                for span in guest.spans if span.how.isdigit()), default=0)


# ---- servers --------------------------------------------------------------------------------


class Program:
    """One of the seven or a companion by its name, or any server by a command line (see
    peers.command_line). If it takes our options, it is also given those that its --help has."""

    def __init__(self, text):
        is_ours = text in servers.NAMES
        self._is_companion = text in companions.NAMES
        own = "cd %s && exec %s" % tuple(map(shlex.quote, (
            machine.TOP, servers.path_of(text)))) if is_ours else (
                companions.line(text) if self._is_companion else text)
        self._line = own + " --port 0 --redis {redis}" if is_ours else peers.command_line(own)
        self.name = text if is_ours or self._is_companion else peers.name_of(text)
        self._help = help_of(own) if own != self._line else ""

    def knows(self, option):
        return "--%s " % option in self._help or self._is_companion and option == "work"

    def line(self, plan):
        if self._is_companion:
            return companions.line(self.name, plan.work)
        usual = re.search(r"--workers .*\((\d+)\)", self._help)
        options = {}
        if self.knows("workers") and not (usual and int(usual.group(1)) > MOST_KEPT):
            options["workers"] = WORKERS
        if plan.work and not self.knows("work"):
            raise Trouble("%s has no option --work: WORK is for servers that have" % self.name)
        if plan.work:
            options["work"] = plan.work
        if plan.slow and self.knows("timeout"):  # of which Redis gets a fifth
            options["timeout"] = max(0.3, plan.delay / 100)
        return self._line + "".join(" --%s %s" % option for option in options.items())


def help_of(line):
    """What a server prints for --help. It may know no such option, and serve."""
    with tempfile.TemporaryFile() as said:
        process = processes.start(["sh", "-c", line + " --help"], stdin=subprocess.DEVNULL,
                                  stdout=said, stderr=subprocess.DEVNULL)
        processes.wait(process, HELP_SECONDS)
        processes.end(process)
        said.seek(0)
        return said.read().decode("utf-8", "replace")


def started(program, where, plan, log, under=()):
    return peers.Command(program.name, program.line(plan), None, log, where, under)


# ---- tracing --------------------------------------------------------------------------------


def shots(program, where, plan, folder, levels, tries=TRIES):
    """A Shot for each number of clients, of one server. With one try it is not told what tracing
    costs. The record of strace and what the server printed stay in `folder`."""
    plans = [plan._replace(clients=clients) for clients in levels]
    save_as = os.path.join(folder, "%s-%d-%d" % (program.name, plan.delay, plan.work))
    plain = [None] * len(plans)
    if tries > 1 and not plan.crash:  # without a record nobody knows whom to kill
        with started(program, where, plan, save_as + "-untraced.log") as server:
            plain = [statistics.median(map(total, visits))
                     for visits in visit_all(server.url, plans, tries)]
    record = save_as + ".strace"
    with started(program, where, plan, save_as + ".log", trace.command(record)) as server:
        seen = visit_all(server.url, plans, tries, Killer(record, plan).look)
        root = server.pid
    watched = lanes.build(*trace.read(processes.printed(record).splitlines()), where, root)
    median = [sorted(visits, key=total)[len(visits) // 2] for visits in seen]
    return [Shot(program.name, guests, watched, first(guests), total(guests), untraced)
            for guests, untraced in zip(median, plain)]


def visit_all(url, plans, tries, look=None):
    """The visits of each plan. A first one does not count: every worker meets Redis."""
    address = urlsplit(url).hostname, urlsplit(url).port
    visit(address, plans[0]._replace(clients=WORKERS, slow=False, crash=False))
    seen = []
    for plan in plans:
        seen.append([])
        for _ in range(1 if plan.slow or plan.crash else tries):
            time.sleep(REST_SECONDS)
            seen[-1].append(visit(address, plan, look if plan.crash else None))
    time.sleep(REST_SECONDS)
    return seen


class Killer:
    """Reads the record as it grows, and kills the process that has heard of client A once more than
    in the visit that does not count."""

    def __init__(self, record, plan):
        self._record = record
        self._before = 2 if plan.kept else 1

    def look(self):
        heard = re.findall("^([0-9]+) .*Host: client-A", processes.printed(self._record), re.M)
        if len(heard) > self._before:
            self._before = len(NAMES)  # once is enough
            status = machine.read("/proc/%s/status" % heard[-1])
            for pid in re.findall(r"^Tgid:\s+(\d+)", status, re.M):
                os.kill(int(pid), signal.SIGKILL)


def lanes_svg(server, store, folder, plan=Plan(), reach=lambda redis: redis):
    """The lanes of one server as a picture, for a program that has a redis.Redis already. `reach`
    lets the server come to the relay before it, if that is another user's."""
    with relay.SlowRedis(store, plan.delay, None, folder) as slow:
        reach(slow)
        program = Program(shlex.quote(server))
        return picture.draw(shots(program, slow.where, plan, folder, [plan.clients]), plan)
