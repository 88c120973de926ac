"""cells: one measurement. It is one subject in one setting, loaded once, and becomes a row of cells.tsv.

Every cell has a fresh process, the same entries in Redis, and a warm-up, a load of the same kind, which is thrown away and
finds out how long the cell has to be. Then all that the load generator sees is metered, from its start to its end. Before
and after each cell the canary, a fixed piece of work on the server's core, shows how fast the machine is. Last,
the cell is judged: `wrong` says why its figures are worthless, and `remarks` what a reader should know.
"""

import contextlib
import functools
import math
import os
import re
import time
from collections import namedtuple
from dataclasses import asdict, dataclass, field

import processes
from lib import Trouble, rows, subjects
from lib.generators import ab, h2load, load as generators, wrk
from lib.generators.load import Load
from lib.measuring import machine, meter
from lib.subjects import peers, places

FEW = 20  # requests that any server answers soon, wherever Redis is
WARM_UP_SHARE, WARM_UP_LEAST_SECONDS, WARM_UP_MOST_SECONDS = 0.2, 0.3, 2  # of a cell's seconds
ENOUGH, LATE_MS = 0.99, 50  # an offered rate is held if so many are answered so soon
SETTLED_SECONDS = 30  # for requests of a warm-up whose clients have left
TIMEOUT_SECONDS = 2  # of an open loop, for requests without any answer
CALLS = 3  # of a page to Redis, one after the other
LEAST_WORK = 0.8  # of what it was told to compute; the rest is lost between two clocks
IDLE = os.path.join(machine.TOP, "loadtest", "lib", "generators", "idle.lua")
IDLE_FILE, IDLE_SECONDS = "/favicon.svg", 1.0  # what idle clients ask for, and until they are all there, or gone

COLUMNS = ["round", "subject", "generator", "path", "clients", "idle", "backlog", "delay_ms", "work_ms", "cores",
           "instances", "offered", "tries", "asked", "requests", "failed", "errors", "seconds",
           "requests_per_second", "mean_ms", "p50_ms", "p90_ms", "p99_ms", "p99.9_ms", "max_ms", "in_time",
           "content", "incr", "get", "lrange", "visitors", "little_off",
           "wrong", "remarks", *meter.COLUMNS, "canary_us"]

Counts = namedtuple("Counts", "incr get lrange visitors")  # what Redis was asked


@dataclass(frozen=True)
class Spot:
    """What a cell measures: the same in every round."""

    subject: str  # "epoll", "epoll@REV", "prethreading --workers 500", "floor", "nginx"
    generator: str  # of GENERATORS
    path: str = "/guestbook"
    clients: int = 0
    idle: int = 0  # more clients, which keep a connection and hardly ask
    backlog: "int | None" = None  # of our servers; None: their own
    delay_ms: "int | None" = None  # of a relay between our servers and Redis; None: no relay
    work_ms: float = 0  # of CPU time that our servers add to a page
    cores: int = 1  # that the server may use
    instances: "int | None" = None  # behind a balancer; None: it is asked directly
    offered: "float | None" = None  # requests a second, of an open loop; with clients: over so many connections

    def options(self):
        """Of our servers."""
        return [*(["--backlog", str(self.backlog)] if self.backlog else []),
                *(["--work", "%g" % self.work_ms] if self.work_ms else [])]


@dataclass
class Cell:
    """One measurement of a spot."""

    spot: Spot
    round: int
    tries: int = 1
    asked: int = 0  # requests; 0: as many as fit
    least: int = 0  # requests that should be made
    load: "Load | None" = None  # None: it could not be measured
    counts: "Counts | None" = None  # of the whole load
    figures: "dict | None" = None  # of the meter
    canary_us: "float | None" = None  # the slower one of the two spins; None: there is no canary
    wrong: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def disturbed(self, usual_us=None):
        """Why it should be measured again, or nothing. Its first words are what the report counts. (A slow canary
        stands in its column, and is judged with the whole run: rows.judged.)"""
        figures = self.figures or {}
        if figures.get("throttled"):
            return "throttled: its limit of CPU time was used up in %d periods" % figures["throttled"]
        for column, words in (("steal_percent", "steal: other machines"), ("others_percent", "other work")):
            if (figures.get(column) or 0) >= meter.OTHERS_PERCENT:
                return "%s took %.0f %% of a core" % (words, figures[column])
        return rows.slow(self.canary_us, usual_us)


class Shot:
    """A cell that is being measured: everything that its generator needs."""

    def __init__(self, cell, server, run, save_as):
        self.cell, self.spot, self.server, self.run, self.save_as = (cell, cell.spot, server, run, save_as)
        self.place = places.Place(run.hosts.cores(self.spot.cores).client)
        self.url = server.url + self.spot.path
        self.asks_redis = run.asks_redis(self.spot)
        self.end = lambda: None  # what is metered, because the load has ended

    def loaded(self, generate):
        """The load that generate() makes. Trouble if the server has died, or if no page came at all: ab would take
        that for a very fast server."""
        cell, before = self.cell, counts(self.run.redis)
        try:
            with self.run.meter(self.server, self.spot) as watch:
                self.end = functools.partial(watch.__exit__, None, None, None)
                cell.load = generate()
            cell.figures = watch.figures
        except BaseException:
            self.server.must_live()  # if it has died, that is the better reason
            raise
        more = [late - early for late, early in zip(counts(self.run.redis), before)]
        if self.spot.subject in self.run.commands:
            more[3] = more[0]  # other servers may count visitors in their own way
        cell.counts = Counts(*more)
        self.server.must_live()  # now it has noticed that its clients have left
        if not cell.load.requests and self.spot.clients:
            raise Trouble("not one page came: %s" % (cell.load.errors_text() or "nothing was answered"))


def calls_of(store):
    calls = store.commands()
    return [calls.get("incr", 0) + calls.get("incrby", 0), calls.get("get", 0), calls.get("lrange", 0)]


def counts(store):
    """How often each command was asked so far, and the visitors. (MGET, because GET is counted.)"""
    return Counts(*calls_of(store), store.number("MGET", "guestbook:visitors"))


def settle(shot):
    """Waits until the server has finished the requests of clients that have left: until nothing is added to
    the counts for a tenth of a second, or for the time of a page, but for 30 s at most."""
    store, pause = shot.run.redis, 0.1 + (CALLS * (shot.spot.delay_ms or 0) + shot.spot.work_ms) / 1000
    deadline, before = time.monotonic() + SETTLED_SECONDS, calls_of(store)
    while time.monotonic() < deadline:
        time.sleep(pause)
        now = calls_of(store)
        if now == before:
            return
        before = now


def warm_up_seconds(run):
    return min(max(WARM_UP_LEAST_SECONDS, WARM_UP_SHARE * run.seconds), WARM_UP_MOST_SECONDS)


# ---- closed loops -------------------------------------------------------------------------------


def count_with_ab(shot):
    """ab ends after so many requests, or else by the clock. The same spot gets as many in every round: as
    many as fit into the seconds, and enough for each client. Here all clients begin at once, and their first
    requests count: they are a twentieth of the cell at most."""
    cell, spot, run = shot.cell, shot.spot, shot.run
    cell.least = run.per_client * spot.clients

    def load(**how):
        how.setdefault("clients", spot.clients)
        return ab.run(shot.url, place=shot.place, limit=run.limit_seconds, **how)

    warm_up = shot.save_as + "-warmup"
    few = load(save_as=warm_up, clients=min(FEW, spot.clients), requests=FEW)
    if spot.clients < few.rate * WARM_UP_MOST_SECONDS:  # else it would leave a crowd behind
        few = load(save_as=warm_up, requests=max(spot.clients, round(few.rate * warm_up_seconds(run))))
    asked = run.asked.setdefault(spot, max(round(few.rate * run.seconds), cell.least))
    settle(shot)
    shot.loaded(lambda: load(save_as=shot.save_as, requests=asked, seconds=run.most_seconds, ended=shot.end))
    cell.asked = 0 if cell.load.seconds >= run.most_seconds else asked


def time_with_wrk(shot):
    """wrk is ended after so many seconds, and where Redis counts the pages, not before each client has had enough. So
    that clients connect is a small part of it."""
    cell, spot, run = shot.cell, shot.spot, shot.run
    cell.least = run.per_client * spot.clients

    def load(save_as, seconds, least=0, ended=lambda: None):
        def then_end(started):
            before, latest = calls_of(run.redis)[0], time.monotonic() + run.most_seconds
            time.sleep(seconds)
            while time.monotonic() < latest and calls_of(run.redis)[0] - before < least:
                time.sleep(0.05)
            generators.interrupt(started, ended)

        return wrk.run(shot.url, spot.clients, 2 * run.most_seconds, shot.place, save_as, meanwhile=then_end, rate=spot.offered)

    load(shot.save_as + "-warmup", warm_up_seconds(run))
    settle(shot)
    shot.loaded(lambda: load(shot.save_as, run.seconds, cell.least * shot.asks_redis, shot.end))


# ---- open loops -----------------------------------------------------------------------------------


def offer_with_h2load(shot):
    cell, spot, run = shot.cell, shot.spot, shot.run
    cell.asked = max(1, round(spot.offered * run.seconds))

    def load(save_as, seconds):
        return h2load.offer(shot.url, spot.offered, seconds, shot.place, save_as, TIMEOUT_SECONDS, LATE_MS,
                            ended=shot.end)

    load(shot.save_as + "-warmup", warm_up_seconds(run))
    settle(shot)
    shot.loaded(lambda: load(shot.save_as, run.seconds))


GENERATORS = {"ab": count_with_ab, "wrk": time_with_wrk, "h2load": offer_with_h2load}


# ---- a cell -------------------------------------------------------------------------------------


def measure(cell, run):
    """Fills the cell, even if something fails."""
    spot = cell.spot
    save_as = os.path.join(run.folder, "raw", file_name(cell))
    before, canary = meter.network_record(), run.hosts.canary()
    try:
        run.redis.seed()
        with run.redis_for(spot) as where, run.open_subject(spot, where, save_as + ".log") as server:
            run.experiment.look_at(server, spot, run)
            shot = Shot(cell, server, run, save_as)
            with idle_ones(shot):
                GENERATORS[spot.generator](shot)
            status = server.end()
            if status and subjects.is_ours(spot.subject):
                cell.wrong.append("asked to stop, it ended with %s" % peers.servers.how_it_ended(status))
        if spot.idle:
            time.sleep(IDLE_SECONDS)  # the kernel still frees what they left
        cell.canary_us = canary and max(canary, run.hosts.canary())
        judge(cell, shot.asks_redis, spot.cores > 1 and run.hosts.are_shared(spot.cores), run.experiment.size(spot, run))
        note_switches(cell, save_as + ".log")
    except Trouble as trouble:
        cell.wrong.append(str(trouble))
        note_kernel(cell, meter.more_of(meter.network_record(), before))


@contextlib.contextmanager
def idle_ones(shot):
    """Clients that keep a connection, and ask for a small file on it every four seconds (wrk)."""
    if not shot.spot.idle:
        yield
        return
    with open(shot.save_as + ".idle", "wb") as out:
        crowd = processes.start(["wrk", "-t1", "-c%d" % shot.spot.idle, "-d9999", "-s", IDLE,
                                 shot.server.url + IDLE_FILE, "--", str(shot.spot.idle)], shot.place.cores,
                                stdin=-3, stdout=out, stderr=out)  # -3: /dev/null
    try:
        processes.wait(crowd, IDLE_SECONDS)
        yield
        if processes.has_ended(crowd):
            raise Trouble("the idle clients have ended: %s" % processes.printed(shot.save_as + ".idle").strip())
    finally:
        processes.end(crowd)


def note_switches(cell, log):
    """The mean of the server's whole run, its warm-up included, as it says itself. Who says nothing has none."""
    said = os.path.exists(log) and subjects.farewell(processes.printed(log))
    if said and said.requests:
        for name in ("voluntary", "involuntary"):
            cell.figures[name + "_switches"] = round(getattr(said, name) * cell.load.requests / said.requests)


def note_kernel(cell, record):
    """Adds the kernel's counts: why a cell is wrong, or why a right one is slow."""
    text = meter.record_text(record)
    if text:
        (cell.wrong or cell.remarks).append("the kernel counted %s" % text)


def file_name(cell):
    """The name of the cell's files in raw/. The server's output has it with .log."""
    parts = [value for name, value in asdict(cell.spot).items() if value is not None and name != "path"]
    return re.sub(r"[^\w.@-]+", "_", "-".join(map(str, [*parts, cell.round])))


def judge(cell, asks_redis, is_shared, size=None):
    """Checks the conditions that a cell must meet. `size` is that of each response, if all are alike."""
    load, spot = cell.load, cell.spot
    if load.failed and spot.clients:  # what an open loop loses is its result
        cell.wrong.append("%s requests failed: %s" % (format(load.failed, ","), load.errors_text()))
    if cell.asked and spot.clients and load.requests + load.failed != cell.asked:
        cell.wrong.append("%s requests of %s were completed" % (
            format(load.requests + load.failed, ","), format(cell.asked, ",")))
    in_flight = cell.asked - load.requests if not spot.clients else 0 if cell.asked else spot.clients
    if size and load.content is not None and not load.failed and not (
            0 <= load.content - round(size * load.requests) <= size * in_flight):
        cell.wrong.append("%s bytes came in %s answers of %s" % tuple(
            format(number, ",") for number in (load.content, load.requests, size)))
    if asks_redis:
        cell.wrong += unequal(load.requests, cell.counts, in_flight)
        cell.wrong += ignored(cell)
    if is_shared:
        cell.remarks.append("%d cores: %s" % (spot.cores, rows.SHARED))
    if spot.clients and load.requests + load.failed < cell.least:
        cell.remarks.append("it ended by the clock, with fewer than %d requests for each client" % (
            cell.least / spot.clients))
    note_kernel(cell, cell.figures)


def unequal(pages, found, in_flight=0):
    """What is wrong with Redis' counts: it must be exactly three calls and one visitor a page. A run that ends
    by the clock leaves up to `in_flight` requests, which may have been counted, too."""
    if not all(0 <= count - pages <= in_flight for count in found):
        yield "for %s pages Redis counted %s INCR, %s GET, %s LRANGE and %s visitors" % tuple(
            format(number, ",") for number in (pages, *found))


def ignored(cell):
    """Was a server told to do something, and did not? Its figures would look like a fast server's."""
    delay, work = cell.spot.delay_ms or 0, cell.spot.work_ms
    least = cell.load.percentiles.get(50, math.inf)
    if least < CALLS * delay:
        yield "Redis was %g ms away, and %d calls to it took %.1f ms" % (delay, CALLS, least)
    cpu = cell.figures["server_cpu_us"] / max(1, cell.load.requests)
    if cpu < LEAST_WORK * 1000 * work:
        yield "a page was to compute for %g ms, and took %.2f" % (work, cpu / 1000)


def row(cell):
    """{column: text}, empty where there is no figure."""
    spot, load = cell.spot, cell.load
    found = {**asdict(spot), "round": cell.round, "tries": cell.tries, "asked": cell.asked or None,
             "wrong": "; ".join(cell.wrong), "remarks": "; ".join(cell.remarks)}
    if cell.figures:
        found.update((name, "%.4f" % figure if isinstance(figure, float) else figure) for name, figure in cell.figures.items())
    found["canary_us"] = cell.canary_us and "%.0f" % cell.canary_us
    if load and cell.figures:
        found.update(requests=load.requests, failed=load.failed, errors=load.errors_text(), content=load.content,
                     seconds="%.4f" % load.seconds, requests_per_second="%.1f" % load.rate, mean_ms="%.3f" % load.mean_ms)
        found.update(("p%g_ms" % percent if percent < 100 else "max_ms", "%.3f" % ms)
                     for percent, ms in load.percentiles.items() if math.isfinite(ms))
        if not spot.clients:
            found.update(in_time=load.in_time)
        elif not spot.offered:  # else they wait for their turns as well
            found["little_off"] = "%.2f" % meter.off(spot.clients, load.rate, load.mean_ms)
    found.update(cell.counts._asdict() if cell.counts else {})
    return {column: "" if found.get(column) is None else str(found[column]).replace("\t", " ").replace("\n", " ")
            for column in COLUMNS}


def not_held(row):
    """Why the offered rate of a row was not held, in words; None: it was."""
    if row["wrong"] or not row["requests"]:
        return row["wrong"] or "it was not offered"
    if int(row["failed"]):
        return row["errors"]
    share = int(row["in_time"]) / int(row["asked"])
    return None if share >= ENOUGH else "only %.1f %% answered within %d ms" % (100 * share, LATE_MS)
