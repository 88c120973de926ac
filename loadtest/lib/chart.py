"""chart: pictures of figures, drawn by gnuplot.

    svg = chart.lines("sweep", "Throughput holds, except where ...",
                      chart.Axis("clients at once", log=True, ticks=levels),
                      chart.Axis("requests a second, median of 3 rounds"),
                      {"epoll": [(20, 14652, 14100, 15020), (100, None), ...], ...})

Each kind returns an SVG for report.add_chart(), or None if there is no gnuplot or no figure. The
name makes the picture's ids unique on a page.

A figure is a number; or (middle, low, high), drawn with a thin bar for the range; or None, a gap:
nothing is drawn where nothing was measured. `behind` is a second set of the same shape, drawn
paler, such as another machine's figures; `behind_name` says whose.

Where everything stands is computed here, in pixels; gnuplot is told exactly that.
"""

import math
import re
import textwrap
from collections import namedtuple

from lib import gnuplot, labels, scale

Axis = namedtuple("Axis", "title log ticks even", defaults=(False, None, False))
Axis.__doc__ = """What is measured, with its unit; logarithmic?; where exactly the ticks stand; or
are they an even step apart whatever they say, as 0, 1, 10, 50? (Of lines, to the right only.)"""

# Of every chart. The colours are Okabe's and Ito's, which the colour-blind tell apart; the shape
# tells the family (triangles: processes, circles: threads, diamonds: loops), and a filled shape on
# a solid line is the later of the two, so that a print in grey is enough.
Style = namedtuple("Style", "colour point dash")
SOLID, DASHED, LONG, DOTTED = "solid", "(7,3)", "(14,4)", "(2,4)"
STYLES = {
    "iterative": Style("#000000", 5, SOLID),  # squares
    "forking": Style("#d55e00", 8, DASHED),
    "preforking": Style("#e69f00", 9, SOLID),
    "threading": Style("#0072b2", 6, DASHED),
    "prethreading": Style("#56b4e9", 7, SOLID),
    "poll": Style("#cc79a7", 12, DASHED),
    "epoll": Style("#009e73", 13, SOLID),
    "floor": Style("#7f7f7f", 4, LONG),  # empty squares
    "nginx": Style("#5b3a8c", 3, LONG),  # star
    "lighttpd": Style("#8c6d1f", 2, LONG),  # cross
    "apache": Style("#882255", 11, LONG),  # triangles upside down
}
OTHERS = [Style("#0072b2", 7, SOLID), Style("#d55e00", 8, DASHED), Style("#009e73", 13, SOLID),
          Style("#cc79a7", 12, DASHED), Style("#56b4e9", 5, SOLID), Style("#7f7f7f", 4, LONG)]

# Of the parts of a bar: dark and light in turn, so that neighbours differ in print.
PARTS = ["#0072b2", "#e69f00", "#6b3d7d", "#56b4e9", "#d55e00", "#a6d9c9", "#007a59", "#f0c4dc",
         "#595959", "#f0e442", "#d9d9d9"]

WIDTH = 760
EDGE = 12  # nothing comes closer to the picture's edge
LINE = 20  # from one line of text to the next
TITLE, TEXT = 18, 15  # sizes of letters
INK, FAINT, GRID = "#1a1a1a", "#595959", "#dddddd"
MANY = 40  # points: more of them have no markers
GROUP, BAR = 30, 23  # heights of a group's name and of a bar with its room
DOTS = 3000  # about so many are drawn, whatever there is


def lines(name, title, x, y, series, behind=None, behind_name="", dots=()):
    """Lines with a marker at each point: {name: [(x, figure) or (x, middle, low, high), ...]}.

    The series named in `dots` become clouds of dots without a line."""
    series, behind = (
        {key: [_point(x, y, *point) for point in points] for key, points in (every or {}).items()}
        for every in (series, behind))
    drawn = [point for points in [*series.values(), *behind.values()] for point in points
             if point.middle is not None]
    if not drawn:
        return None
    names = [key for key, points in series.items() if _last(points)]

    def begin(with_key):
        plot = _Picture(name, title, x, y, note=_behind_note(behind, behind_name))
        beside = [_width(key) + 2 * labels.GAP for key in names
                  if not with_key and _reaches_end(series[key], drawn)]
        if with_key:
            plot.add_key([(key, style(key, series), key in dots) for key in names])
        plot.frame(height=380, right=max(beside, default=0), xs=[point.x for point in drawn],
                   ys=[figure for point in drawn for figure in point[1:]])
        return plot

    plot = begin(with_key=bool(dots))
    if not dots and not _name_at_ends(plot, names, series, behind):
        plot = begin(with_key=True)
    for key, points in behind.items():
        plot.line(points, style(key, {**series, **behind}), pale=True)
    for key, points in series.items():
        (plot.cloud if key in dots else plot.line)(points, style(key, series))
    return plot.draw("Lines: %s. From left to right: %s. Upwards: %s." % (
        ", ".join(names), x.title, y.title))


def bars(name, title, x, groups, behind=None, behind_name=""):
    """Bars to the right, each with its figure: {group: {name: figure, ...}, ...}. A figure may
    also be a text, which then stands there instead of a bar.

    On a logarithmic axis a bar's length would mean nothing: there markers stand on thin lines."""
    rows = _rows(x, groups, behind or {})
    figures = [figure for row in rows if row.own for figure in row.own[1:]] + [
        row.behind for row in rows if row.behind is not None]
    if not figures:
        return None
    names = [row.name for row in rows if row.name]
    plot = _Picture(name, title, None, x, note=_behind_note(behind, behind_name, "bars"))
    plot.frame_for_bars(left=max(_width(each) for each in names) + 10,
                        right=max(_width(row.text) for row in rows if row.own) + 18,
                        height=sum(row.height for row in rows), figures=figures)
    for row in rows:
        plot.bar(row, style(row.name, names))
    return plot.draw("Bars: %s. Their length: %s." % (
        ", ".join(dict.fromkeys(names)), x.title))


def stacked(name, title, x, groups):
    """Bars to the right, each put together of parts: {group: {name: {part: figure, ...}, ...}}.

    At its end stands the sum. The parts have the same order and colour in all bars, and in all
    pictures that list the same parts in that order, those of 0 included. Their names stand above,
    and in the bars where there is room. Nothing is drawn of less than 0."""
    listed = list(dict.fromkeys(part for figures in groups.values() for parts in figures.values()
                                for part in parts))
    bars_ = [(group, key, {part: figure for part, figure in parts.items() if figure and figure > 0})
             for group, figures in groups.items() for key, parts in figures.items()]
    sums = [sum(parts.values()) for _, _, parts in bars_]
    if not any(sums):
        return None
    looks = {part: Style(PARTS[at % len(PARTS)], 5, SOLID) for at, part in enumerate(listed)}
    names = [part for part in listed if any(part in parts for _, _, parts in bars_)]
    plot = _Picture(name, title, None, x)
    plot.add_key([(part, looks[part], True) for part in names], marker=1.4)
    plot.frame_for_bars(left=max(_width(key) for _, key, _ in bars_) + 10,
                        right=max(_width(scale.figure(each)) for each in sums) + 18,
                        height=BAR * len(bars_) + GROUP * len(groups) * (len(groups) > 1),
                        figures=sums)
    for group in groups:
        if len(groups) > 1:
            plot.bar(_Row(group, "", None, None, "", GROUP), None)
        for which, key, parts in bars_:
            if which == group:
                plot.pile(key, [(part, parts[part], looks[part]) for part in names
                                if part in parts])
    return plot.draw("Stacked bars: %s. Their length: %s. Their parts: %s." % (
        ", ".join(dict.fromkeys(key for _, key, _ in bars_)), x.title, ", ".join(names)))


def histogram(name, title, x, y, bins, marks=None):
    """How often each was seen: [(from, to, how often), ...]. `marks` are upright lines with a
    name: {"median": 3.2, "p99": 41}."""
    if not bins:
        return None
    plot = _Picture(name, title, x, y)
    marks = dict(sorted(((text, value) for text, value in (marks or {}).items()
                         if value > 0 or not x.log), key=lambda mark: mark[1]))
    edges = [edge for low, high, _ in bins for edge in (low, high)] + list(marks.values())
    plot.frame(height=330, right=0, xs=edges, ys=[0, *[count for _, _, count in bins]],
               above=LINE if marks else 0)
    plot.boxes(bins)
    plot.marks(marks)
    return plot.draw("Bars: %s, by %s.%s" % (y.title, x.title, "".join(
        " %s: %s." % (text, scale.figure(value)) for text, value in marks.items())))


def style(name, names):
    """Of the seven, the floor and the peers always the same, dotted if it is another revision or
    another flavour (epoll@v1.0, nginx:default); of others, by their order."""
    if name in STYLES:
        return STYLES[name]
    plain = re.split("[@:]", name)[0]
    if plain in STYLES:
        return STYLES[plain]._replace(dash=DOTTED)
    others = [each for each in names if each not in STYLES]
    return OTHERS[others.index(name) % len(OTHERS)] if name in others else OTHERS[0]


# ---- figures --------------------------------------------------------------------------------

_Point = namedtuple("_Point", "x middle low high")
_Row = namedtuple("_Row", "group name own behind text height")


def _point(across, up, x, middle, low=None, high=None):
    """Takes a figure as a number, or as its middle with a range, apart or together. What has no
    place on a logarithmic axis, zero or less, is a gap."""
    if isinstance(middle, tuple):
        middle, low, high = middle
    if middle is None or up.log and middle <= 0 or across.log and x <= 0:
        return _Point(x, None, None, None)
    if across.even:
        x = across.ticks.index(x)
    if low is None or up.log and low <= 0:
        low = middle
    return _Point(x, middle, low, middle if high is None else high)


def _last(points):
    """The end of a line, or None."""
    return next((point for point in reversed(points) if point.middle is not None), None)


def _reaches_end(points, drawn):
    last = _last(points)
    return last and last.x == max(point.x for point in drawn)


def _rows(axis, groups, behind):
    """What stands below what in a picture of bars."""
    rows = []
    for group, figures in groups.items():
        if len(groups) > 1:
            rows.append(_Row(group, "", None, None, "", GROUP))
        for name, figure in figures.items():
            missing = figure is None or isinstance(figure, str)
            middle, low, high = figure if isinstance(figure, tuple) else (figure,) * 3
            own = None if missing else _Point(0, middle, low, high)
            text = (figure or "no figure") if missing else scale.figure(middle)
            pale = behind.get(group, {}).get(name)
            if pale is not None and axis.log and pale <= 0:
                pale = None  # there is no place for it
            rows.append(_Row("", name, own, pale, text, BAR + 5 if behind else BAR))
    return rows


def _behind_note(behind, behind_name, what="lines"):
    if not behind:
        return ""
    return "Pale%s %s: %s" % (", dotted" if what == "lines" else "", what, behind_name)


# ---- letters and colours --------------------------------------------------------------------


def _width(text, size=TEXT, bold=False):
    """About so many pixels, rather too many than too few."""
    return len(text) * size * (0.62 if bold else 0.57)


def _balanced(text, most):
    """The text in lines of about one length, so that no word stands alone."""
    count = len(textwrap.wrap(text, most)) or 1
    for width in range(len(text) // count, most):
        lines_ = textwrap.wrap(text, width) if width else []
        if 0 < len(lines_) <= count:
            return lines_
    return textwrap.wrap(text, most)


def _mixed(rgb, other, share):
    """A colour with a share of another one."""
    pairs = [(int(rgb[n:n + 2], 16), int(other[n:n + 2], 16)) for n in (1, 3, 5)]
    return "#" + "".join("%02x" % round(a + (b - a) * share) for a, b in pairs)


def _pale(rgb):
    return _mixed(rgb, "#ffffff", 0.5)


def _dark(rgb):
    """For letters, which need more contrast than lines."""
    return _mixed(rgb, "#000000", 0.4)


def _letters_on(rgb):
    """Dark ones on what is light."""
    red, green, blue = (int(rgb[n:n + 2], 16) for n in (1, 3, 5))
    return INK if 0.3 * red + 0.59 * green + 0.11 * blue > 135 else "#ffffff"


# ---- names at the ends of lines -------------------------------------------------------------


def _name_at_ends(plot, names, series, behind):
    """Writes each name where its line ends. False if there is no room for all of them."""
    paths = [[point for point in plot.path(points) if point]
             for points in [*series.values(), *behind.values()]]
    ends = {key: plot.place(_last(series[key])) for key in names}
    taken = [(x - 6, y - 6, x + 6, y + 6) for points in series.values()
             for x, y in filter(None, plot.path(points))]
    right = [key for key in names if ends[key][0] > plot.right - 1]
    middles = labels.spread([ends[key][1] for key in right], LINE - 2, plot.top - 8, plot.bottom)
    if middles is None:
        return False
    found = [(key, (plot.right + 2 * labels.GAP, middle), "left")
             for key, middle in zip(right, middles)]
    for key in sorted(set(names) - set(right), key=lambda key: -ends[key][0]):
        width, area = _width(key), (plot.left, plot.top, WIDTH - EDGE, plot.bottom)
        middle = labels.beside(ends[key], width, LINE - 4, area, taken, paths)
        if middle is None:
            return False
        taken.append((middle[0] - width / 2, middle[1] - 8, middle[0] + width / 2, middle[1] + 8))
        found.append((key, middle, "center"))
    for key, (x, y), side in found:
        rgb = style(key, series).colour
        plot.text(key, x, y, side, _dark(rgb))
        if side == "left":
            plot.stroke((ends[key][0] + 6, ends[key][1]), (x - 3, y), rgb, 1)
    return True


# ---- the picture ----------------------------------------------------------------------------


class _Picture:
    """A picture that grows from its title downwards: key, frame, then what is in it."""

    def __init__(self, name, title, x, y, note=""):
        self.name, self.title, self.x, self.y = name, title, x, y
        self._commands = ["set border 0", "unset key", "unset xtics", "unset ytics"]
        self._plots = []
        self._texts = []  # drawn when the picture's height is known
        self._data = []
        self._height = None
        self._down = EDGE
        for line in _balanced(title, int((WIDTH - 2 * EDGE) / _width("x", TITLE, True))):
            self.text(line, EDGE, self._down + TITLE / 2, "left", INK, TITLE, bold=True)
            self._down += LINE + 4
        above = [y.title, note] if x else [note]  # the title of upright figures stands above them
        for line in filter(None, above):
            self.text(line, EDGE, self._down + LINE / 2, "left", FAINT)
            self._down += LINE

    # What the picture says in words and where.

    def text(self, text, x, y, side, rgb, size=TEXT, bold=False):
        """`side` is where the text begins: left, center or right. (x, y) is its middle's height."""
        self._texts.append((text, x, y, side, "%s textcolor %s front" % (
            gnuplot.font(size, bold), gnuplot.colour(rgb))))

    def add_key(self, entries, marker=0.35):
        """Names beside a piece of their lines, in as many rows as they need."""
        x, y = EDGE, self._down + LINE / 2 + 4
        for name, look, dots in entries:
            width = 42 + _width(name) + 18
            if x + width > WIDTH - EDGE and x > EDGE:
                x, y = EDGE, y + LINE
            if not dots:
                self.stroke((x, y), (x + 34, y), look.colour, 2, look.dash)
            self._marker(x + 17, y, look, marker if dots else 0.75)
            self.text(name, x + 42, y, "left", INK)
            x += width
        self._down = y + LINE / 2

    def stroke(self, start, end, rgb, width, dash=SOLID):
        """A straight line."""
        self._texts.append((None, start, end, "nohead lc %s lw %s dt %s front" % (
            gnuplot.colour(rgb), width, dash)))

    def _marker(self, x, y, look, size):
        self._texts.append(("", x, y, "left", "point pt %d ps %s lc %s front" % (
            look.point, size, gnuplot.colour(look.colour))))

    # The frame: axes, ticks and the room between them.

    def frame(self, height, right, xs, ys, above=0):
        """Axes for figures that go upwards."""
        y_low, y_high = scale.limits(ys, self.y.log)
        y_ticks = self.y.ticks or scale.round_ticks(y_low, y_high, self.y.log)
        self.left = EDGE + max(_width(scale.number(tick)) for tick in y_ticks) + 8
        self.right = WIDTH - EDGE - max(right, 26)  # half of the last figure below
        self.top = self._down + 14 + above
        self.bottom = self.top + height
        self._height = self.bottom + 2 * LINE + EDGE + 4
        ticks = list(range(len(self.x.ticks))) if self.x.even else self.x.ticks
        x_low, x_high = self._x_limits(ticks or xs)
        x_ticks = ticks or scale.round_ticks(x_low, x_high, self.x.log)
        self._begin = self.left + 10
        self._across = scale.Scale(x_low, x_high, self.x.log, self.right - self._begin)
        self._up = scale.Scale(y_low, y_high, self.y.log, height)
        self._set_axes(x_low, x_high, y_low, y_high)
        for tick in y_ticks:
            y = self.bottom - self._up.at(tick)
            self._grid_line((self.left, y), (self.right, y))
            self.text(scale.number(tick), self.left - 8, y, "right", INK)
        self._x_ticks(x_ticks, self.bottom)
        self.text(self.x.title, (self.left + self.right) / 2, self.bottom + LINE * 1.5 + 8,
                  "center", FAINT)

    def _x_limits(self, xs):
        low, high = min(xs), max(xs)
        if self.x.log:
            low = min((each for each in xs if each > 0), default=1)
        elif low > 0 and not self.x.ticks:
            low = 0
        return (low, high) if low < high else (low, low * 2 if low > 0 else 1)

    def _set_axes(self, x_low, x_high, y_low, y_high):
        """gnuplot's own axes lie exactly below ours."""
        for side, share in (("l", self._begin / WIDTH), ("r", self.right / WIDTH),
                            ("t", 1 - self.top / self._height),
                            ("b", 1 - self.bottom / self._height)):
            self._commands.append("set %smargin at screen %.6f" % (side, share))
        self._commands += ["set xrange [%.12g:%.12g]" % (x_low, x_high),
                           "set yrange [%.12g:%.12g]" % (y_low, y_high)]
        logs = ("x" if self._across.log else "") + ("y" if self._up and self._up.log else "")
        if logs:
            self._commands.append("set logscale " + logs)

    def _x_ticks(self, ticks, bottom):
        """A stroke for each, and as many figures as there is room for."""
        ticks = [tick for tick in sorted(ticks) if self._across.at(tick) is not None]
        texts = {tick: scale.number(self.x.ticks[tick] if self.x and self.x.even else tick)
                 for tick in ticks}
        places = [(tick, self._begin + self._across.at(tick), _width(texts[tick]) + 10)
                  for tick in ticks]
        written = scale.thinned(places)
        self.stroke((self.left, bottom), (self.right, bottom), INK, 1)
        for tick, x, _ in places:
            self.stroke((x, bottom), (x, bottom + (6 if tick in written else 4)), INK, 1)
            if tick in written:
                self.text(texts[tick], x, bottom + LINE / 2 + 6, "center", INK)

    def _grid_line(self, start, end):
        self._texts.append((None, start, end, "nohead lc %s lw 1 back" % gnuplot.colour(GRID)))

    def place(self, point):
        """A point's pixels; None where there is nothing."""
        if point.middle is None:
            return None
        return (self._begin + self._across.at(point.x), self.bottom - self._up.at(point.middle))

    def path(self, points):
        return [self.place(point) for point in points]

    # What is in it.

    def line(self, points, look, pale=False):
        """A line with markers, broken where nothing was measured, and the ranges."""
        data = self._block([point[:2] if self.place(point) else None for point in points])
        ranges = self._block([point for point in points if self.place(point)
                              and point.low < point.high])
        rgb = gnuplot.colour(_pale(look.colour) if pale else look.colour)
        if ranges and not pale:
            self._plots.append("%s using 1:3:(0):($4-$3) with vectors nohead lc %s lw 1" % (
                ranges, rgb))
        self._plots.append("%s with lines lc %s lw 2 dt %s" % (
            data, rgb, "(2,3)" if pale else look.dash))
        if not pale and len(points) <= MANY:
            under = {4: 5, 6: 7, 8: 9, 12: 13}.get(look.point)  # what is open is filled with white
            if under:
                self._plots.append("%s with points pt %d ps 0.75 lc rgb '#ffffff'" % (data, under))
            self._plots.append("%s with points pt %d ps 0.75 lw 1.5 lc %s" % (
                data, look.point, rgb))

    def cloud(self, points, look):
        """Dots; of those that come too close to each other, one is drawn."""
        placed = [(point[:2], self.place(point)) for point in points if self.place(point)]
        for grain in range(1, 100):
            seen = {(x // grain, y // grain): dot for dot, (x, y) in placed}
            if len(seen) <= DOTS:
                break
        self._plots.append("%s with points pt 7 ps 0.3 lc %s" % (
            self._block(list(seen.values())), gnuplot.colour(_pale(look.colour))))

    def boxes(self, bins):
        """The bars of a histogram; on a logarithmic axis they begin at its foot."""
        foot = self._up.low
        data = self._block([(low, foot, high, count) for low, high, count in bins if count > foot
                            and self._across.at(low) is not None])
        self._plots.append("%s using 1:2:1:3:2:4 with boxxyerror fs solid 1 border rgb '#ffffff' "
                           "lc %s" % (data, gnuplot.colour(_mixed("#0072b2", "#ffffff", 0.25))))

    def marks(self, marks):
        """Upright lines, each with its name and figure above."""
        texts = ["%s %s" % (text, scale.figure(value)) for text, value in marks.items()]
        places = [self._begin + self._across.at(value) for value in marks.values()]
        widths = [_width(text) + 14 for text in texts]
        middles, free = [], self.left
        for place, width in zip(places, widths):  # none over its neighbour
            middles.append(max(place, free + width / 2))
            free = middles[-1] + width / 2
        free = WIDTH - EDGE
        for each in reversed(range(len(middles))):
            middles[each] = min(middles[each], free - widths[each] / 2)
            free = middles[each] - widths[each] / 2
        for text, place, middle in zip(texts, places, middles):
            self.stroke((place, self.bottom), (place, self.top - 6), INK, 1, "(4,3)")
            self.stroke((place, self.top - 6), (middle, self.top - 12), INK, 1)
            self.text(text, middle, self.top - LINE, "center", INK)

    # Bars to the right.

    def frame_for_bars(self, left, right, height, figures):
        """Room for rows below each other; only the axis across has figures."""
        low, high = scale.limits(figures, self.y.log)
        if self.y.log:  # even the shortest is to be seen
            low = scale.limits([low / 1.1, high], True)[0]
        else:  # and the longest takes all the room there is
            high = max(figures) or high
        self.left, self.right = EDGE + left, WIDTH - EDGE - right
        self._begin = self.left
        self.top = self._down + 4
        self.bottom = self.top + height + 6
        self._height = self.bottom + 2 * LINE + EDGE + 4
        self._across = scale.Scale(low, high, self.y.log, self.right - self.left)
        self._up = None
        self._set_axes(low, high, self._height - self.bottom, self._height - self.top)
        ticks = self.y.ticks or scale.round_ticks(low, high, self.y.log)
        for tick in ticks:
            x = self.left + self._across.at(tick)
            self._grid_line((x, self.top), (x, self.bottom))
        self._x_ticks(ticks, self.bottom)
        self.text(self.y.title, (self.left + self.right) / 2, self.bottom + LINE * 1.5 + 8,
                  "center", FAINT)
        self._row = self.top

    def bar(self, row, look):
        """The next row: a group's name; or a bar with its name, its figure and what is behind."""
        middle = self._row + (BAR if row.name else GROUP + 8) / 2
        if row.group:
            self.text(row.group, EDGE, middle, "left", INK, TEXT, bold=True)
        self.text(row.name, self.left - 10, middle, "right", INK)
        end = self.left
        if row.behind is not None:
            self._box(row.behind, middle + 9, middle + 15, _pale(look.colour))
        if row.own:
            end = self._own_bar(row.own, middle, look)
        if row.name:
            self.text(row.text, end + 7, middle, "left", INK if row.own else FAINT)
        self._row += row.height

    def pile(self, name, parts):
        """The next row: a bar of (part, figure, look), one behind the other, and their sum."""
        middle = self._row + BAR / 2
        self.text(name, self.left - 10, middle, "right", INK)
        end, whole = self.left, sum(figure for _, figure, _ in parts)
        places, until = [], 0.0
        for part, figure, look in parts:
            start, until = end, until + figure
            end = self.left + self._across.at(until)
            places.append((until, look))
            if _width(part) + 6 < end - start:
                self.text(part, (start + end) / 2, middle, "center", _letters_on(look.colour))
        for until, look in reversed(places):  # the longest first; each covers the others' beginning
            self._box(until, middle - 8, middle + 8, look.colour)
        self.text(scale.figure(whole), end + 7, middle, "left", INK)
        self._row += BAR

    def _own_bar(self, own, middle, look):
        """Returns where the figure can stand."""
        places = [self._across.at(each) for each in own[1:]]
        if None in places:  # no place for zero on a logarithmic axis
            return self.left
        end, low, high = (self.left + place for place in places)
        if self._across.log:
            self.stroke((self.left, middle), (end, middle), _pale(look.colour), 2)
            self._marker(end, middle, look, 1)
        else:
            self._box(own.middle, middle - 8, middle + 8, look.colour)
        if low < high:
            for rgb, width in (("#ffffff", 3), (INK, 1)):  # to be seen on a dark bar, too
                self.stroke((low, middle), (high, middle), rgb, width)
                for each in (low, high):
                    self.stroke((each, middle - 4), (each, middle + 4), rgb, width)
        return max(end + (6 if self._across.log else 0), high)

    def _box(self, value, top, bottom, rgb):
        data = self._block([(self._across.low, self._height - bottom, value, self._height - top)])
        self._plots.append("%s using 1:2:1:3:2:4 with boxxyerror fs solid 1 noborder lc %s" % (
            data, gnuplot.colour(rgb)))

    # The end.

    def _block(self, rows):
        """Figures for gnuplot, under a name that is returned; a row that is None is a gap. Empty
        if there are none."""
        if not any(rows):
            return ""
        name = "$figures%d" % (len(self._data) + 1)
        lines_ = [" ".join("%.12g" % each for each in row) if row else "" for row in rows]
        self._data.append("\n".join(["%s << END" % name, *lines_, "END"]))
        return name

    def _screen(self, x, y):
        return "screen %.6f,%.6f" % (x / WIDTH, 1 - y / self._height)

    def _drawn(self):
        """Texts and strokes, as gnuplot calls them: labels and arrows."""
        for text, *rest in self._texts:
            if text is None:
                (start, end, how) = rest
                yield "set arrow from %s to %s %s" % (
                    self._screen(*start), self._screen(*end), how)
            else:
                (x, y, side, how) = rest
                yield "set label %s at %s %s %s" % (
                    gnuplot.quoted(text), self._screen(x, y), side, how)

    def draw(self, description):
        plots = [plot + " notitle" for plot in self._plots if not plot.startswith(" ")]
        commands = [*self._data, *self._commands, *self._drawn(),
                    "plot " + ", \\\n  ".join(plots or ["NaN notitle"])]
        return gnuplot.draw(commands, (WIDTH, math.ceil(self._height)), self.name, self.title,
                            description)
