"""rows: every table, and what may be said of it, from the rows of a cells.tsv and from nothing else.

So anybody can compute a table again, of a run that has just ended or of a stored one. A row is one
measurement. A *spot* is what the rounds have in common: a server in a setting. A round counts if nothing
is wrong with it. What takes a whole run to be judged, judged() writes into its rows.

[ ] has one meaning: an interval of a median, which holds the true one in 93 of 100 cases or more, whatever
the distribution. From 5 rounds to 8 these are the least and the most of them; of fewer there is no
interval. Two servers are compared within each round, because what slows the machine down for a minute
slows both. = shares the first place of its column: Wilcoxon's interval of those ratios holds 1.

A core is full or nearly so by the median of the rounds. A rate is the server's if the cores of load generator and
Redis were not full. If they have one core, it is named after the one that used more of it.
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
KINDS = {"ab": "new connections", "wrk": "kept connections", "h2load": "new connections"}
WORDS = {"clients": "%s clients", "idle": "%s idle ones beside", "backlog": "a backlog of %s",
         "delay_ms": "Redis %s ms away", "work_ms": "%s ms of work a page", "cores": "%s cores",
         "instances": "%s behind nginx", "offered": "%s a second offered"}
USUAL = {"idle": "0", "work_ms": "0", "cores": "1", "clients": "0"}  # which nobody needs to be told
FEWEST, SURE = 5, 0.93  # rounds that have an interval, and how sure it is
LEFT = 3  # rounds of which a median may be shown, if others do not count
PARTIES, FULL, NEARLY = ("server", "client", "Redis"), 95, 85  # of each its core; busy for so many percent of the time
SLOW, DRIFT_PERCENT = 1.10, 15  # times the usual canary (of 353 beside other work, 8 were slower); from round to round
SPOILT = ("other work", "steal", "throttled", "slow")  # with which begins why a disturbed cell does not count
NEAR = 0.10  # of Little's law, as a share; what is farther is named
COLUMNS = 80  # of a terminal
SHARED = "the last one is shared with the load generator and Redis"  # of the server's cores

LEGEND = ("[ ] is an interval of the median of these rounds. It does not cover another hour, machine or build. = shares the "
          "first place of its column: within the rounds these servers cannot be told apart. ≥, a hollow point in a chart: the "
          "core of the load generator or of Redis was full, so the server can do as much at least. Full: whose core was "
          "busy for %d %% of the time or more, ~ from %d %% on; where Redis and the load generator share one, it has the "
          "name of the one that used more. A chart has a gap where fewer than %d rounds count. CPU time is the server's own: on "
          "loopback, part of its receiving is done in the client's send, on the client's core." % (FULL, NEARLY, LEFT))


def number(row, column):
    text = row.get(column)
    return float(text) if text not in (None, "") else None


def per_page(*columns):
    """What a page took of these columns; None if one is not known."""
    def figure(row):
        pages, known = number(row, "requests"), [number(row, column) for column in columns]
        return sum(known) / pages if pages and None not in known else None
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
REDIS = Figure("CPU µs of Redis a page", lambda row: 1e4 * number(row, "redis_percent") * number(
    row, "metered_seconds") / number(row, "requests") if int(row["incr"] or 0) else None, two_digits, min)
SWITCHES = Figure("context switches a page", per_page("voluntary_switches", "involuntary_switches"),
                  "{:.2f}".format, None)


def late(percent):
    return Figure("ms within which %g of 100 were answered" % percent, percentile(percent), two_digits, None)


P99 = late(99)

# ---- a whole run ----------------------------------------------------------------------------------


def judged(rows):
    """The rows of a whole run, in which a cell with a slow canary does not count, and `unranked` says why nothing may
    be ranked."""
    usual = statistics.median([number(row, "canary_us") or 0 for row in rows] or [0])
    found = [{**row, "wrong": row["wrong"] or slow(number(row, "canary_us"), usual)} for row in rows]
    reason = why_unranked(found)
    return [{**row, "unranked": reason} for row in found]


def slow(canary_us, usual_us):
    """Why the machine was too slow, by its canary; nothing if it was not, or if that is not known."""
    is_slow = (canary_us or 0) > SLOW * (usual_us or math.inf)
    return "slow: the canary took more than %g times its usual time" % SLOW if is_slow else ""


def why_unranked(rows):
    """Why nothing of a run may be ranked; nothing if it may."""
    clean = list(filter(counts, rows))
    rounds = len({row["round"] for row in clean})
    drifted = {what: percent for what, percent in drift(clean).items() if percent > DRIFT_PERCENT}
    if not all(row.get("server_core_busy") and row.get("client_core_busy") for row in clean):
        return "nothing was pinned to a core"
    if rounds < FEWEST:
        return "it takes %d rounds, and there are %d" % (FEWEST, rounds)
    if not drift(clean):
        return "there is neither a floor nor a canary, which would show that the machine stayed the same"
    return " and ".join("%s drifted by %.0f %%" % pair for pair in drifted.items())


def drift(rows):
    """{what: percent} by which the middle half of the rounds varied. The floor does nothing but answer, and the
    canary is always the same, so what changes is the machine."""
    floors, rounds = [spot for (name, _), spot in by_spot(rows).items() if name == "floor"], {}
    for row in rows:
        rounds.setdefault(row["round"], []).append(number(row, "canary_us"))
    found = {"the floor's " + figure.name: [spot.figures(figure).values() for spot in floors] for figure in (RATE, MICROS)}
    found["the canary"] = [[statistics.median(each) for each in rounds.values() if None not in each]]
    spans = {what: [100 * (high - low) / middle for figures in lists if len(figures) > 1
                    for low, middle, high in [statistics.quantiles(figures, n=4)]] for what, lists in found.items()}
    return {what: statistics.median(each) for what, each in spans.items() if each}


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
        busy, used = ({who: self._percent(who.lower() + column) for who in PARTIES} for column in ("_core_busy", "_percent"))
        if busy["client"] == busy["Redis"]:  # they have one core
            del busy["client" if (used["Redis"] or 0) > (used["client"] or 0) else "Redis"]
        self.full, self.nearly = ([who for who, percent in busy.items() if percent is not None and least <= percent < most]
                                  for least, most in ((FULL, math.inf), (NEARLY, FULL)))
        self.full[:0] = ["others"] * ((self._percent("others_percent") or 0) >= meter.OTHERS_PERCENT)
        self.is_least = self.full not in ([], ["server"])  # its rate is what it can do at least
        self.is_ranked = not any(row.get("unranked") for row in rows)

    def _percent(self, column):
        known = [number(row, column) for row in self.rows.values()]
        return statistics.median(known) if known and None not in known else None

    def whose(self):
        """Who was full, and ~ who nearly was."""
        full = ["both"] if len(self.full) == 2 and self.full[0] == "server" else self.full
        is_pinned = any(row.get("server_core_busy") for row in self.rows.values())
        return " ".join([", ".join(full), *("~" + who for who in self.nearly)]).strip() or ("nobody" if is_pinned else "unpinned" * bool(self.rows))

    def figures(self, figure):
        """{round: figure} where it is known; nothing if so many rounds do not count that too few are left."""
        known = {each: value for each, row in self.rows.items() for value in [figure.of(row)] if value is not None}
        return known if len(known) >= min(LEFT, len(self.all)) else {}

    def median(self, figure):
        known = self.figures(figure).values()
        return statistics.median(known) if known else None

    def range(self, figure):
        """(median, low, high); None if nothing is known."""
        middle, known = self.median(figure), self.figures(figure).values()
        return (middle, *(interval(known) or (min(known), max(known)))) if known else None

    def text(self, figure, tie=False, short=False):
        """As in "≥ 1,234 [1,100-1,300]"; short and of disturbed rounds alone, as in "(1,234)"."""
        known = self.figures(figure).values()
        if not known:
            spoilt = [figure.of(row) for row in self.all if short and row["requests"] and row["wrong"].startswith(SPOILT)]
            if spoilt and None not in spoilt:
                return "(%s)" % bracketed(spoilt, figure.form, short)
            return "-" if self.rows else ""  # void: the reason is below the table
        return (AT_LEAST if figure is RATE and self.is_least else "= " * tie) + bracketed(known, figure.form, short)


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


def bracketed(figures, form, short=False):
    ends = None if short else interval(figures)
    return form(statistics.median(figures)) + (" [%s-%s]" % tuple(map(form, ends)) if ends else "")


def ratios(spots, figure):
    """{name: its figures, divided within each round by those of the best} of these {name: Spot}. Nothing if it may not
    be ranked, or nobody ranks it. A rate that is one at least is left out."""
    known = {name: spot.figures(figure) for name, spot in spots.items()
             if figure.best and spot.is_ranked and spot.median(figure) and not (figure is RATE and spot.is_least)}
    if not known:
        return {}
    best = figure.best(known, key=lambda name: spots[name].median(figure))
    return {name: [own[each] / known[best][each] for each in own if known[best].get(each)] for name, own in known.items()}


def ratio(ratios, normal=1.96):
    """(estimate, low, high): the Hodges-Lehmann estimate, the median of the means of all pairs, and the interval that
    belongs to it, by Wilcoxon's signed ranks. None if they are too few. A few that are far off hardly change it."""
    logs, number = [math.log(each) for each in ratios], len(ratios)
    means = sorted((one + other) / 2 for at, one in enumerate(logs) for other in logs[at:])
    cut = max(0, math.floor(number * (number + 1) / 4 - normal * math.sqrt(number * (number + 1) * (2 * number + 1) / 24)))
    return tuple(map(math.exp, (statistics.median(means), means[cut], means[-1 - cut]))) if number >= FEWEST else None


def ties(spots, figure):
    """Which of these {server: Spot} share the best median. None of them, if that is nobody's own, or if one could be
    better."""
    found = {name for name, own in ratios(spots, figure).items() for ends in [ratio(own)] if ends and ends[1] <= 1 <= ends[2]}
    unsure = figure is RATE and any(spot.is_least for spot in spots.values())
    return found if len(found) > 1 and not unsure else set()


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
    tied = [ties(column, figure) for column in columns(found)]
    lines = [[name, *(spot.text(figure, name in tied[at]) if spot else "" for at, spot in enumerate(row)),
              *[full_of(row)] * (figure is RATE)] for name, row in found.items() if any(row)]
    return ["server", *(heading(axis, value) for value in values), *["full"] * (figure is RATE)], lines


def columns(found):
    """{server: Spot} of each, without the floor."""
    return [{name: spot for name, spot in zip(found, column) if spot and name != "floor"} for column in zip(*found.values())]


def ratio_table(rows, axis, figure):
    """The same, of each cell by the best of its column; no lines if there is nothing to compare."""
    values, found = grid(rows, axis)
    known = [ratios(column, figure) for column in columns(found)]
    lines = [[name, *("1" if set(own) == {1} else "%.2f [%.2f-%.2f]" % ratio(own) if len(own) >= FEWEST else "-"
                      for column in known for own in [column.get(name, ())])]
             for name in found if any(len(column) > 1 and name in column for column in known)]
    return ["server", *(heading(axis, value) for value in values)], lines


def full_of(spots):
    """Who was full, once if it is the same in all."""
    known = [spot.whose() or "-" for spot in spots if spot]
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


def shared(rows):
    """Whose a further core is as well, where cores are a dial."""
    return list(dict.fromkeys(text + "." for row in rows for text in row["remarks"].split("; ") if SHARED in text))


# ---- what is seen first -----------------------------------------------------------------------------


def sentence(rows):
    """What may be ranked, how disturbed the hour was, and whose limit was met."""
    clean = list(filter(counts, rows))
    reason = next((row["unranked"] for row in rows if row.get("unranked")), "")
    said = ["Nothing may be ranked: %s." % reason if reason else
            "CPU time and rates may be ranked where the intervals [ ] in the report do not overlap, but no rate with ≥."]
    if len(clean) < len(rows):
        spoilt = Counter(word for row in rows for word in SPOILT if row["wrong"].startswith(word))
        said.append("%d of %d cells do not count%s; the report says why%s." % (len(rows) - len(clean), len(rows), "".join(
            ", %d for %s" % (times, word.replace("slow", "slowness")) for word, times in spoilt.items()),
                ", and a terminal has those in ( ) where there are no others" * bool(spoilt)))
    again = sum(int(row.get("tries") or 1) - 1 for row in rows)
    if again:
        said.append("%d cells were disturbed, and measured again." % again)
    spots = by_spot(rows).values()
    least = sum(not {"client", "Redis"}.isdisjoint(spot.full) for spot in spots)
    if least:
        said.append("The core of the load generator or of Redis was full in %d of %d (≥)." % (least, len(spots)))
    disturbed = sum("others" in spot.full for spot in spots)
    if disturbed:
        said.append("In %d of %d, others: other programs took %d %% of a core or more." % (
            disturbed, len(spots), meter.OTHERS_PERCENT))
    return " ".join(said)


def in_letters(header, lines, left=(0,)):
    """A table for a terminal."""
    widths = [max(map(len, column)) for column in zip(header, *lines)]
    return ["  ".join(text.ljust(width) if at in left or at - len(line) in left else text.rjust(width)
                      for at, (text, width) in enumerate(zip(line, widths))).rstrip() for line in [header, *lines]]


def wrapped(text):
    return textwrap.wrap(text, COLUMNS)
