"""offered: one step: so many new connections a second, offered to one subject by httperf.

A rate is served if no connection failed, and if as many were answered a second as were offered. A
step is void if httperf itself was the limit, usually by its 1,000 descriptors. Then so many
connections were waiting, and the others were not offered at all.
"""

import os
import statistics
from dataclasses import dataclass, field
from typing import List, Optional

from lib import Trouble, subjects
from lib.generators import httperf
from lib.measuring import meter
from lib.reporting import table
from lib.reporting.table import count

ENOUGH = 0.99  # a share of the offered rate
SHORT_ENOUGH = 0.8  # in a short run the last replies, which come late, are a large part
FEW = 2  # samples: it was a short one
WARM_UP_RATE, WARM_UP_SECONDS = 500, 0.2


@dataclass
class Step:
    """What was offered, and what came of it."""

    subject: str
    rate: int  # connections a second
    round: int
    report: Optional[httperf.Report] = None  # None: it could not be measured
    reading: Optional[meter.Reading] = None
    wrong: List[str] = field(default_factory=list)  # the step says nothing about any rate

    @property
    def replies(self):
        """Replies a second: (mean, least, most), of samples of 5 s if there are enough of them."""
        report = self.report
        if report.samples < FEW:
            return (report.reply_rate,) * 3
        return report.reply_rate_mean, report.reply_rate_min, report.reply_rate_max

    @property
    def void(self):
        """Why the step is void, or None."""
        return self.report and self.report.void

    @property
    def erred(self):
        """What went wrong, in words; None if every offered connection was answered."""
        if self.wrong or self.void:
            return "; ".join(self.wrong) or "void: %s" % self.void
        return self.report.load().errors_text() or None

    @property
    def failed(self):
        """Why the rate is not served, in words; None if it is."""
        if self.erred:
            return self.erred
        enough = ENOUGH if self.report.samples >= FEW else SHORT_ENOUGH
        if self.replies[0] < enough * self.rate:
            return "only %s replies a second" % count(self.replies[0])
        return None

    @property
    def micros(self):
        """The server's CPU microseconds for each connection."""
        return self.reading.cpu_us / max(1, self.report.replies)


def measure(step, run):
    """Fills the step, even if something fails: a fresh server, a short warm-up, then the load."""
    save_as = os.path.join(run.folder, "raw", "%s-%d-%d-%d" % (
        step.subject.replace("/", "_"), step.rate, step.round, len(run.cells) + 1))
    try:
        with run.open(step.subject, save_as + ".log") as server:
            run.experiment.look_at(server, run)
            _offer(step, server, run, save_as)
            step.wrong += subjects.end(server, step.subject)
    except Trouble as trouble:
        step.wrong.append(str(trouble))


def _offer(step, server, run, save_as):
    url, cores = server.url + run.path, run.cores.client
    httperf.run(url, WARM_UP_RATE, WARM_UP_SECONDS, cores, save_as + "-warmup")
    try:
        with meter.Meter(server.pid, run.cores) as watch:
            step.report = httperf.run(url, step.rate, run.seconds, cores, save_as)
    finally:
        server.must_live()  # if it did not end well, that is the better reason
    step.reading = watch.reading


class Limit:
    """The results of one server's steps, of all rounds. new_search() makes a knee.Search."""

    def __init__(self, steps, new_search):
        self.steps = steps
        self.best = []  # of each round, the step at the highest rate that was served
        self.ends = []  # and the next above it
        for number in sorted({step.round for step in steps}):
            self._add_round([step for step in steps if step.round == number], new_search())

    def _add_round(self, steps, search):
        for step in steps:
            search.tell(step.rate, not step.failed)
        self.best += [step for step in steps if step.rate == search.knee and not step.failed][:1]
        above = [step for step in steps if step.rate > (search.knee or 0) and step.failed]
        self.ends += sorted(above, key=lambda step: step.rate)[:1]

    def median(self, figure):
        """The median of the rounds; None if no rate was served."""
        return statistics.median(map(figure, self.best)) if self.best else None

    @property
    def rates(self):
        return [step.rate for step in self.best]

    @property
    def end(self):
        """What happened above the limit, in words."""
        ends = dict.fromkeys("%s: %s" % (count(step.rate), step.failed) for step in self.ends)
        return "; ".join(ends) or "not reached"

    @property
    def bound(self):
        verdicts = [step.reading.verdict() for step in self.ends if step.reading]
        return statistics.mode(verdicts) if verdicts else "-"


FIELDS = [name for _, names in httperf.LINES for name in names.split() if name != "_"]
COLUMNS = ["round", "subject", "offered", *FIELDS, "not_2xx", *httperf.ERROR_KINDS, "failed",
           *meter.COLUMNS]


def raw(step):
    row = dict(round=step.round, subject=step.subject, offered=step.rate, failed=step.failed)
    if step.report:
        row.update((name, getattr(step.report, name)) for name in FIELDS)
        row.update((kind, step.report.errors.get(kind, 0)) for kind in httperf.ERROR_KINDS)
        row.update(not_2xx=step.report.load().errors.get("not 2xx", 0))
    if step.reading:
        row.update(zip(meter.COLUMNS, step.reading.raw()))
    return table.raw_row(COLUMNS, row)
