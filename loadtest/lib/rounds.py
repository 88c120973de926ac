"""rounds: every spot several times, in an order that no drift can favour, and the results.

In each round every subject has its turn once at each level. The order of the subjects is shuffled
in each round, by a seed that the report names. The figure that counts is the median of the rounds.
How sure it is, a bootstrap says: of as many rounds, drawn from them with replacement thousands of
times, the medians of 95 % lie in the interval. Two subjects are compared within each round, so that
what slows the machine down for a minute slows both.
"""

import random
import statistics

from lib.measuring import meter
from lib.reporting import table

WIDE_PERCENT = 15  # a wider interval is worth a note
WIDE = "rounds differ: the interval of their median is wider than %d %%" % WIDE_PERCENT
DRAWS, OUTSIDE = 2000, 0.025  # at each end
UNRANKED = (meter.CLIENT, meter.OTHERS)  # whose rate says only what the server can do at least


def order(spots, rounds, seed):
    """All turns, as (round, spot). `spots` come grouped: those that differ in their subject only
    stay together and are shuffled among themselves."""
    dice = random.Random(seed)
    turns = []
    for number in range(1, rounds + 1):
        groups = {}
        for spot in spots:
            groups.setdefault(spot.of(""), []).append(spot)
        for group in groups.values():
            dice.shuffle(group)
            turns += [(number, spot) for spot in group]
    return turns


def interval(figures, others=None):
    """The bootstrap interval of the median, or of its ratio to that of another run's figures, whose
    rounds have nothing to do with these: (low, high)."""
    dice = random.Random(1)  # the same figures have the same interval

    def drawn(each):
        return statistics.median(dice.choices(each, k=len(each)))

    medians = sorted(drawn(figures) / (drawn(others) if others else 1) for _ in range(DRAWS))
    return medians[int(DRAWS * OUTSIDE)], medians[int(DRAWS * (1 - OUTSIDE)) - 1]


class Spread:
    """Several measurements of one thing."""

    def __init__(self, figures):
        self.figures = sorted(figures)
        self.median = statistics.median(self.figures)
        self.mean = statistics.fmean(self.figures)
        self.low, self.high = self.figures[0], self.figures[-1]

    def __str__(self):
        """The median and the range, as in "1,234 [1,100-1,300]"."""
        low, middle, high = map("{:,.0f}".format, (self.low, self.median, self.high))
        return middle if low == high else "%s [%s-%s]" % (middle, low, high)

    @property
    def range(self):
        """(middle, low, high), as lib.reporting.chart takes it."""
        return self.median, self.low, self.high

    @property
    def width_percent(self):
        """How wide the interval of the median is."""
        low, high = interval(self.figures)
        return 100 * (high - low) / self.median if self.median else 0.0

    @property
    def is_wide(self):
        return self.width_percent > WIDE_PERCENT


class Spot:
    """All rounds of one spot, as a table shows them. A round with errors is never averaged into
    the clean ones: it is rejected, counted, and its reason kept."""

    def __init__(self, cells):
        self.cells = cells
        self.clean = [cell for cell in cells if cell.load and not cell.wrong]
        self.wrong = list(dict.fromkeys(text for cell in cells for text in cell.wrong))
        self.failed = sum(cell.load.failed for cell in cells if cell.load)

    @property
    def rejected(self):
        """Notes on the rounds that do not count."""
        few = len(self.cells) - len(self.clean)
        return ["%s%s" % ("%d of %d rounds rejected: " % (few, len(self.cells))
                          if len(self.cells) > 1 else "", text) for text in self.wrong]

    @property
    def remarks(self):
        """The remarks on the clean rounds, each once."""
        return list(dict.fromkeys(text for cell in self.clean for text in cell.remarks))

    def spread(self, figure):
        """The Spread of figure(cell) in the clean rounds; None if there is none."""
        known = [each for each in map(figure, self.clean) if each is not None]
        return Spread(known) if known else None

    @property
    def rate(self):
        return self.spread(lambda cell: cell.rate)

    def percentile(self, percent):
        return self.spread(lambda cell: cell.load.percentiles.get(percent))

    @property
    def micros(self):
        return self.spread(lambda cell: cell.micros)

    @property
    def bound(self):
        """What limits the figure in most rounds."""
        return statistics.mode(cell.bound for cell in self.clean) if self.clean else ""

    @property
    def is_ranked(self):
        return self.bound not in UNRANKED


def ratio_text(spot, other, figure):
    """How much of another's figure it is, by the rounds that both have: "1.20 x [1.15-1.26]", or
    "=" if the interval holds 1. One round has no interval."""
    if not (spot and other):
        return "-"
    theirs = {cell.round: figure(cell) for cell in other.clean}
    ratios = [figure(cell) / theirs[cell.round] for cell in spot.clean if theirs.get(cell.round)
              and figure(cell)]
    if not ratios:
        return "-"
    if spot is other:
        return "1"
    if len(ratios) == 1:
        return "%.2f x" % ratios[0]
    low, high = interval(ratios)
    if low <= 1 <= high:
        return "="
    return "%.2f x [%.2f-%.2f]" % (statistics.median(ratios), low, high)


def rate_text(spot, notes, kernel=True, ranged=False):
    """The median rate, with its notes; with "≥" if the load generator was the limit; with the smallest and
    the largest of the rounds if `ranged`. Notes on the kernel's counts are included only if `kernel`."""
    if spot is None:
        return ""  # interrupted before
    if not spot.rate:
        return "-" + notes.marks(spot.rejected)
    rate = str(spot.rate) if ranged else table.count(spot.rate.median)
    text = ("" if spot.is_ranked else table.AT_LEAST) + rate
    return text + notes.marks(
        text for text in [*spot.rejected, *spot.remarks, *[WIDE] * spot.rate.is_wide]
        if kernel or not text.startswith("the kernel"))


def by_spot(cells):
    """A dict from each spot to the results of its rounds."""
    groups = {}
    for cell in cells:
        groups.setdefault(cell.spot, []).append(cell)
    return {spot: Spot(group) for spot, group in groups.items()}
