"""columns: what tables and charts say of spots. A table is a list of columns, each a heading and
what stands in it for a row of rounds.Spot, of which some may be missing: they were not measured.
"""

from lib import rounds
from lib.reporting import chart, scale, table
from lib.reporting.table import count
from lib.rounds import rate_text


def rows_of(rows, columns):
    """Header and rows, from {name: [Spot or None, ...]} and [(heading, text of a row), ...]. A row
    without a single spot is left out."""
    return ["server", *(heading for heading, _ in columns)], [
        [name, *(text(row) for _, text in columns)] for name, row in rows.items() if any(row)]


def rate(heading, at, notes, **how):
    return heading, lambda row: rate_text(row[at], notes, **how)


def median(heading, form, figure, at=-1):
    """The median of figure(cell) in the clean rounds."""
    return heading, lambda row: table.median(form, row[at] and row[at].spread(figure))


def micros(at=-1, heading="CPU µs a request", form="%.0f"):
    return median(heading, form, lambda cell: cell.micros, at)


def percentile(percent, at=-1):
    return median("p%g ms" % percent, "%.1f", lambda cell: cell.load.percentiles.get(percent), at)


PSS = median("PSS MiB", "%.1f", lambda cell: cell.reading.peak_pss and cell.reading.peak_pss / 2**20)
FAILED = "failed", lambda row: count(sum(spot.failed for spot in row if spot))


def bound(row):
    """What limits the rates, once if it is the same in all."""
    bounds = [spot.bound for spot in row if spot]
    return " / ".join(bounds[:1] if len(set(bounds)) == 1 else bounds)


BOUND = "bound", bound


def of(name, rows, at=-1, figure=lambda cell: cell.rate, heading="of "):
    """Beside another row, round by round. A rate that is no server's limit is compared with none."""
    def text(row):
        other = rows.get(name, [None] * len(row))[at]
        unranked = heading == "of " and not all(
            spot is None or spot.is_ranked for spot in (row[at], other))
        return "-" if unranked else rounds.ratio_text(row[at], other, figure)
    return heading + name, text


def micros_of(name, rows, at=-1):
    return of(name, rows, at, lambda cell: cell.micros, "CPU of ")


def bars(name, caption, unit, groups, figure=lambda cell: cell.rate):
    """A chart for Report.add_chart, with its figures: {group: {name: Spot or None}}. The ranges are
    those of the rounds."""
    figures, rows, least = {group: {} for group in groups}, [], set()
    for group, row in groups.items():
        for key, spot in row.items():
            spread = spot and spot.spread(figure)
            if spot:
                figures[group][key] = spread.range if spread else "not without errors"
                rows.append([key, group, *(map(scale.figure, spread.range) if spread else ["-"] * 3)])
            if spot and not spot.is_ranked:
                least.add((group, key))
    svg = chart.bars(name, caption, chart.Axis(unit + ", median and range of the rounds"), figures,
                     least)
    return svg, caption, ["server", "of", unit, "least", "most"], rows
