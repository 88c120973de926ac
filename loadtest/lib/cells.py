"""cells: one cell of a table. It is one subject under one load, measured once.

Every cell begins in the same way: a fresh process, the same entries in Redis, and a warm-up, which
also finds out how many requests the cell shall have. Only the cell itself is counted. Then it is
judged: `wrong` says why its figures are worthless, and `remarks` say what a reader should know.
"""

import math
import os
from dataclasses import dataclass, field
from typing import ClassVar, Dict, List, NamedTuple, Optional

from lib import Trouble, subjects
from lib.generators import ab, wrk
from lib.measuring import meter
from lib.reporting import table
from lib.subjects import redis
from lib.generators.load import Load

FEW = 20  # requests that any server answers soon, wherever Redis is
WARM_UP_MOST_SECONDS = 2  # if two for each client took longer, these are the warm-up
KINDS = {"ab": "A new connection for each request (ab)", "wrk": "Kept connections (wrk)"}
SUSPECT = 0.10  # a cell that is farther from Little's law is suspect
NOT_WAITING = ("by Little's law not as many clients as were asked for were waiting for an answer at a "
               "time")
INSIDE_WRK = ("more than a tenth of the clients were not waiting for the server: they were connecting, "
              "or wrk was busy with others")


class Dials(NamedTuple):
    """The settings that a cell may change while all others stay."""

    delay_ms: Optional[int] = None  # of a relay between our servers and Redis; None: no relay
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

    subject: str  # "epoll", "epoll@REV", "floor", "nginx"
    generator: str  # "ab": a new connection a request; "ab -k" and "wrk": kept ones
    clients: int
    backlog: Optional[int] = None  # of our servers; None: their own
    dials: Dials = Dials()
    instances: ClassVar[None] = None  # it is asked directly, not through a balancer

    def __str__(self):
        words = ["%s, %s clients" % (self.subject, format(self.clients, ",")), self.generator]
        words += ["backlog %d" % self.backlog] if self.backlog else []
        words += self.dials.words()
        return ", ".join(words)


@dataclass
class Cell:
    """One measurement of a spot."""

    spot: Spot
    round: int
    asked: int = 0  # requests; 0: as many as fit
    least: int = 0  # requests that should be made
    load: Optional[Load] = None  # None: it could not be measured
    counts: Optional[redis.Counts] = None
    reading: Optional[meter.Reading] = None
    hosts: Dict[str, float] = field(default_factory=dict)  # of a lab: percent of a core
    off: float = 0.0  # how far from Little's law, as a share
    wrong: List[str] = field(default_factory=list)
    remarks: List[str] = field(default_factory=list)

    @property
    def micros(self):
        """CPU microseconds per request, of the server's whole process tree; None if not known."""
        used = self.reading.cpu_us
        return None if used is None else used / self.load.requests


def measure(cell, run):
    """Fills the cell, even if something fails."""
    spot = cell.spot
    save_as = os.path.join(run.folder, "raw", file_name(cell))
    hosts = [*run.hosts.pids(), "self"]
    before = meter.network_record(hosts)
    try:
        run.redis.seed(run.entries)
        with run.redis_for(spot) as where, run.open_subject(spot, where, save_as + ".log") as server:
            run.experiment.look_at(server, run)
            _load(cell, server, run, save_as)
            cell.wrong += subjects.end(server, spot.subject)
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
    name = "%s-%s-%d-%d" % (spot.subject, spot.generator.replace(" ", ""), spot.clients, cell.round)
    name += "-b%d" % spot.backlog if spot.backlog else ""
    name += spot.dials.in_file_name()
    return name.replace("/", "_")


def _load(cell, server, run, save_as):
    """Warms up, measures, and judges. wrk runs for a time, not for a number of requests. If that
    was too short, it runs again, for longer."""
    spot = cell.spot
    cell.least = run.per_client * spot.clients
    _warm_up(cell, server, run, save_as)
    _measure(cell, server, run, save_as)
    while spot.generator == "wrk" and cell.load.requests < cell.least and (
            run.asked[spot] < run.most_seconds):
        longer = 1.2 * run.asked[spot] * cell.least / cell.load.requests
        run.asked[spot] = min(math.ceil(longer), run.most_seconds)
        run.redis.settle()  # the pages of its last clients would be counted in this load
        _measure(cell, server, run, save_as)
    if spot.subject in run.commands and not run.asks_redis(spot):
        cell.remarks.append("work not counted: it is asked for a page of its own")
    judge(cell, run.asks_redis(spot), run.experiment.size(run))


def _measure(cell, server, run, save_as):
    spot, before = cell.spot, run.redis.counts()
    with run.hosts.watch() as cell.hosts, run.meter(server, spot.dials.cores) as watch:
        cell.load = _generate(cell, server, run, save_as)
    cell.reading = watch.reading
    cell.counts = run.counts_since(before, spot)
    server.must_live()  # now it has noticed that its clients have left


def _warm_up(cell, server, run, save_as):
    """Loads the server for a moment, and finds out how many requests the cell shall have, or for
    wrk, how many seconds. The same spot gets as many in every round."""
    spot, save_as = cell.spot, save_as + "-warmup"
    load = _ab(spot, server, run, save_as, clients=min(spot.clients, FEW), requests=FEW)
    if spot.generator == "wrk":
        run.asked.setdefault(spot, run.seconds)
        return
    for _ in range(1 if spot in run.asked else 2):  # the first rate is that of a cold server
        requests = max(2 * spot.clients, 200, round(load.rate * run.warmup_seconds))
        if requests < load.rate * WARM_UP_MOST_SECONDS:
            load = _ab(spot, server, run, save_as, requests=requests)
    run.asked.setdefault(spot, max(round(load.rate * run.seconds), cell.least))


def _generate(cell, server, run, save_as):
    """Makes the load that counts. ab ends after so many requests, or else by the clock."""
    spot, asked = cell.spot, run.asked[cell.spot]
    if spot.generator == "wrk":
        place = run.hosts.place("load", spot.dials.cores)
        return _alive(server, lambda: wrk.run(
            server.url + run.path_of(spot.subject), spot.clients, max(1, round(asked)),
            place.cores, save_as, prefix=place.prefix))
    load = _ab(spot, server, run, save_as, requests=asked, seconds=run.most_seconds)
    cell.asked = 0 if load.seconds >= run.most_seconds else asked
    return load


def _ab(spot, server, run, save_as, clients=None, requests=None, seconds=None):
    place = run.hosts.place("load", spot.dials.cores)
    return _alive(server, lambda: ab.run(
        server.url + run.path_of(spot.subject), clients or spot.clients, place.cores, save_as,
        requests=requests, seconds=seconds, kept=spot.generator != "ab", limit=run.limit_seconds,
        prefix=place.prefix))


def _alive(server, generate):
    """The load that generate() makes. Trouble if the server has died, or if no page came at all. ab
    would take that for a very fast server."""
    try:
        load = generate()
    except Trouble:
        server.must_live()  # if it has died, that is the better reason
        raise
    server.must_live()
    if not load.requests:
        raise Trouble("not one page came: %s" % (load.errors_text() or "nothing was answered"))
    return load


def judge(cell, asks_redis, size=None):
    """Checks the conditions that a cell must meet; see README.md. `size` is that of each response,
    if all are alike."""
    load, spot = cell.load, cell.spot
    if load.failed:
        cell.wrong.append("%s requests failed: %s" % (format(load.failed, ","),
                                                      load.errors_text()))
    if cell.asked and load.requests + load.failed != cell.asked:
        cell.wrong.append("ab completed %s requests of %s" % (
            format(load.requests + load.failed, ","), format(cell.asked, ",")))
    in_flight = 0 if cell.asked else spot.clients
    if size and load.content is not None and not load.failed and not (
            0 <= load.content - size * load.requests <= size * in_flight):
        cell.wrong.append("%s bytes came in %s answers of %s" % tuple(
            format(number, ",") for number in (load.content, load.requests, size)))
    if asks_redis:
        unequal = redis.unequal(load.requests, cell.counts, in_flight)
        cell.wrong += [unequal] if unequal else []
    if spot.dials.cores > 1 and cell.reading.shared:
        cell.remarks.append("%d cores: shared with %s and Redis" % (
            spot.dials.cores, spot.generator))
    cell.off = meter.off(spot.clients, load.rate, load.mean_ms)
    if load.requests + load.failed < cell.least:
        cell.remarks.append("it ended by the clock, with fewer than %d requests for each client" % (
            cell.least / spot.clients))
    elif cell.off > SUSPECT:
        cell.remarks.append(INSIDE_WRK if spot.generator == "wrk" else NOT_WAITING)
    note_kernel(cell, cell.reading.kernel)


COLUMNS = ["round", "subject", "generator", "clients", "backlog", "delay_ms", "asked", "requests",
           "failed", "errors", "seconds", "requests_per_second", "mean_ms", "p50_ms", "p90_ms",
           "p99_ms", "max_ms", "incr", "get", "lrange", "visitors", "little_off", "verdict",
           "wrong", "remarks",
           *meter.COLUMNS, "hosts", "work_ms", "cores"]


def hosts_text(busy):
    """How busy each host was, in percent of a core: "load 40, lb 12, server 97, redis 20"."""
    return ", ".join("%s %.0f" % pair for pair in busy.items())


def raw(cell):
    """A cell's figures, one for each of COLUMNS; empty where there is none."""
    spot, load = cell.spot, cell.load
    row = dict(round=cell.round, subject=spot.subject, generator=spot.generator,
               clients=spot.clients, backlog=spot.backlog, **spot.dials._asdict(),
               asked=cell.asked or None, wrong="; ".join(cell.wrong),
               remarks="; ".join(cell.remarks), hosts=hosts_text(cell.hosts) or None)
    if load:
        row.update(requests=load.requests, failed=load.failed, errors=load.errors_text(),
                   seconds="%.3f" % load.seconds, requests_per_second="%.1f" % load.rate,
                   mean_ms="%.3f" % load.mean_ms, max_ms="%.3f" % load.percentiles[100])
        row.update(("p%d_ms" % percent, "%.3f" % load.percentiles[percent])
                   for percent in (50, 90, 99))
    if cell.counts:
        row.update(cell.counts._asdict())
    if cell.reading:
        row.update(zip(meter.COLUMNS, cell.reading.raw()), little_off="%.2f" % cell.off,
                   verdict=cell.reading.verdict())
    return table.raw_row(COLUMNS, row)
