"""cells: one cell of a table. It is one subject under one load, measured once.

Every cell has a fresh process, the same entries in Redis, and a warm-up: a run of the same kind,
which is thrown away, and which finds out how many requests the cell shall have. On kept connections
the cell begins when every client has been answered once. Then it is judged: `wrong` says why its figures are
worthless, and `remarks` say what a reader should know.
"""

import contextlib
import os
import re
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from lib import Trouble, subjects
from lib.generators import ab, curl, h2load, httperf, load as generators, wrk
from lib.generators.load import Load
from lib.measuring import idle, machine, meter, processes
from lib.reporting import table
from lib.subjects import redis

FEW = 20  # requests that any server answers soon, wherever Redis is
WARM_UP_SHARE, WARM_UP_LEAST_SECONDS, WARM_UP_MOST_SECONDS = 0.2, 0.2, 2  # of a cell's seconds
BEGIN_MOST_SECONDS = 10  # then a cell begins, and says that not every client had been answered
ENOUGH, LATE_MS = 0.99, 50  # an offered rate is held if so many are answered so soon
TIMEOUT_SECONDS = 2  # of an open loop, for requests without any answer
CALLS = 3  # of a page to Redis, one after the other
ROOM = 0.8  # so many of the workers have a kept client: else those who wait would break others off
KINDS = {"ab": "A new connection for each request (ab)", "wrk": "Kept connections (wrk)",
         "h2load": "A new connection for each request (h2load)",
         "h2load kept": "Kept connections (h2load)"}
SUSPECT = 0.10  # a cell that is farther from Little's law is suspect
NOT_WAITING = ("by Little's law not as many clients as were asked for were waiting for an answer at a "
               "time")
INSIDE_WRK = ("more than a tenth of the clients were not waiting for the server: they were connecting, "
              "or wrk was busy with others")
BEGAN_EARLY = "it began before every client had been answered once"


class Dials(NamedTuple):
    """The settings that a cell may change while all others stay."""

    delay_ms: int | None = None  # of a relay between our servers and Redis; None: no relay
    work_ms: float = 0  # of CPU time that our servers add to a page
    cores: int = 1  # that the server may use

    def words(self):
        texts = "Redis %g ms away", "%g ms of work a page", "%d cores"
        return [text % value for text, value, rest in zip(texts, self, Dials()) if value != rest]

    def in_file_name(self):
        """The changed settings, as in "-d10-w2-c2"."""
        return "".join("-%s%g" % (letter, value)
                       for letter, value, rest in zip("dwc", self, Dials()) if value != rest)

    def options(self):
        return ["--work", "%g" % self.work_ms] if self.work_ms else []


@dataclass(frozen=True)
class Spot:
    """What a cell measures: the same in every round."""

    subject: str  # "epoll", "epoll@REV", "prethreading --workers 500", "floor", "nginx"
    generator: str  # of GENERATORS
    clients: int = 0
    backlog: int | None = None  # of our servers; None: their own
    dials: Dials = Dials()
    instances: int | None = None  # behind a balancer; None: it is asked directly
    rate: float | None = None  # that is offered; below 1 it is a share of the capacity
    beside: str = ""  # what else it serves meanwhile, of an experiment's own list

    def __str__(self):
        words = [self.subject + (", nginx before %d" % self.instances if self.instances else "")]
        words += ["%s clients" % format(self.clients, ",")] if self.clients else []
        words += ["%g %% of its capacity" % (100 * self.rate) if self.rate < 1 else
                  "%s a second" % table.count(self.rate)] if self.rate else []
        words += [self.generator] + (["backlog %d" % self.backlog] if self.backlog else [])
        return ", ".join([*words, *self.dials.words(), *filter(None, [self.beside])])

    def of(self, subject):
        """The same for another subject."""
        return Spot(**{**vars(self), "subject": subject})


@dataclass
class Cell:
    """One measurement of a spot."""

    spot: Spot
    round: int
    asked: int = 0  # requests; 0: as many as fit
    least: int = 0  # requests that should be made
    offered: float = 0.0  # requests a second, of an open loop
    load: Load | None = None  # None: it could not be measured
    pages: int | None = None  # answered in the cell, if Redis has counted them
    seconds: float = 0.0  # from its beginning to its end; 0: the load's own
    counts: redis.Counts | None = None  # of the whole load
    reading: meter.Reading | None = None
    hosts: dict[str, float] = field(default_factory=dict)  # of a lab: percent of a core
    off: float = 0.0  # how far from Little's law, as a share
    series: list = field(default_factory=list)  # of an open loop: (intended second, ms) of each
    wrong: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    note: str = ""  # that is no fault: what a search tried

    @property
    def requests(self):
        """Answered in the cell."""
        return self.load.requests if self.pages is None else self.pages

    @property
    def rate(self):
        seconds = self.seconds or self.load.seconds
        return self.requests / seconds if seconds else 0.0

    @property
    def micros(self):
        """CPU microseconds per request, of the server's whole process tree; None if not known. All of an
        open loop is within the meter's time."""
        used = self.reading.cpu_us
        requests = self.requests if self.spot.rate else self.rate * self.reading.seconds
        return None if used is None or not requests else used / requests

    @property
    def bound(self):
        """Who was full. httperf always is, because it never sleeps."""
        found = self.reading.verdict
        return found if self.spot.generator != "httperf" else {
            meter.BOTH: meter.SERVER, meter.CLIENT: meter.NOBODY}.get(found, found)

    @property
    def not_held(self):
        """Why the offered rate was not held, in words; None: it was."""
        if self.wrong or not self.load:
            return "; ".join(self.wrong) or "it was not offered"
        total, late = self.asked, self.load.percentiles.get(99, 0)
        if self.load.failed:
            return self.load.errors_text()
        if self.load.in_time < ENOUGH * total:
            return "only %.1f %% answered within the step" % (100 * self.load.in_time / total)
        return "p99 of %.0f ms" % late if late >= LATE_MS else None


class Shot:
    """A cell that is being measured: everything that its generator needs."""

    def __init__(self, cell, server, run, save_as):
        self.cell, self.spot, self.server, self.run, self.save_as = (
            cell, cell.spot, server, run, save_as)
        self.place = run.hosts.place("load", self.spot.dials.cores)
        self.url = server.url + run.path_of(self.spot.subject)
        self.asks_redis = run.asks_redis(self.spot)
        self._watch = run.meter(server, self.spot)
        self._open = None

    @property
    def room(self):
        """How many kept connections it can have without closing some for those who wait."""
        most = idle.most(subjects.plain(self.spot.subject))
        return round(ROOM * most) if most else h2load.MOST_CLIENTS

    def begin(self):
        """Now the cell begins: what was before does not count."""
        self._open = contextlib.ExitStack()
        self.cell.hosts = self._open.enter_context(self.run.hosts.watch())
        self._open.enter_context(self._watch)

    def end(self):
        if self._open:
            self._open.close()
            self.cell.reading, self._open = self._watch.reading, None

    def served(self):
        """How many pages Redis has counted so far."""
        return self.run.redis.pages() if self.asks_redis else 0

    def loaded(self, generate, at_once=True):
        """The load that generate() makes. It begins `at_once`, unless generate() calls begin() itself.
        Trouble if the server has died, or if no page came at all. ab would take that for a very
        fast server."""
        cell, before = self.cell, self.run.redis.counts()
        try:
            if at_once:
                self.begin()
            cell.load = generate()
            self.end()
        except Trouble:
            self.server.must_live()  # if it has died, that is the better reason
            raise
        finally:
            if self._open:
                self._open.close()
        cell.counts = self.run.counts_since(before, self.spot)
        self.server.must_live()  # now it has noticed that its clients have left
        if not cell.load.requests and not self.spot.rate:
            raise Trouble("not one page came: %s" % (cell.load.errors_text()
                                                     or "nothing was answered"))


def warm_up_seconds(run):
    return min(max(WARM_UP_LEAST_SECONDS, WARM_UP_SHARE * run.seconds), WARM_UP_MOST_SECONDS)


# ---- closed loops -------------------------------------------------------------------------------


def count_with_ab(shot, kept=False):
    """ab ends after so many requests, or else by the clock. The same spot gets as many in every
    round: as many as fit into the seconds, and enough for each client. Here all clients begin at
    once, and their first requests count: they are a twentieth of the cell at most."""
    cell, spot, run = shot.cell, shot.spot, shot.run
    cell.least = run.per_client * spot.clients

    def load(**how):
        how.setdefault("clients", spot.clients)
        return ab.run(shot.url, place=shot.place, limit=run.limit_seconds, kept=kept, **how)

    warm_up = shot.save_as + "-warmup"
    few = load(save_as=warm_up, clients=min(FEW, spot.clients), requests=FEW)
    if spot.clients < few.rate * WARM_UP_MOST_SECONDS:  # else it would leave a crowd behind
        few = load(save_as=warm_up, requests=max(
            spot.clients, round(few.rate * warm_up_seconds(run))))
    asked = run.asked.setdefault(spot, max(round(few.rate * run.seconds), cell.least))
    run.redis.settle()
    shot.loaded(lambda: load(save_as=shot.save_as, requests=asked, seconds=run.most_seconds,
                             meanwhile=lambda _: shot.begin()), at_once=False)
    cell.asked = 0 if cell.load.seconds >= run.most_seconds else asked


def time_with_wrk(shot):
    """wrk is ended after so many seconds, or when each client has had enough requests. Where Redis
    counts the pages, those of the cell are known. Elsewhere the figure is that of the whole load,
    whose beginning is short, because such a page is answered at once."""
    cell, spot, run = shot.cell, shot.spot, shot.run
    cell.least = run.per_client * spot.clients

    def load(save_as, meanwhile):
        def then_end(started):
            meanwhile(started)
            generators.interrupt(started)

        return wrk.run(shot.url, spot.clients, BEGIN_MOST_SECONDS + 2 * run.most_seconds,
                       shot.place, save_as, meanwhile=then_end)

    def until_enough(started):
        if not answered_once(shot, started):
            cell.remarks.append(BEGAN_EARLY)
        shot.begin()
        before, pause, done = shot.served(), run.seconds, 0
        began = ended = time.monotonic()  # as the pages, between two looks at Redis
        end = began + run.most_seconds
        while pause > 0 and not any(map(processes.has_ended, started)):
            time.sleep(pause)
            done, ended = shot.served() - before, time.monotonic()
            is_enough = done >= cell.least or not shot.asks_redis
            pause = 0 if is_enough else min(max(
                0.1, (cell.least - done) / (done or 1) * run.seconds), end - time.monotonic())
        shot.end()
        if shot.asks_redis:
            cell.pages, cell.seconds = done, ended - began

    load(shot.save_as + "-warmup", lambda _: time.sleep(warm_up_seconds(run)))
    run.redis.settle()
    shot.loaded(lambda: load(shot.save_as, until_enough), at_once=False)


CONNECTION = re.compile(r"^ESTAB\s.*?:(\d+)\s+\S+:\d+\s(.*)$", re.MULTILINE)


def answered_once(shot, started):
    """Waits until every client has been answered once: until there were as many connections as
    clients, and each of these has received something, or is gone. Is it so?"""
    address = shot.server.url.rpartition("/")[2]
    first, over = set(), set()
    deadline = time.monotonic() + BEGIN_MOST_SECONDS
    while time.monotonic() < deadline and not any(map(processes.has_ended, started)):
        seen = {(number, port): counts for number, place in enumerate([shot.place, *shot.place.others])
                for port, counts in CONNECTION.findall(machine.output_of(
                    place.command(["ss", "-HtniO", "dst", address])))}
        first.update(sorted(set(seen) - first)[:shot.spot.clients - len(first)])
        over.update(port for port in first if "bytes_received:" in seen.get(
            port, "bytes_received:"))
        if len(first) == shot.spot.clients and over == first:
            return True
        time.sleep(0.02)
    return False


# ---- open loops ---------------------------------------------------------------------------------


def offer_with_h2load(shot, kept=False):
    """A share of the capacity is a share of what run.capacity() has found."""
    cell, spot, run = shot.cell, shot.spot, shot.run
    rate = spot.rate if spot.rate >= 1 else h2load.even(spot.rate * run.capacity(shot, kept))
    cell.offered, cell.asked = rate, max(1, round(rate * run.seconds))
    waiting = 2 * rate * CALLS * (spot.dials.delay_ms or 0) / 1000  # connections, with some to spare
    clients = min(shot.room, round(max(spot.clients, rate / h2load.MOST_RPS, waiting))) if kept else None

    def load(save_as, seconds):
        return h2load.offer(shot.url, rate, seconds, shot.place, save_as, TIMEOUT_SECONDS, clients, LATE_MS / 1000,
                            ended=shot.end)

    def measured():
        found, answers = load(shot.save_as, run.seconds)
        good = [answer for answer in answers if answer.status // 100 == 2]
        cell.series = [(answer.start_s - good[0].start_s, answer.ms) for answer in good]
        return found

    load(shot.save_as + "-warmup", warm_up_seconds(run))
    run.redis.settle()
    shot.loaded(measured)


def offer_with_httperf(shot):
    """It reports no single answers, but those that came late make its run longer."""
    cell, rate, run = shot.cell, shot.spot.rate, shot.run
    cell.offered, cell.asked = rate, round(rate * run.seconds)

    def measured():
        report = httperf.run(shot.url, rate, run.seconds, shot.place, shot.save_as)
        cell.note = report.void and "void: %s" % report.void
        load = report.load()
        step = run.seconds + LATE_MS / 1000
        in_time = round(load.requests * min(1, step / load.seconds)) if load.seconds else 0
        return Load(**{**vars(load), "in_time": in_time})

    httperf.run(shot.url, min(500, rate), 0.2, shot.place, shot.save_as + "-warmup")
    shot.loaded(measured)


def fetch_with_curl(shot):
    """One client fetches the experiment's files, one after the other."""
    cell, run = shot.cell, shot.run
    paths = run.experiment.paths(shot)
    urls = [shot.server.url + path for path in paths]
    cell.asked = len(urls)

    shot.loaded(lambda: curl.run(urls, shot.place, shot.save_as, run.limit_seconds))


GENERATORS = {"ab": count_with_ab, "ab -k": lambda shot: count_with_ab(shot, kept=True),
              "wrk": time_with_wrk, "h2load": offer_with_h2load,
              "h2load kept": lambda shot: offer_with_h2load(shot, kept=True),
              "httperf": offer_with_httperf, "small": fetch_with_curl, "large": fetch_with_curl}


# ---- a cell -------------------------------------------------------------------------------------


def measure(cell, run):
    """Fills the cell, even if something fails."""
    spot = cell.spot
    save_as = os.path.join(run.folder, "raw", file_name(cell))
    hosts = [*run.hosts.pids(), "self"]
    before = meter.network_record(hosts)
    try:
        run.redis.seed()
        with run.redis_for(spot) as where, run.open_subject(spot, where, save_as + ".log") as server:
            run.experiment.look_at(server, run)
            shot = Shot(cell, server, run, save_as)
            with run.experiment.beside(shot):
                GENERATORS[spot.generator](shot)
            cell.wrong += subjects.end(server, spot.subject)
        judge(cell, shot.asks_redis, run.experiment.size(run, cell))
        if spot.subject in run.commands and not shot.asks_redis:
            cell.remarks.append("work not counted: it is asked for a page of its own")
    except Trouble as trouble:
        cell.wrong.append(str(trouble))
        note_kernel(cell, meter.more_of(meter.network_record(hosts), before))


def note_kernel(cell, record):
    """Adds the kernel's counts: why a cell is wrong, or why a right one is slow."""
    text = meter.record_text(record)
    if text:
        (cell.wrong or cell.remarks).append("the kernel counted %s" % text)


def file_name(cell):
    """The name of the cell's files in raw/. The server's output has it with .log."""
    spot = cell.spot
    parts = [spot.subject, spot.generator, spot.clients, cell.round]
    parts += ["b%d" % spot.backlog] if spot.backlog else []
    parts += ["i%d" % spot.instances] if spot.instances else []
    parts += ["r%g" % spot.rate] if spot.rate else []
    parts += [spot.beside] if spot.beside else []
    name = "-".join(map(str, parts)) + spot.dials.in_file_name()
    return re.sub(r"[^\w.@-]+", "_", name)


def judge(cell, asks_redis, size=None):
    """Checks the conditions that a cell must meet; see README.md. `size` is that of each response,
    if all are alike."""
    load, spot = cell.load, cell.spot
    if load.failed and not spot.rate:  # what an open loop loses is its result
        cell.wrong.append("%s requests failed: %s" % (format(load.failed, ","),
                                                      load.errors_text()))
    if cell.asked and not spot.rate and load.requests + load.failed != cell.asked:
        cell.wrong.append("%s requests of %s were completed" % (
            format(load.requests + load.failed, ","), format(cell.asked, ",")))
    in_flight = cell.asked - load.requests if spot.rate else 0 if cell.asked else spot.clients
    if size and load.content is not None and not load.failed and not (
            0 <= load.content - round(size * load.requests) <= size * in_flight):
        cell.wrong.append("%s bytes came in %s answers of %s" % tuple(
            format(number, ",") for number in (load.content, load.requests, size)))
    if asks_redis:
        unequal = redis.unequal(load.requests, cell.counts, in_flight)
        cell.wrong += [unequal] if unequal else []
    if spot.dials.cores > 1 and cell.reading.shared:
        cell.remarks.append("%d cores: shared with %s and Redis" % (
            spot.dials.cores, spot.generator))
    if spot.clients and not spot.rate:
        cell.off = meter.off(spot.clients, load.rate, load.mean_ms)
        if load.requests + load.failed < cell.least:
            cell.remarks.append("it ended by the clock, with fewer than %d requests for each client"
                                % (cell.least / spot.clients))
        elif cell.off > SUSPECT:
            cell.remarks.append(INSIDE_WRK if spot.generator == "wrk" else NOT_WAITING)
    note_kernel(cell, cell.reading.kernel)


COLUMNS = ["round", "subject", "generator", "clients", "backlog", "delay_ms", "asked", "requests",
           "failed", "errors", "seconds", "requests_per_second", "mean_ms", "p50_ms", "p90_ms",
           "p99_ms", "p99.9_ms", "max_ms", "incr", "get", "lrange", "visitors", "little_off",
           "verdict", "wrong", "remarks", *meter.COLUMNS, "hosts", "work_ms", "cores", "instances",
           "offered", "share", "in_time", "connect_ms", "content", "beside", "not_held"]


def raw(cell):
    """A cell's figures, one for each of COLUMNS; empty where there is none."""
    spot, load = cell.spot, cell.load
    row = dict(round=cell.round, subject=spot.subject, generator=spot.generator,
               clients=spot.clients, backlog=spot.backlog, **spot.dials._asdict(),
               asked=cell.asked or None, wrong="; ".join(cell.wrong), instances=spot.instances,
               remarks="; ".join(filter(None, [*cell.remarks, cell.note])), beside=spot.beside,
               hosts=", ".join("%s %.0f" % host for host in cell.hosts.items()) or None,  # percent of a core
               offered=cell.offered or None,
               share=spot.rate if spot.rate and spot.rate < 1 else None)
    if load:
        row.update(requests=cell.requests, failed=load.failed, errors=load.errors_text(),
                   seconds="%.3f" % (cell.seconds or load.seconds), content=load.content,
                   requests_per_second="%.1f" % cell.rate, mean_ms="%.3f" % load.mean_ms)
        row.update(("p%g_ms" % percent if percent < 100 else "max_ms", "%.3f" % ms)
                   for percent, ms in load.percentiles.items())
    if spot.rate:
        row.update(in_time=load and load.in_time, not_held=cell.not_held,
                   connect_ms=load and "%.3f" % load.connect_ms)
    if cell.counts:
        row.update(cell.counts._asdict())
    if cell.reading:
        row.update(zip(meter.COLUMNS, cell.reading.raw()), little_off="%.2f" % cell.off,
                   verdict=cell.bound)
    return table.raw_row(COLUMNS, row)
