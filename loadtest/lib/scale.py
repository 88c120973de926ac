"""scale: from figures to places along an axis, and the round numbers that stand there."""

import math


class Scale:
    """An axis that is `length` pixels long and goes from `low` to `high`.

    On a logarithmic one there is no place for zero or less: at() gives None."""

    def __init__(self, low, high, log, length):
        self.low, self.high, self.log, self.length = low, high, log, length

    def at(self, value):
        """The place of a figure, in pixels from the beginning."""
        if self.log and value <= 0:
            return None
        low, high, value = map(math.log if self.log else float, (self.low, self.high, value))
        return (value - low) / (high - low) * self.length


def limits(figures, log):
    """(low, high), round numbers that leave room for all figures. A linear axis begins at 0 if
    nothing is below it: a part of an axis exaggerates."""
    if log:
        figures = [figure for figure in figures if figure > 0] or [1, 10]
        low, high = _step_below(min(figures)), _step_above(max(figures))
        return (low, high) if low < high else (low, _step_above(high * 1.5))
    low, high = min([0, *figures]), max([0, *figures])
    step = _linear_step(low, high)
    return step * math.floor(low / step), max(step, step * math.ceil(high / step - 1e-9))


def round_ticks(low, high, log):
    """Round numbers from low to high: few enough to be read, many enough to guide."""
    if not log:
        step = _linear_step(low, high)
        return [step * n for n in range(math.ceil(low / step - 1e-9),
                                        math.floor(high / step + 1e-9) + 1)]
    decades = range(math.floor(math.log10(low) - 1e-9), math.ceil(math.log10(high) + 1e-9) + 1)
    wide = math.log10(high / low) > 3.5
    digits = (1,) if wide else (1, 2, 5)
    ticks = [digit * 10.0 ** decade for decade in decades for digit in digits]
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def _linear_step(low, high):
    """1, 2 or 5 times a power of ten, four to eight times in the range."""
    rough = (high - low or 1) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= rough * 0.8)


def _step_below(figure):
    power = 10.0 ** math.floor(math.log10(figure) + 1e-9)
    return next(digit * power for digit in (5, 2, 1) if digit * power <= figure * (1 + 1e-9))


def _step_above(figure):
    power = 10.0 ** math.floor(math.log10(figure) + 1e-9)
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= figure * (1 - 1e-9))


def thinned(places):
    """Which of the texts along an axis can stand there without touching each other.

    `places`: a list of (value, place in pixels, width of its text). The ends come first, then
    the rounder numbers. Returns a set of values."""
    chosen = []
    ends = (places[0], places[-1]) if places else ()
    for each in sorted(places, key=lambda each: (each not in ends, _roughness(each[0]), -each[1])):
        if all(abs(each[1] - other[1]) >= (each[2] + other[2]) / 2 for other in chosen):
            chosen.append(each)
    return {value for value, _, _ in chosen}


def _roughness(value):
    """0 for 1, 10, 100; 1 for 5, 50; 2 for 2, 20; then the others, those of one digit first."""
    digits = ("%.6g" % abs(value * 10 ** 6)).split("e")[0].replace(".", "").strip("0")
    return ["1", "5", "2"].index(digits) if digits in ("1", "5", "2") else 2 + len(digits)


def number(value):
    """A round number as people write it: 1,000 and 0.5."""
    text = format(value, ",.6f").rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def figure(value):
    """A measured one: three digits of it, more only before the point."""
    if abs(value) >= 99.95 or value == int(value):
        return format(round(value), ",")
    return "%.*f" % (1 if abs(value) >= 9.995 else 2, value)
