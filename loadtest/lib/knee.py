"""knee: which rate to offer next, to find the highest that is served well.

The rate is doubled until it is too much. Then it is halfway between the highest that was served and
the lowest that was too much, until they are close. A rate is too much if it failed twice, and no
higher one was served. The second try forgives a hiccup of the machine. And the first rate that
fails twice is doubled once more, because some servers have failed at a rate, and then served twice
as many.
"""

TRIES = 2
GIVE_UP = 1 / 8  # a server that fails at this part of the first rate does not serve


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
