"""rounds: every spot several times, in an order that no drift can favour, and the results.

In each round every subject has its turn once at each level. The order of the subjects is shuffled
in each round, by a seed that the report names. The figure that counts is the median of the rounds,
with the smallest and the largest beside it.
"""

import random
import statistics

from lib.reporting import table

WIDE_PERCENT = 15  # rounds that differ by more are worth a note


def order(spots, rounds, seed):
    """All turns, as (round, spot). `spots` come grouped: those that differ in their subject only
    stay together and are shuffled among themselves."""
    dice = random.Random(seed)
    turns = []
    for number in range(1, rounds + 1):
        groups = {}
        for spot in spots:
            key = tuple(value for name, value in vars(spot).items() if name != "subject")
            groups.setdefault(key, []).append(spot)
        for group in groups.values():
            dice.shuffle(group)
            turns += [(number, spot) for spot in group]
    return turns


class Spread:
    """Several measurements of one thing."""

    def __init__(self, figures):
        self.figures = sorted(figures)
        self.median = statistics.median(self.figures)
        self.mean = statistics.fmean(self.figures)
        self.low, self.high = self.figures[0], self.figures[-1]

    @property
    def range(self):
        """(middle, low, high), as lib.chart takes it."""
        return self.median, self.low, self.high

    @property
    def relative(self):
        """How far apart smallest and largest are, as a share of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


class Spot:
    """All rounds of one spot, as a table shows them. A round with errors is never averaged into
    the clean ones: it marks the spot."""

    def __init__(self, cells):
        self.cells = cells
        self.clean = [cell for cell in cells if cell.load and not cell.wrong]
        self.wrong = list(dict.fromkeys(text for cell in cells for text in cell.wrong))
        self.failed = sum(cell.load.failed for cell in cells if cell.load)

    @property
    def remarks(self):
        """The remarks on the clean rounds, each once."""
        return list(dict.fromkeys(text for cell in self.clean for text in cell.remarks))

    def spread(self, figure):
        """The Spread of figure(cell) in the clean rounds; None if there is none."""
        return Spread([figure(cell) for cell in self.clean]) if self.clean else None

    @property
    def rate(self):
        return self.spread(lambda cell: cell.load.rate)

    def percentile(self, percent):
        return self.spread(lambda cell: cell.load.percentiles[percent])

    @property
    def micros(self):
        known = [cell.micros for cell in self.clean if cell.micros is not None]
        return Spread(known) if known else None

    @property
    def pss_mib(self):
        known = [cell for cell in self.clean if cell.reading.peak_pss is not None]
        return Spread([cell.reading.peak_pss / 2**20 for cell in known]) if known else None

    @property
    def bound(self):
        """What limits the figure in most rounds."""
        return statistics.mode(cell.reading.verdict() for cell in self.clean) if self.clean else ""


def rate_text(spot, notes, kernel=True):
    """The median rate, with its notes. Notes on the kernel's counts are included only if
    `kernel`."""
    if spot is None:
        return ""  # interrupted before
    rate = spot.rate
    wide = bool(rate) and 100 * rate.relative > WIDE_PERCENT
    return (table.count(rate.median) if rate else "-") + notes.marks(
        text for text in [*spot.wrong, *spot.remarks,
                          *["rounds differ by more than %d %%" % WIDE_PERCENT] * wide]
        if kernel or not text.startswith("the kernel"))


def median_rate(spot):
    """Of a Spot, or None; None if there was no clean round."""
    return spot.rate.median if spot and spot.rate else None


def by_spot(cells):
    """A dict from each spot to the results of its rounds."""
    groups = {}
    for cell in cells:
        groups.setdefault(cell.spot, []).append(cell)
    return {spot: Spot(group) for spot, group in groups.items()}
