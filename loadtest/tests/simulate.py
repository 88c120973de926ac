#!/usr/bin/env -S python3 -B
"""simulate: of how many tables in a hundred is that true? Cells of a known truth, with the noise of the stored runs.

    ranked    the intervals [ ] of two servers that are alike do not overlap
    apart     the interval of their ratio does not hold 1
    alike     = is beside a third one, which costs a tenth more
    marked    the rate of a fourth one, which is faster than the load generator, has ≥

For some seconds now and then the machine is slow, and a neighbour disturbs a cell a little.
"""

import random

import programs  # finds lib
from lib import rows

COST = {"one": 50, "other": 50, "tenth": 55, "fast": 10, "floor": 20}  # CPU microseconds a page
NOISE, CANARY_NOISE = 0.04, 0.02  # from cell to cell: stored runs where nothing is slow; 353 canaries
CELL_S, ROUND_S, SPELL_S, SLOW, SHARE = 1.8, 80, 3, (1.15, 1.4), 0.06  # spells: seconds, times, share of the time
NEIGHBOUR, COSTS, MOST_RATE = 0.05, 1.08, 40000  # share of the cells; times; of the load generator


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
    rate, canary = min(1e6 / cost, MOST_RATE), max(times(at) * dice.lognormvariate(0, CANARY_NOISE) for at in (now, now + CELL_S))
    return {**dict.fromkeys((*rows.SETTINGS, "failed", "wrong"), ""), "subject": name, "round": number, "requests": "10000",
            "requests_per_second": rate, "server_cpu_us": 1e4 * cost, "server_core_busy": rate * cost / 1e4,
            "client_core_busy": 100 * rate / MOST_RATE, "redis_core_busy": 50, "canary_us": canary * has_canary or ""}


def table(dice, rounds, has_canary):
    """[ranked, apart, alike, marked] of one run, in which a cell that was slow is measured again, twice at most."""
    slow, found = spells(dice, rounds * ROUND_S), []
    for number in range(rounds):
        for name in COST:
            now = (number + dice.random()) * ROUND_S
            tries = [cell(dice, name, number, now + each * CELL_S, slow, has_canary) for each in range(3)]
            found.append(next((row for row in tries if not rows.slow(row["canary_us"], 1)), tries[-1]))
    own = {name: spot for (name, _), spot in rows.by_spot(rows.judged(found)).items()}
    (_, low, high), (_, other_low, other_high) = (own[name].range(rows.MICROS) or (0, 0, 1e9) for name in ("one", "other"))
    pair = rows.ratios({name: own[name] for name in ("one", "other")}, rows.MICROS).values()
    return [low > other_high or other_low > high,
            any(not low <= 1 <= high for _, low, high in filter(None, map(rows.ratio, pair))),
            "tenth" in rows.ties({name: own[name] for name in ("one", "other", "tenth")}, rows.MICROS),
            own["fast"].text(rows.RATE).startswith("≥")]


def shares(tables, rounds, has_canary):
    dice = random.Random(7)
    return [100 * sum(column) / tables for column in zip(*(table(dice, rounds, has_canary) for _ in range(tables)))]


if __name__ == "__main__":
    for each in (5, 7, 11):
        for canary in (True, False):
            print("%2d rounds, %s canary: ranked %.1f, apart %.1f, alike %.1f, marked %.1f of 100" % (
                each, "a " if canary else "no", *shares(2000, each, canary)))
