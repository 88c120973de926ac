"""cells: one cell of a table, which is one server at one number of clients.

Every cell begins alike: a fresh process, the same entries in Redis. A few requests show roughly
how fast the server is, a warm-up sharpens that, and from it comes how many requests the cell
itself shall have. Only those are counted.
"""

import os
from dataclasses import dataclass, field
from typing import List, Optional

from lib import Trouble, ab, machine, redis, servers, work

LIMIT_FACTOR = 10  # a run that takes so many times as long as planned is given up
LIMIT_LEAST_SECONDS = 15
FULL_PERCENT = 90  # so busy, a core is what limits
FREE_PERCENT = 75  # and so busy, it is not


@dataclass(frozen=True)
class Plan:
    """What all cells of a table have in common."""

    redis: redis.Redis
    cores: machine.Cores
    folder: str  # takes what the programs print
    seconds: float  # a cell shall take about as long
    warmup_seconds: float
    requests: Optional[int]  # a fixed number instead


@dataclass
class Cell:
    """What was measured, and what is wrong with it."""

    server: str
    clients: int
    requests: int = 0
    report: Optional[ab.Report] = None  # None: it could not be measured
    counts: Optional[redis.Counts] = None
    busy: machine.Cores = machine.Cores(None, None)  # percent
    notes: List[str] = field(default_factory=list)  # empty: all is right

    @property
    def limited_by_client(self):
        """Were ab and Redis at their limit while the server was not at its own?"""
        server, client = self.busy
        return client is not None and client >= FULL_PERCENT and server < FREE_PERCENT


def measure(name, clients, plan):
    """One cell, whatever happens in it: what goes wrong is in its notes."""
    cell = Cell(name, clients)
    log = os.path.join(plan.folder, "%s-%d.log" % (name, clients))
    try:
        plan.redis.seed()
        with servers.Server(name, plan.redis, plan.cores.server, log) as server:
            _load(cell, server, plan)
            status = server.end()
        if status:
            cell.notes.append("asked to stop, the server ended with %s"
                              % servers.how_it_ended(status))
    except Trouble as trouble:
        cell.notes.append(str(trouble))
    return cell


def _load(cell, server, plan):
    """Warms up, measures, and holds the result against Redis' statistics."""
    cell.requests = _warm_up(cell, server, plan)
    before = plan.redis.counts()
    watch = machine.Busy(plan.cores)
    report = _run(cell, server, plan, cell.requests)
    cell.busy = watch.shares()
    cell.counts = plan.redis.counts_since(before)
    cell.report = report
    cell.notes += what_is_wrong(report, cell.requests, cell.counts)


def _warm_up(cell, server, plan):
    """Loads the server for a moment. Returns how many requests the cell shall have."""
    few = max(2 * cell.clients, 200)  # so that each client has its second turn
    report = _run(cell, server, plan, few, "-warmup")
    if plan.warmup_seconds:
        more = max(few, round(report.pages_rate * plan.warmup_seconds))
        report = _run(cell, server, plan, more, "-warmup")
    if report.errors:
        cell.notes.append("errors in the warm-up already: %s" % report.errors_text())
    return max(plan.requests or round(report.pages_rate * plan.seconds), cell.clients)


def _run(cell, server, plan, requests, suffix=""):
    """One run of ab. Trouble if the server did not live through it, or if no page came: ab
    would call that a very fast server."""
    save_as = os.path.join(plan.folder, "%s-%d%s" % (cell.server, cell.clients, suffix))
    limit = None if plan.requests else max(LIMIT_LEAST_SECONDS, LIMIT_FACTOR * plan.seconds)
    try:
        report = ab.run(server.url + "/guestbook", requests, cell.clients, plan.cores.client,
                        save_as, limit)
        if not report.pages:
            raise Trouble("not one page came: %s" % report.errors_text())
    except Trouble:
        server.must_live()  # if it does not, that is the better reason
        raise
    server.must_live()
    return report


def what_is_wrong(report, requests, counts):
    """The notes for a cell that was measured; none if all is right."""
    notes = []
    if report.errors:
        notes.append("%s of %s requests failed: %s" % (
            format(report.errors, ","), format(report.complete, ","), report.errors_text()))
    if report.complete != requests:
        notes.append("ab completed %s requests of %s" % (
            format(report.complete, ","), format(requests, ",")))
    unequal = work.unequal(report.pages, counts)
    if unequal:
        notes.append(unequal)
    return notes


COLUMNS = ["server", "clients", "requests", "complete", "failed", "connect", "receive", "length",
           "exceptions", "non_2xx", "page_bytes", "seconds", "requests_per_second", "p50_ms",
           "p90_ms", "p99_ms", "incr", "get", "lrange", "visitors",
           "server_core_busy", "client_core_busy", "notes"]


def raw(cell):
    """A cell's figures, one for each of COLUMNS; empty where it could not be measured."""
    figures = [cell.server, cell.clients, cell.requests]
    if cell.report:
        report = cell.report
        kinds = [report.kinds.get(kind, 0)
                 for kind in ("connect", "receive", "length", "exceptions")]
        figures += [report.complete, report.failed, *kinds, report.non_2xx, report.page_bytes,
                    report.seconds, report.rate]
        figures += [report.percentiles[percent] for percent in (50, 90, 99)]
        figures += cell.counts
        figures += ["" if share is None else "%.1f" % share for share in cell.busy]
    figures += [""] * (len(COLUMNS) - 1 - len(figures))
    return figures + ["; ".join(cell.notes).replace("\t", " ")]
