"""search: the highest rate that a server holds, whatever the replies do.

One rule (cells.Cell.not_held) for all programs: a rate is held if no request failed, if 99 % of
what was offered was answered within the step, which ends 50 ms after its last request, and if 99 of
100 took less than 50 ms from the moment when they should have been sent. httperf reports no such
times, so of it the last is not asked.
"""

from lib import knee, rounds
from lib.cells import ENOUGH, LATE_MS

RULE = ("A rate is held if no request failed, if %d %% of what was offered was answered within the "
        "step, which ends %d ms after its last request, and if 99 of 100 were answered within %d ms of "
        "the moment when they should have been sent. " % (100 * ENOUGH, LATE_MS, LATE_MS))
STEPS, LATER_STEPS = 11, 5  # about so many a search takes


def find(run, record, spot, rates, first, most, close, number, tries=knee.TRIES):
    """Searches for the knee of one subject in one round. The first round begins at `first`, the
    later ones at what the rounds before have found."""
    limit = limit_of(run.cells, spot)
    search = knee.Search(limit.start or first, most, close, tries=1 if rates else tries)
    for rate in sorted(rates) if rates else iter(search.next_rate, None):
        cell = record.measured(spot(rate), number)
        if cell.wrong:
            break  # another rate would not help
        search.tell(rate, not cell.not_held)
    return search


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
    def start(self):
        """Where the next round should begin: a little below what is known."""
        known = [cell.spot.rate for cell in self.best]
        return knee.round_down(0.8 * rounds.Spread(known).median) if known else None

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
