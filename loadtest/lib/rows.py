"""rows: every table, and what may be said of it, from the rows of a cells.tsv and from nothing else.

So anybody can compute a table again, of a run that has just ended or of a stored one. A row is one
measurement. A *spot* is what the rounds have in common: a server in a setting. A round counts if nothing
is wrong with it.

[ ] has one meaning: an interval of a median, which holds the true one in 93 of 100 cases or more, whatever
the distribution. From 5 rounds to 8 these are the least and the most of them; of fewer there is no
interval. Two servers are compared within each round, because what slows the machine down for a minute
slows both. = shares the first place of its column: the interval of those ratios holds 1.
"""

import math
import statistics
import textwrap
from collections import Counter, namedtuple

import top
from lib import subjects
from lib.measuring import meter
from lib.reporting.table import AT_LEAST, count, two_digits

SETTINGS = ("generator", "path", "clients", "idle", "backlog", "delay_ms", "work_ms", "cores", "instances",
            "offered")
KINDS = {"ab": "new connections", "wrk": "kept connections", "h2load": "new connections",
         "h2load kept": "kept connections"}
WORDS = {"clients": "%s clients", "idle": "%s idle ones beside", "backlog": "a backlog of %s",
         "delay_ms": "Redis %s ms away", "work_ms": "%s ms of work a page", "cores": "%s cores",
         "instances": "%s behind nginx", "offered": "%s a second offered"}
USUAL = {"idle": "0", "work_ms": "0", "cores": "1", "clients": "0"}  # which nobody needs to be told
FEWEST, SURE = 5, 0.93  # rounds that have an interval, and how sure it is
NEAR = 0.10  # of Little's law, as a share; what is farther is named
COLUMNS = 80  # of a terminal
UNRANKED = (meter.CLIENT, meter.OTHERS)  # whose rate says only what the server can do at least

LEGEND = ("[ ] is an interval of the median. = shares the first place of its column: within the rounds these "
          "servers cannot be told apart. ≥: the load generator was full, so the server can do as much at "
          "least. Full: who used a core for 90 % of the time or more; Redis and the load generator may share "
          "one. CPU time is the server's own: on loopback, part of its receiving is done in the client's "
          "send, on the client's core.")


def number(row, column):
    text = row.get(column)
    return float(text) if text not in (None, "") else None


def per_page(*columns):
    """What a page took of these columns; None if one is not known. Before rows had metered_seconds, wrk's
    requests were of more time than what was metered, unless Redis had counted them."""
    def figure(row):
        pages, known = number(row, "requests"), [number(row, column) for column in columns]
        metered = "metered_seconds" in row or row["generator"] != "wrk" or int(row["incr"] or 0)
        return sum(known) / pages if pages and metered and None not in known else None
    return figure


def percentile(percent):
    """Milliseconds. None too if so many requests were lost that they include it: these took for ever."""
    def figure(row):
        lost, whole = number(row, "failed") or 0, number(row, "requests") or 0
        return None if lost > (1 - percent / 100) * (lost + whole) else number(row, "p%g_ms" % percent)
    return figure


Figure = namedtuple("Figure", "name of form best")  # best: max or min; None: nobody ranks it
RATE = Figure("pages a second", lambda row: number(row, "requests_per_second"), count, max)
MICROS = Figure("CPU µs a page", per_page("server_cpu_us"), two_digits, min)
SWITCHES = Figure("context switches a page", per_page("voluntary_switches", "involuntary_switches"),
                  "{:.2f}".format, None)


def late(percent):
    return Figure("ms within which %g of 100 were answered" % percent, percentile(percent), two_digits, None)


P99 = late(99)

# ---- spots ----------------------------------------------------------------------------------------


def counts(row):
    return bool(row["requests"]) and not row["wrong"]


def setting(row):
    return tuple(row.get(column) or "" for column in SETTINGS)


def words(spot, without=()):
    """A setting, as in "100 clients, kept connections, Redis 10 ms away"."""
    told = [(WORDS[name] % (count(float(value)) if value.removesuffix(".0").isdecimal() else value)) for name, value in zip(
        SETTINGS[2:], spot[2:]) if value and name not in without and USUAL.get(name) != value]
    kind = [] if "generator" in without else [KINDS.get(spot[0], spot[0])]
    return ", ".join([*told[:1], *kind, *told[1:]] if spot[2] not in ("", "0") else [*kind, *told])


def servers_of(rows):
    """The seven first, in the order of their chapters, then the others as they come; the floor last."""
    names = list(dict.fromkeys(row["subject"] for row in rows))
    return sorted(names, key=lambda name: (
        name == "floor", top.NAMES.index(subjects.plain(name)) if subjects.is_ours(name) else 99))


class Spot:
    """The clean rounds of one server in one setting."""

    def __init__(self, rows):
        self.all = rows
        self.rows = {row["round"]: row for row in rows if counts(row)}
        self.full = statistics.mode(row["verdict"] for row in self.rows.values()) if self.rows else ""
        self.is_ranked = self.full not in UNRANKED

    def figures(self, figure):
        """{round: figure} where it is known."""
        return {each: value for each, row in self.rows.items() for value in [figure.of(row)] if value is not None}

    def median(self, figure):
        known = self.figures(figure).values()
        return statistics.median(known) if known else None

    def range(self, figure):
        """(median, low, high), as a chart takes it; None if nothing is known."""
        known = self.figures(figure).values()
        return (statistics.median(known), *(interval(known) or (min(known), max(known)))) if known else None

    def text(self, figure, tie=False, short=False):
        """As in "≥ 1,234 [1,100-1,300]"."""
        known = self.figures(figure).values()
        if not known:
            return "-" if self.rows else ""  # void: the reason is below the table
        ends = None if short else interval(known)
        return (AT_LEAST if figure is RATE and not self.is_ranked else "= " * tie) + figure.form(
            statistics.median(known)) + (" [%s-%s]" % tuple(map(figure.form, ends)) if ends else "")


def by_spot(rows):
    """{(subject, setting): Spot}"""
    found = {}
    for row in rows:
        found.setdefault((row["subject"], setting(row)), []).append(row)
    return {key: Spot(own) for key, own in found.items()}


def interval(figures):
    """(low, high) of the median: the narrowest pair of figures, as far from the least as from the most, that
    holds it surely enough. None: they are too few."""
    figures, found = sorted(figures), None
    for at in range(len(figures) // 2):
        outside = 2 * sum(math.comb(len(figures), each) for each in range(at + 1)) / 2 ** len(figures)
        if len(figures) >= FEWEST and 1 - outside >= SURE:
            found = figures[at], figures[-1 - at]
    return found


def ties(spots, figure):
    """Which of these {server: Spot} share the best median. None of them, if that is nobody's own, or if there
    are too few rounds to tell."""
    medians = {name: spot.median(figure) for name, spot in spots.items() if spot.median(figure) is not None}
    if not medians or not figure.best or figure is RATE and not all(spot.is_ranked for spot in spots.values()):
        return set()
    top = figure.best(medians, key=medians.get)
    theirs, found = spots[top].figures(figure), {top}
    for name in medians:
        own = spots[name].figures(figure)
        ends = interval([own[each] / theirs[each] for each in own if theirs.get(each)])
        if ends and ends[0] <= 1 <= ends[1]:
            found.add(name)
    return found if len(found) > 1 else set()


# ---- tables ---------------------------------------------------------------------------------------


def axis_of(rows):
    """The setting with the most values; of clients, if there is none."""
    values = {name: {setting(row)[at] for row in rows if row["subject"] != "floor"}
              for at, name in enumerate(SETTINGS) if name not in ("generator", "path")}
    axis = max(values, key=lambda name: len(values[name]))
    return axis if len(values[axis]) > 1 else "clients"


def panels(rows, axis):
    """The rows in groups that differ in nothing but the axis: {setting without it: rows}. Whoever has no place on
    it, as the floor with Redis far away, is left out."""
    at, found = SETTINGS.index(axis), {}
    everywhere = any(row.get(axis) for row in rows)
    for row in rows:
        spot = setting(row)
        if everywhere and not spot[at]:
            continue
        found.setdefault((*spot[:at], "", *spot[at + 1:]), []).append(row)
    return found


def grid(rows, axis):
    """(values of the axis, {server: [Spot or None for each of them]}), of one panel."""
    at, spots = SETTINGS.index(axis), by_spot(rows)
    values = sorted({spot[at] for _, spot in spots}, key=lambda text: float(text or 0))
    found = {name: [None] * len(values) for name in servers_of(rows)}
    for (name, spot), own in spots.items():
        found[name][values.index(spot[at])] = own
    return values, found


def heading(axis, value):
    if axis == "cores":
        return "1 core" if value == "1" else "%s cores" % value
    return words(tuple(value or "0" if name == axis else "" for name in SETTINGS), ("generator",)) or (
        WORDS[axis] % (value or "0"))


def table(rows, axis, figure):
    """(header, lines) of one panel."""
    values, found = grid(rows, axis)
    tied = [ties({name: row[at] for name, row in found.items() if row[at] and name != "floor"}, figure)
            for at in range(len(values))]
    lines = [[name, *(spot.text(figure, name in tied[at]) if spot else "" for at, spot in enumerate(row))]
             for name, row in found.items() if any(row)]
    if figure is RATE:
        for line in lines:
            line.append(full_of(found[line[0]]))
    return ["server", *(heading(axis, value) for value in values), *["full"] * (figure is RATE)], lines


def full_of(spots):
    """Who was full, once if it is the same in all."""
    known = [spot.full.replace(" full", "") or "-" for spot in spots if spot]
    return " / ".join(known[:1] if len(set(known)) == 1 else known)


def below(rows):
    """Sentences: why a cell is blank, or lacks some of its rounds; and what is odd about others."""
    told, odd = [], {}
    servers = servers_of(rows)
    for (name, spot), own in sorted(by_spot(rows).items(), key=lambda each: (
            servers.index(each[0][0]), [(len(text), text) for text in each[0][1]])):
        reasons = Counter(row["wrong"] or "it could not be measured" for row in own.all if not counts(row))
        for text, times in reasons.items():
            told.append("%s, %s: %d of %d rounds do not count: %s." % (name, words(spot), times, len(own.all), text))
        if any((number(row, "little_off") or 0) > NEAR for row in own.rows.values()) and not spot[-1]:
            odd.setdefault("By Little's law more than a tenth of the clients were not waiting for the server (they "
                           "were connecting, or the load generator was busy with others)", []).append((name, spot))
        for text in dict.fromkeys(text for row in own.rows.values() for text in row["remarks"].split("; ") if text):
            odd.setdefault(text[0].upper() + text[1:], []).append((name, spot))
    for text, where in odd.items():
        told.append("%s: %s." % (text, "; ".join("%s, %s" % (name, words(spot)) for name, spot in where)))
    return told


# ---- what is seen first -----------------------------------------------------------------------------


def sentence(rows):
    """Who was full, how disturbed the hour was, and what may be ranked."""
    clean = list(filter(counts, rows))
    disturbed = [row for row in clean if row["verdict"] == meter.OTHERS]
    said = ["%d of %d cells do not count; the report says why." % (
        len(rows) - len(clean), len(rows))] if len(clean) < len(rows) else []
    if disturbed:
        said.append("Other work took the cores in %d of %d cells." % (len(disturbed), len(rows)))
    again = sum(int(row.get("tries") or 1) - 1 for row in rows)
    if again:
        said.append("%d cells were disturbed, and measured again." % again)
    full = sum(row["verdict"] == meter.CLIENT for row in clean)
    if full:
        said.append("The load generator was full in %d of %d (≥: not ranked)." % (full, len(rows)))
    rounds = len({row["round"] for row in clean})
    if 2 * len(disturbed) >= len(clean):
        return " ".join(["Nothing may be ranked in this hour.", *said])
    if rounds == 1:
        return " ".join(["Nothing may be ranked yet: one round does not say how far rounds lie apart.", *said])
    how = "where the intervals [ ] in the report do not overlap" if rounds >= FEWEST else (
        "where they differ by more than %.0f %%, as the %d rounds of one server did" % (widest(clean), rounds))
    return " ".join(["CPU time and rates may be ranked %s." % how, *said])


def widest(rows):
    """How far the rounds of one server lie apart at most, in percent, by their CPU time."""
    cells = [spot.figures(MICROS).values() for spot in by_spot(rows).values()]
    return 100 * max((max(figures) / min(figures) - 1 for figures in cells if figures and min(figures)), default=0)


def drift(rows):
    """How far the medians of the floor may be off, in percent: the middle one of its cells, and the worst. It
    does nothing but answer, so what changes is the machine."""
    spans = [spot.range(RATE) for (name, spot_), spot in by_spot(rows).items() if name == "floor" and len(spot.rows) > 1]
    wide = [100 * (high - low) / middle for middle, low, high in filter(None, spans) if middle]
    return (statistics.median(wide), max(wide)) if wide else ()


def in_letters(header, lines, left=(0,)):
    """A table for a terminal."""
    widths = [max(map(len, column)) for column in zip(header, *lines)]
    return ["  ".join(text.ljust(width) if at in left or at - len(line) in left else text.rjust(width)
                      for at, (text, width) in enumerate(zip(line, widths))).rstrip() for line in [header, *lines]]


def wrapped(text):
    return textwrap.wrap(text, COLUMNS)
