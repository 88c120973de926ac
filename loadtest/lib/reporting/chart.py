"""chart: pictures of figures, drawn by gnuplot.

    svg = chart.lines("sweep", "Throughput holds, except where ...",
                      chart.Axis("clients at once", log=True, ticks=levels),
                      chart.Axis("requests a second, median of 3 rounds"),
                      {"epoll": [(20, 14652, 14100, 15020), (100, None), ...], ...})

Each function returns an SVG for report.add_chart(), or None if there is no gnuplot or no figure.
The name makes the picture's ids unique on a page.

A figure is a number; or (middle, low, high), drawn with a thin bar for the range; or None, which
leaves a gap, because nothing was measured. `behind` is a second set of the same shape, drawn
weaker, such as another machine's figures. `behind_name` is its name; without one, each line of it
has its own name at its end.
"""

import re
from collections import namedtuple

from lib.reporting.gnuplot import FAINT, INK, OTHERS
from lib.reporting.panels import Panels, at, width
from lib.reporting.scale import Scale
from lib.reporting.scale import figure as written
from lib.reporting.table import AT_LEAST

Axis = namedtuple("Axis", "title log ticks even", defaults=(False, None, False))
Axis.__doc__ = """What is measured, with its unit; logarithmic?; the values at which there may be a
tick; or are these an even step apart whatever they say, as 0, 1, 10, 50? (Of lines, to the right
only.)"""

# The colours are Okabe's and Ito's, which colour-blind readers can tell apart. The marker tells the
# family: triangles are processes, circles threads, diamonds loops.
Style = namedtuple("Style", "colour point dash", defaults=("solid",))
DASHED, DOTTED = "(6,3)", "(2,3)"
STYLES = {"iterative": Style(INK, 5), "forking": Style("#d55e00", 8),
          "preforking": Style("#e69f00", 9), "threading": Style("#0072b2", 6),
          "prethreading": Style("#56b4e9", 7), "poll": Style("#cc79a7", 12),
          "epoll": Style("#009e73", 13), "floor": Style("#7f7f7f", 4),
          "nginx": Style("#5b3a8c", 3), "lighttpd": Style("#8c6d1f", 2),
          "apache": Style("#882255", 11)}
MORE = [Style("#0072b2", 7), Style("#d55e00", 9), Style("#009e73", 13), Style("#cc79a7", 5),
        Style("#56b4e9", 11), Style("#7f7f7f", 15)]

TOGETHER = 4  # lines that fit into one panel; if there are more, each has a panel
SIDE = 0.008  # of the width: from a range to the next one at the same place, so that none is hidden
MANY = 40  # points; a line with more has no markers

_Point = namedtuple("_Point", "x middle low high")


def lines(name, title, x, y, series, behind=None, behind_name="", dots=(), together=False,
          hatched=None, hatched_name=""):
    """Lines with a marker at each point: {name: [(x, figure) or (x, middle, low, high), ...]}. If
    there are many, each has a small panel, in which the others are grey, unless they are to be
    drawn `together`.

    The series named in `dots` become clouds of dots without a line. `hatched` says where a series
    means something else, as hatched_name says: {name: [x, ...]}."""
    series, behind = ({key: [_point(x, y, *point) for point in points]
                       for key, points in (every or {}).items()} for every in (series, behind))
    names = [key for key, points in series.items() if any(points)]
    if not names:
        return None
    together = names if together or len(names) <= TOGETHER else []
    drawn = [point for points in [*series.values(), *behind.values()] for point in points if point]
    across = Scale(x, [point.x for point in drawn], *((0.04, 0.04) if together else (0.1, 0.1)))
    up = Scale(y, [each for point in drawn for each in point[1:]],
               0.06 if y.log else 0, 0.06 if together else 0.25)
    if not dots and any(point.low < point.high for point in drawn):
        series.update(_side_by_side(together, series, across))
    looks = {key: style(key, names) for key in [*names, *behind]}
    pale = {key: points for key, points in behind.items() if any(points)}
    ends = [key for key in [*names, *(pale if not behind_name else ())] if key not in dots]
    plot = Panels(name, title, y.title, _key(together, looks, dots, behind_name if pale else "",
                                             hatched_name if any((hatched or {}).values()) else ""))
    plot.place(across, up, 1 if together else len(names),
               1.15 * max(map(width, ends)) if together and not dots else 0)  # bold
    for group in [together] if together else [[key] for key in names]:
        for key in group:
            plot.hatch(_regions((hatched or {}).get(key, ()), [point.x for point in series[key] if point]))
        _draw(plot, group, names, series, pale, looks, dots)
        if not together:
            plot.tell(series[group[0]], group[0])
        elif not dots:
            plot.name_ends({key: list(filter(None, {**pale, **series}[key]))[-1] for key in ends},
                           {**{key: Style(FAINT, 0) for key in pale}, **{
                               key: looks[key] for key in names}})
        plot.panel()
    return plot.draw("Lines: %s. From left to right: %s. Upwards: %s." % (
        ", ".join(names), x.title, y.title))


def _draw(plot, group, names, series, pale, looks, dots):
    """Draws the lines of a panel, and before them those that are not its own: the other series, and the
    weaker set."""
    plot.line([point for key in names if key not in group for point in [*series[key], None]],
              Style(OTHERS, 0), 1.2)
    for key, points in pale.items():
        if key in group or key not in names:
            rgb = looks[key].colour if key in names else FAINT
            plot.line(points, Style(rgb, 0, DOTTED), 2)
    for key in group:
        if key in dots:
            plot.dots(series[key], looks[key])
        else:
            plot.line(series[key], looks[key], 2.2, len(series[key]) <= MANY)


def _regions(marked, places):
    """Pairs of ends: from halfway to the place before to halfway to the one after."""
    for at, place in enumerate(places):
        if place in marked:
            before, after = places[max(0, at - 1)], places[min(at + 1, len(places) - 1)]
            yield (place * before) ** 0.5, (place * after) ** 0.5


def _key(together, looks, dots, behind_name, hatched_name):
    """The key above the lines. Lines that have their name beside them are left out."""
    key = [("the one named above, with its range", Style(INK, 7)), ("the others", Style(OTHERS, 0))]
    if together:
        key = [(each, looks[each]._replace(dash=None) if each in dots else looks[each])
               for each in together if dots]
    return key + ([(behind_name, Style(FAINT, 0, DOTTED))] if behind_name else []) + (
        [(hatched_name, Style(OTHERS, 5, None))] if hatched_name else [])


def bars(name, title, x, groups, least=()):
    """Bars to the right, each with its figure: {group: {name: figure, ...}, ...}. A figure may also
    be a text, which is then shown instead of a bar. The axis is always linear, because on any other
    the length of a bar would mean nothing. Those in `least` are grey: a (group, name) each whose
    figure is no limit of its own."""
    x = x._replace(log=False)
    figures = {(group, key): each for group in groups for key, each in groups[group].items()}
    points = {where: _point(x, x, 0, None if isinstance(each, str) else each)
              for where, each in figures.items()}
    drawn = [point for point in points.values() if point]
    if not drawn:
        return None
    names = list(dict.fromkeys(key for _, key in points))
    plot = Panels(name, title)
    rows = plot.place_rows(Scale(x, [each for point in drawn for each in point[1:]]), groups,
                           [AT_LEAST + written(point.middle) for point in drawn])
    for where, row in rows.items():
        point, text, end, rgb = points[where], figures[where] or "no figure", 0, FAINT
        if point:
            text, end, rgb = written(point.middle), point.high, INK
            if where in least:
                text, rgb = AT_LEAST + text, FAINT
            plot.box(0, point.middle, row - 0.33, row + 0.33,
                     OTHERS if where in least else style(where[1], names).colour)
            plot.range(point, row)
        plot.label(text, at(end, row), "left offset 0.8,0", rgb)
    plot.panel()
    return plot.draw("Bars: %s. Their length: %s." % (", ".join(names), x.title))


def style(name, names):
    """The look of a line. For the seven, the floor and the peers it is always the same, and dashed
    for another revision or another flavour (epoll@v1.0, nginx:default). For others it follows their
    order."""
    plain = re.split("[@:, ]", name)[0]
    if plain in STYLES:
        return STYLES[plain] if plain == name else STYLES[plain]._replace(dash=DASHED)
    others = [each for each in names if each not in STYLES]
    return MORE[others.index(name) % len(MORE)] if name in others else MORE[0]


def _point(across, up, x, middle, low=None, high=None):
    """The place of a figure, which is a number, or a middle with a range, apart or together. None
    is a gap. So is zero or less on a logarithmic axis, where it has no place."""
    if isinstance(middle, tuple):
        middle, low, high = middle
    if middle is None or up.log and middle <= 0 or across.log and x <= 0:
        return None
    if low is None or up.log and low <= 0:
        low = middle
    return _Point(across.ticks.index(x) if across.even else x, middle, low,
                  middle if high is None else high)


def _side_by_side(together, series, across):
    """Their points, each line's a little to the side of the line before it."""
    middle = (len(together) - 1) / 2
    return {key: [point and point._replace(x=across.value(
        across.at(point.x) + SIDE * (order - middle))) for point in series[key]]
            for order, key in enumerate(together)}
