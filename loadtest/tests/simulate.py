#!/usr/bin/env -S python3 -B
"""simulate: how often is a table wrong? Cells of a known truth, with the noise that the stored runs have.

Of three servers two are alike, and one costs a tenth more. In each round each has one cell, at some moment. For some
seconds now and then the machine is slow, and a neighbour disturbs a cell a little. A fourth server is faster than
the load generator. Prints of how many tables in a hundred that is true:

    unranked  nothing may be ranked
    ranked    the intervals [ ] of the two that are alike do not overlap
    apart     the interval of their ratio does not hold 1
    alike     = is beside the one that costs a tenth more
    told      its interval and that of a cheaper one do not overlap
    marked    the rate of the fourth has ≥
"""

import math
import random
import sys

import programs  # finds lib
from lib import rows

COST = {"one": 50, "other": 50, "tenth": 55, "fast": 10, "floor": 20}  # CPU microseconds a page
NOISE, CANARY_NOISE = 0.04, 0.02  # from cell to cell: stored runs where nothing is slow; 353 canaries
CELL_S, ROUND_S, SPELL_S, SLOW, SHARE = 1.8, 80, 3, (1.15, 1.4), 0.06  # spells: seconds, times, share of the time
NEIGHBOUR, COSTS = 0.05, 1.08  # share of the cells; times
MOST_RATE, USUAL, TRIES = 40000, 12000, 3  # of the load generator; the canary's microseconds; of a cell


def spells(dice, seconds):
    """[(begin, end, times)] of the slow ones."""
    found, now = [], 0.0
    while now < seconds:
        now += dice.expovariate(SHARE / SPELL_S)
        found.append((now, now + dice.expovariate(1 / SPELL_S), dice.uniform(*SLOW)))
        now = found[-1][1]
    return found


def cell(dice, name, number, now, slow, has_canary):
    """A row of cells.tsv."""
    def times(at):
        return next((times for begin, end, times in slow if begin <= at < end), 1.0)

    cost = COST[name] * dice.lognormvariate(0, NOISE) * sum(times(now + each * CELL_S / 10) for each in range(10)) / 10
    cost *= COSTS if dice.random() < NEIGHBOUR else 1
    rate = min(1e6 / cost, MOST_RATE)
    canary = max(times(at) * dice.lognormvariate(0, CANARY_NOISE) for at in (now, now + CELL_S))
    return {**dict.fromkeys((*rows.SETTINGS, "failed", "wrong"), ""), "subject": name, "round": number, "requests": "10000",
            "requests_per_second": rate, "server_cpu_us": 1e4 * cost, "server_core_busy": rate * cost / 1e4,
            "client_core_busy": 100 * rate / MOST_RATE, "redis_core_busy": 50, "canary_us": USUAL * canary * has_canary or ""}


def table(dice, rounds, has_canary):
    """[unranked, ranked, apart, alike, told, marked] of one run."""
    slow, found = spells(dice, rounds * ROUND_S), []
    for number in range(rounds):
        for name in COST:
            now = (number + dice.random()) * ROUND_S
            for attempt in range(TRIES):
                row = cell(dice, name, number, now + attempt * CELL_S, slow, has_canary)
                if not rows.slow(rows.number(row, "canary_us"), USUAL):
                    break
            found.append(row)
    own = {name: spot for (name, _), spot in rows.by_spot(rows.judged(found)).items()}
    one, other, tenth = (own[name].range(rows.MICROS) or (0, 0, math.inf) for name in ("one", "other", "tenth"))
    unranked = not own["one"].is_ranked
    return [unranked, not unranked and (one[1] > other[2] or other[1] > one[2]),
            any(not low <= 1 <= high for each in rows.ratios({name: own[name] for name in ("one", "other")}, rows.MICROS).values()
                for _, low, high in filter(None, [rows.ratio(each)])),
            "tenth" in rows.ties({name: own[name] for name in ("one", "other", "tenth")}, rows.MICROS),
            not unranked and tenth[1] > min(one[2], other[2]), own["fast"].text(rows.RATE).startswith("≥")]


def shares(tables, rounds, has_canary, seed=7):
    """Percent of the tables."""
    dice = random.Random(seed)
    return [100 * sum(column) / tables for column in zip(*(table(dice, rounds, has_canary) for _ in range(tables)))]


if __name__ == "__main__":
    for each in (5, 7, 11):
        for canary in (True, False):
            print("%2d rounds, %s canary: unranked %.1f, ranked %.1f, apart %.1f, alike %.1f, told %.1f, marked %.1f of 100" % (
                each, "a " if canary else "no", *shares(int(sys.argv[1]) if sys.argv[1:] else 1000, each, canary)))
