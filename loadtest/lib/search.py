"""search: the highest rate that a server holds, whatever the replies do.

One rule (cells.Cell.not_held) for all programs: a rate is held if no request failed, if 99 % of
what was offered was answered within the step, which ends 50 ms after its last request, and if 99 of
100 took less than 50 ms from the moment when they should have been sent. httperf reports no such
times, so of it the last is not asked.

The rate is doubled until it is too much. Then it is halfway between the highest that was held and
the lowest that was too much, until they are close. A rate is too much if it failed twice, and no
higher one was held. The second try forgives a hiccup of the machine. And the first rate that
fails twice is doubled once more, because some servers have failed at a rate, and then held twice
as many.
"""

from dataclasses import replace

from lib import experiment, rounds
from lib.cells import ENOUGH, LATE_MS
from lib.run import Record

RULE = ("A rate is held if no request failed, if %d %% of what was offered was answered within the "
        "step, which ends %d ms after its last request, and if 99 of 100 were answered within %d ms of "
        "the moment when they should have been sent. " % (100 * ENOUGH, LATE_MS, LATE_MS))
STEPS, LATER_STEPS = 11, 5  # about so many a search takes
TRIES = 2
GIVE_UP = 1 / 8  # a server that fails at this part of the first rate does not serve


class Searching(experiment.Experiment):
    """An experiment whose spots are not known before. A subclass has

    ways(run)                          {name: a function from a rate to a Spot}: what is looked at
    planned(run)                       about how many steps that takes
    climb(run, record, way, number)    measures one of the ways in one round
    """

    def plan(self, run):
        steps = self.planned(run)
        return "%d steps, about %.0f minutes" % (steps, steps * run.guess_seconds / 60)

    def measure(self, run):
        spots = [way(None) for way in self.ways(run).values()]
        with Record(run, self.planned(run)) as record:
            for number, spot in rounds.order(spots, run.rounds, run.seed):
                self.climb(run, record, lambda rate, spot=spot: replace(spot, rate=rate), number)

    def limits(self, run):
        """{name: Limit} of those that have been measured."""
        limits = {name: limit_of(run.cells, way) for name, way in self.ways(run).items()}
        return {name: limit for name, limit in limits.items() if limit.cells}

    def status(self, run):
        """1 if something went wrong, or if a server held no rate. Its speed does not count."""
        return int(any(cell.wrong for cell in run.cells)
                   or not all(limit.best for limit in self.limits(run).values()))


def find(run, record, spot, rates, first, most, close, number, tries=TRIES):
    """Searches for the knee of one subject in one round. The first round begins at `first`, the
    later ones at what the rounds before have found."""
    limit = limit_of(run.cells, spot)
    search = Search(limit.start or first, most, close, tries=1 if rates else tries)
    for rate in sorted(rates) if rates else iter(search.next_rate, None):
        cell = record.measured(spot(rate), number)
        if cell.wrong:
            break  # another rate would not help
        search.tell(rate, not cell.not_held)
    return search


class Search:
    """Ask next_rate(), offer that rate, and tell() how it went, until there is no next rate."""

    def __init__(self, first, most, close, tries=TRIES):
        self._first, self._most, self._tries = first, most, tries
        self._close = close  # as a share: 0.1 means that the knee is known within 10 %
        self._good = []
        self._bad = {}  # rate: how often

    def tell(self, rate, is_good):
        if is_good:
            self._good.append(rate)
        else:
            self._bad[rate] = self._bad.get(rate, 0) + 1

    @property
    def knee(self):
        """The highest rate that was served, and is below all that were too much; None if there is
        none."""
        return max((rate for rate in self._good if rate < self.ceiling), default=None)

    @property
    def ceiling(self):
        """The lowest rate that was too much."""
        return min((rate for rate in self._bad if self._too_much(rate)), default=float("inf"))

    def _too_much(self, rate):
        refuted = self._tries > 1 and rate <= max(self._good, default=0)
        return self._bad.get(rate, 0) >= self._tries and not refuted

    def _is_doubted(self, rate):
        """Is a rate that was too much the highest that was tried? (Who gives each rate one try
        believes a failure.)"""
        return self._tries > 1 and 2 * rate <= self._most and rate == max(self._bad)

    def next_rate(self):
        """The rate to offer next. None: the knee is found, or there is none in reach."""
        knee, ceiling = self.knee or 0, self.ceiling
        if ceiling == float("inf"):
            rate = min(2 * knee, self._most) if knee else self._first
        elif self._is_doubted(ceiling):
            rate = 2 * ceiling
        elif ceiling - knee <= self._close * knee or ceiling <= GIVE_UP * self._first:
            return None
        else:
            rate = round_down((knee + ceiling) / 2)
        return None if rate in self._good or self._too_much(rate) else rate


def round_down(rate):
    """Rounds down to two digits and a half: 150, 1,550, 23,500."""
    step = 1
    while rate / step >= 1000:
        step *= 10
    return int(rate / step // 5 * 5 * step) if rate >= 100 else int(rate)


class Limit:
    """What was found of one subject: in each round, the cell at the highest rate that was held
    below all that were too much, and the first cell above it."""

    def __init__(self, cells):
        self.cells, self.best, self.ends = cells, [], []
        for number in sorted({cell.round for cell in cells}):
            own = [cell for cell in cells if cell.round == number]
            held = [cell for cell in own if not cell.not_held]
            bad = [cell for cell in own if cell.not_held]
            top = max((cell.spot.rate for cell in held), default=0)
            self.best += [cell for cell in held if cell.spot.rate == top][:1]
            self.ends += sorted((cell for cell in bad if cell.spot.rate > top),
                                key=lambda cell: cell.spot.rate)[:1]

    @property
    def in_order(self):
        """The cells round by round, from the lowest rate to the highest."""
        return sorted(self.cells, key=lambda cell: (cell.round, cell.spot.rate))

    @property
    def start(self):
        """Where the next round should begin: a little below what is known."""
        known = [cell.spot.rate for cell in self.best]
        return round_down(0.8 * rounds.Spread(known).median) if known else None

    @property
    def rate(self):
        """The Spread of the rates that were held; None if none was."""
        return rounds.Spread([cell.spot.rate for cell in self.best]) if self.best else None

    @property
    def end(self):
        """What happened above the limit, in words."""
        return "; ".join(dict.fromkeys("%s: %s" % (
            format(round(cell.spot.rate), ","), cell.note or cell.not_held)
            for cell in self.ends)) or "not reached"

    @property
    def at_knee(self):
        """The rounds at their knees, as a rounds.Spot."""
        return rounds.Spot(self.best)

    @property
    def bound(self):
        """What was full where it became too much."""
        return rounds.Spot([cell for cell in self.ends if cell.reading]).bound or "-"


def limit_of(cells, spot):
    """The Limit of the cells that such a spot has, at any rate."""
    return Limit([cell for cell in cells if cell.spot == spot(cell.spot.rate)])
