"""dials: settings that are changed while all others stay. They are the distance of Redis, the work
of a page, and the number of cores. Each dial becomes a table and a chart.

The load fits the dial. With a distant Redis it takes many clients to keep a server busy: 500, with
a new connection each (ab). With work 20 clients are enough, and over kept connections (wrk) the
load generator takes little of a core that it shares.
"""

import itertools
import re
from dataclasses import dataclass

from lib import Trouble, columns, experiment
from lib.cells import CALLS, Dials, Spot
from lib.measuring import machine
from lib.reporting import chart
from lib.reporting.table import count
from lib.subjects import servers

AXES = {"delay_ms": "ms that Redis takes longer to answer",
        "work_ms": "ms of CPU time that each page computes",
        "cores": "cores that the server may use"}
WORKS, WORK_FOR_CORES, MOST_CORES = (0, 0.1, 1, 10), 2, 8
TITLES = ("What a server does while it waits, or computes",
          "How many pages a second, when Redis is further away, when a page takes computing, and "
          "when there are more cores?")


def add_options(parser):
    parser.add_argument("--delay", dest="delay_ms", metavar="LIST", type=experiment.milliseconds,
                        help="milliseconds that Redis is away, such as 0,1,10,50")
    parser.add_argument("--work", dest="work_ms", metavar="LIST", type=experiment.milliseconds,
                        help="milliseconds of CPU time that a page uses, such as 0,0.1,1,10")
    parser.add_argument("--cores", metavar="LIST", type=experiment.numbers,
                        help="number of cores that the server may use, such as 1,2")


def check_options(options, parser):
    if not all(isinstance(ms, int) for ms in options.delay_ms or []):
        parser.error("--delay is in whole ms")
    wanted, usable = max(options.cores or [1]), len(machine.usable_cores())
    if wanted > usable and not options.inventory:
        parser.error("--cores %d is more than there are: %d" % (wanted, usable))


def settings(options):
    """All combinations of the settings that were asked for."""
    return [Dials(*each) for each in itertools.product(
        *(getattr(options, name) or [rest] for name, rest in zip(Dials._fields, Dials())))]


def turns(options):
    """Turns the dial with the most settings, once for each combination of the others."""
    every = settings(options)
    dial = max(Dials._fields, key=lambda name: (
        len({getattr(each, name) for each in every}), bool(getattr(options, name))))
    groups = {}
    for each in every:
        groups.setdefault(each._replace(**{dial: None}), []).append(each)
    return [Turn(dial, tuple(group)) for group in groups.values()]


def all_turns():
    """The turns of `make dials`. The distance of Redis is a run of its own, `compare --delay`."""
    most = min(len(machine.usable_cores()), MOST_CORES)
    return [Turn("work_ms", tuple(Dials(work_ms=ms) for ms in WORKS)),
            Turn("cores", tuple(Dials(None, WORK_FOR_CORES, n) for n in range(1, most + 1)))]


@dataclass(frozen=True)
class Turn:
    """One dial, from its first setting to its last."""

    dial: str  # its name in Dials
    settings: tuple[Dials, ...]

    @property
    def load(self):
        """Load generator and clients."""
        return ("wrk", 20) if self.settings[0].delay_ms is None else ("ab", 500)

    @property
    def values(self):
        return [getattr(setting, self.dial) for setting in self.settings]

    def spot(self, name, setting=Dials()):
        return Spot(name, *self.load, dials=setting)

    def spots(self, names):
        """What each round measures. No dial changes the floor, which is the canary."""
        ours = [name for name in names if name != "floor"]
        return [self.spot(name, setting) for setting in self.settings for name in ours
                ] + [self.spot("floor")] * (len(ours) < len(names))

    def add_to(self, report, run, spots, notes):
        unit = "cores" if self.dial == "cores" else "ms"
        rows = {name: [spots.get(self.spot(name, setting)) for setting in self.settings]
                for name in run.servers if name != "floor"}
        header, lines = columns.rows_of(rows, [columns.rate("%g %s: pages/s" % (
            value, "core" if (value, unit) == (1, "cores") else unit), at, notes)
            for at, value in enumerate(self.values)] + [columns.BOUND])
        series = {re.sub(" --[a-z-]+ ", ", ", name): [  # threading, 500: a chart has little room
            (value, spot.rate and spot.rate.range) for value, spot in zip(self.values, row) if spot]
            for name, row in rows.items() if any(row)}
        fixed = self.settings[0]._replace(**{self.dial: getattr(Dials(), self.dial)})
        generator, clients = self.load
        caption = run.caption(", ".join(["Pages a second, %d clients" % clients, {
            "ab": "a new connection each", "wrk": "kept connections"}[generator], *fixed.words()]))
        svg = chart.lines(self.dial + fixed.in_file_name(), caption,
                          chart.Axis(AXES[self.dial], ticks=self.values, even=True),
                          chart.Axis("pages a second", log=self.dial != "cores"), series,
                          behind=dict(self.drawn_bounds()), together=self.dial == "delay_ms")
        report.add_chart(svg, caption, header, lines)
        report.add_table(header, lines, "; ".join([caption, *self.bounds(run)]), notes)

    def slots(self):
        """How many pages can wait for Redis at the same time, and whose that is."""
        workers = team()
        return [(number, whose) for number, whose in (
            (1, "one after the other"), (workers, "by %s workers" % workers),
            (self.load[1], "by %d clients" % self.load[1])) if number]

    def drawn_bounds(self):
        """For a chart: the most pages a second that so many slots can serve at each distance."""
        delays = [ms for ms in self.values if ms] if self.dial == "delay_ms" else []
        for number, whose in self.slots() if delays else ():
            yield "≤ " + whose.replace("by ", ""), [(ms, number / (CALLS * ms / 1000)) for ms in delays]

    def bounds(self, run):
        """The constants that limit its cells, in words."""
        delay, work, cores = (max(each or 0 for each in column) for column in zip(*self.settings))
        if delay:
            yield "%d x %d ms: at most %s" % (CALLS, delay, ", ".join("%s%s %s" % (
                count(number / (CALLS * delay / 1000)), " pages/s" * (number == 1), whose)
                for number, whose in self.slots()))
        if work:
            yield "%g ms: at most %s pages/s on a core" % (work, count(1000 / work))
        for number in range(2, cores + 1):
            if machine.shared(run.hosts.cores(number)):
                yield "%d cores: shared with %s and Redis" % (number, self.load[0])


def team():
    """The number of workers of the servers that have a fixed number, which share as many
    connections to Redis. None if they do not say."""
    try:
        text = machine.output_of([servers.path_of("preforking"), "--help"])
    except Trouble:
        return None
    found = re.search(r"--workers N .*\((\d+)\)", text)
    return int(found.group(1)) if found else None
