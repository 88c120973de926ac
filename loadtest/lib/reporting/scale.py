"""scale: the places of figures along an axis, and the round numbers on it."""

import math


class Scale:
    """An axis: `low` and `high` are its ends, with some room beyond the figures, given as a share.

    A linear axis begins at 0 if no figure is below it: a part of an axis exaggerates."""

    def __init__(self, axis, figures, below=0.0, above=0.0):
        self.axis = axis
        figures = [*figures] if axis.log or axis.ticks else [0, *figures]
        low, high = map(self._even, (min(figures), max(figures)))
        if axis.log and high - low < 1:  # at least a decade, which has three ticks
            low, high = (low + high - 1) / 2, (low + high + 1) / 2
        elif low == high:
            high += 1
        room = high - low
        self._low, self._length = low - below * room, room * (1 + below + above)
        self._last = 1 - above / (1 + below + above) + 1e-9  # tick: not in the room above
        ends = self._low, self._low + self._length
        self.low, self.high = (10 ** end for end in ends) if axis.log else ends

    def _even(self, value):
        """The value on a scale on which equal steps are equal on paper."""
        return math.log10(value) if self.axis.log else float(value)

    def at(self, value):
        """The place of a figure, from 0 to 1."""
        return (self._even(value) - self._low) / self._length

    def value(self, place):
        """The figure at a place from 0 to 1."""
        even = self._low + place * self._length
        return 10 ** even if self.axis.log else even

    def ticks(self, few):
        """The ticks that have a text, from left to right. Of many ticks they are the ends, and a
        few round ones between them that are far apart."""
        every = range(len(self.axis.ticks)) if self.axis.even else (
            sorted(self.axis.ticks or self._round(few)))
        ticks = [tick for tick in every if (tick > 0 or not self.axis.log)
                 and -1e-9 <= self.at(tick) <= self._last]
        if len(ticks) <= few + 1:
            return ticks
        first, last = self.at(ticks[0]), self.at(ticks[-1])
        places = [first + (last - first) * each / (few - 1) for each in range(1, few - 1)]
        return sorted({ticks[0], ticks[-1], *(min(ticks, key=lambda tick: (
            round(abs(self.at(tick) - place), 1), ("%e" % tick)[0] not in "15",
            abs(self.at(tick) - place))) for place in places)})

    def _round(self, few):
        """1, 2 or 5 times a power of ten."""
        if self.axis.log:
            digits = (1,) if self._length > 2 else (1, 2, 5)
            return [digit * 10.0 ** power for power in range(
                math.floor(self._low), math.ceil(self._low + self._length)) for digit in digits]
        rough = self._length / few
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= rough)
        return [step * number for number in range(math.ceil(self.low / step - 1e-9),
                                                  math.floor(self.high / step + 1e-9) + 1)]

    def text(self, tick):
        return number(self.axis.ticks[tick] if self.axis.even else tick)


def number(value):
    """A round number as text: 1,000 and 0.5."""
    return format(value, ",.10g")


def figure(value):
    """A measured number as text: three digits, more only before the point."""
    if abs(value) >= 99.95 or value == int(value):
        return format(round(value), ",")
    return "%.*f" % (1 if abs(value) >= 9.995 else 2, value)
