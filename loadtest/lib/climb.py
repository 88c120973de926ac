"""climb: an offered load that rises in steps, and the knee: how much of it a server holds.

An offered load is so many new connections a second, with a request on each, whatever the replies
do. A server holds it if no request fails and 99 of 100 are answered in time. Each step is a run of
h2load of its own. No client is left over from the step before, so no step pays for another.
"""

import math
import statistics
import time
from array import array
from dataclasses import dataclass, field, replace
from typing import ClassVar, Dict, List, Optional

from lib import Trouble, cells, knee
from lib.generators import h2load
from lib.measuring import meter
from lib.subjects import redis
from lib.generators.load import Load

LATE_MS = 50  # a load with a higher p99 is not held
TIMEOUT_SECONDS = 2  # for requests without any answer
FIRST, MOST = 100, 25600  # the search goes from one to the other; above, h2load itself is the limit
CLOSE = 0.25  # a share: how well the breaking load is known when the climb begins
BEYOND = 1.5  # how much higher than that load the climb goes
BINS_A_DECADE = 10


@dataclass(frozen=True)
class Way:
    subject: str
    instances: Optional[int] = None  # behind the balancer; None: it is asked directly
    backlog: ClassVar[None] = None
    dials: ClassVar[cells.Dials] = cells.Dials()

    def __str__(self):
        return "%s, nginx before %d" % (self.subject, self.instances) if self.instances else (
            self.subject)


@dataclass
class Step:
    way: Way
    offered: int  # new connections a second
    seconds: float  # how long
    probe: bool = False  # it was part of the search
    round: int = 1
    began: float = 0.0  # since 1970
    report: Optional[h2load.Report] = None  # without its responses; None: it could not be offered
    load: Optional[Load] = None
    starts: array = field(default_factory=lambda: array("d"))  # when an answered request was sent
    times: array = field(default_factory=lambda: array("d"))  # and how many ms its response took
    reading: Optional[meter.Reading] = None
    hosts: Dict[str, float] = field(default_factory=dict)  # of a lab: percent of a core
    counts: Optional[redis.Counts] = None
    wrong: List[str] = field(default_factory=list)

    def take(self, report):
        """Takes h2load's report. Of its responses the good ones are kept, as plain numbers."""
        good = [answer for answer in report.answers if answer.status // 100 == 2]
        self.load = report.load()
        self.starts = array("d", (answer.start_s for answer in good))
        self.times = array("d", (answer.ms for answer in good))
        self.report = replace(report, answers=[])

    @property
    def why_not(self):
        """Why this load is not held; None: it is."""
        if self.wrong:
            return "; ".join(self.wrong)
        if self.load is None:
            return "it was not offered"
        if self.load.failed:
            return self.load.errors_text()
        if not self.load.requests:
            return "nothing was answered"
        p99 = self.load.percentiles[99]
        return None if p99 < LATE_MS else "p99 of %.0f ms" % p99

    @property
    def ends(self):
        """When the last request was sent."""
        return self.began + (self.report.total / self.offered if self.report else 0.0)


def offer(step, server, run, save_as):
    place = run.hosts.place("load")
    before = run.redis.counts()
    step.began = time.time()
    try:
        with run.hosts.watch() as step.hosts, run.meter(server) as watch:
            step.take(h2load.offer(server.url + run.path, step.offered, step.seconds, place.cores,
                                   save_as, TIMEOUT_SECONDS, prefix=place.prefix))
        step.reading = watch.reading
        step.counts = run.redis.counts_since(before)
        server.must_live()
    except Trouble as trouble:
        step.wrong.append(str(trouble))
    else:
        if run.asks_redis(step.way):
            pages = step.report.statuses.get(2, 0)
            unequal = redis.unequal(pages, step.counts, step.report.total - pages)
            step.wrong += [unequal] if unequal else []
        if step.why_not:
            run.redis.settle()


# ---- how high ---------------------------------------------------------------------------------


def highest(breaks, first=FIRST, most=MOST):
    """The load at which a climb should end: BEYOND times the lowest load that breaks the server, or
    `most` if none does. `breaks(load)` tries one."""
    search = knee.Search(first, most, CLOSE, tries=1)
    for load in iter(search.next_rate, None):
        search.tell(load, not breaks(load))
    return even(min(BEYOND * search.ceiling, most))


def heights(low, high, steps):
    """The loads of the steps, from low to high, at equal distances."""
    if steps == 1:
        return [even(high)]
    each = (high - low) / (steps - 1)
    return sorted({even(low + each * number) for number in range(steps)})


def even(load):
    """The nearest load that h2load can spread evenly: whole connections every 10 ms, or one every
    so many milliseconds."""
    if load >= 100:
        return round(load / 100) * 100
    return min((each for each in range(1, 101) if 1000 % each == 0),
               key=lambda each: abs(each - load))


def top(steps):
    """The knee: the step with the highest load that was held, or None."""
    return max((step for step in steps if not step.why_not), default=None,
               key=lambda step: step.offered)


def broke(steps):
    """The step with the lowest load above the knee; None if the climb ended before."""
    held = top(steps)
    return min((step for step in steps if not held or step.offered > held.offered), default=None,
               key=lambda step: step.offered)


# ---- over time --------------------------------------------------------------------------------


def offered_over_time(steps):
    """[(second, load)], level for each step. Between steps there is no load, and so a gap."""
    zero = steps[0].began
    line = []
    for step in steps:
        line += [(step.began - zero, step.offered), (step.ends - zero, step.offered),
                 (step.ends - zero, None)]
    return line


def replies_over_time(steps, width):
    """[(second, replies a second)], in slices of `width` seconds from the beginning of each step. A
    reply counts when it was complete. After each step there is a gap."""
    def ends(step):
        return [start + ms / 1000 for start, ms in zip(step.starts, step.times)]

    return _over_time(steps, ends, width, lambda found: len(found) / width)


def times_over_time(steps):
    """[(second, ms)] of every reply. It counts when it was asked for."""
    zero = steps[0].began
    return [(start - zero, ms) for step in steps for start, ms in zip(step.starts, step.times)]


def medians_over_time(steps, width):
    """[(second, ms)], the median of each such slice; None if nothing was asked in it."""
    return _over_time(steps, lambda step: step.starts, width,
                      lambda found: statistics.median(found) if found else None)


def _over_time(steps, moments, width, figure):
    """The figure of the times in each slice, by moments(step). A last slice that is less than half
    full is left out."""
    line = []
    for step in steps:
        seconds = [moment - step.began for moment in moments(step)]
        slices = [[] for _ in range(round(max(seconds, default=0.0) / width))]
        for second, ms in zip(seconds, step.times):
            if second < width * len(slices):
                slices[int(second / width)].append(ms)
        ahead = step.began - steps[0].began
        points = [(ahead + width * (number + 0.5), figure(found))
                  for number, found in enumerate(slices)]
        line += points + [(second, None) for second, _ in points[-1:]]
    return line


# ---- all of them ------------------------------------------------------------------------------


def all_times(steps):
    return sorted(ms for step in steps for ms in step.times)


def bins(times):
    """How many replies took how long: [(from ms, to ms, replies)]. Powers of ten are divided into
    equal parts."""
    counts = {}
    for ms in times:
        number = math.floor(BINS_A_DECADE * math.log10(max(ms, 0.001)))
        counts[number] = counts.get(number, 0) + 1
    return [(10 ** (number / BINS_A_DECADE), 10 ** ((number + 1) / BINS_A_DECADE), counts[number])
            for number in sorted(counts)]


def outcomes(step):
    """What became of a step's requests, in percent: {"2xx": 97.5, "time-out": 2.5}."""
    if not step.report:
        return {}
    found = {"%dxx" % digit: count for digit, count in step.report.statuses.items()}
    found.update((kind, count) for kind, count in step.load.errors.items() if kind != "not 2xx")
    return {kind: 100 * count / step.report.total for kind, count in found.items()}


# ---- who was full -----------------------------------------------------------------------------


def who_was_full(busy):
    """From {name: percent of a core, or None}: the end of a sentence."""
    known = {name: percent for name, percent in busy.items() if percent is not None}
    full = ["%s (%.0f %%)" % each for each in known.items() if each[1] >= meter.FULL_PERCENT]
    loafs = ["%s (%.0f %%)" % each for each in known.items() if each[1] < meter.IDLE_PERCENT]
    if full:
        listed = " and ".join(filter(None, [", ".join(full[:-1]), full[-1]]))
        text = "%s %s full" % (listed, "was" if len(full) == 1 else "were")
    elif len(known) == len(busy):
        text = "none was full: late requests had waited, not worked"
    else:
        text = "none whose core is known here was full"
    return text + ("; %s loafed" % " and ".join(loafs) if loafs else "")
