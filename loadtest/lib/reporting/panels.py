"""panels: the parts of all charts: a head of text, and below it one or more panels with axes.

A chart is composed as commands for gnuplot, which lays out the panels and draws their contents.
Charts are also read on a phone, so they are narrow for the size of their letters.
"""

import math
import textwrap

from lib.reporting import gnuplot
from lib.reporting.gnuplot import FAINT, GRID, INK, OTHERS, OVER_LINES, PAPER, quoted
from lib.reporting.scale import figure

WIDTH, EDGE = 600, 10
LINE = 20  # from one line of text to the next
TITLE, TEXT = 17, 15  # sizes of letters
COLUMNS = 2  # of panels
HEIGHT, PANEL_HEIGHT, GAP, BETWEEN = 330, 90, 16, 34  # of one panel; of each of several
CLOSE = 0.2  # a share of a panel: too close for two figures
ROW = 24  # of bars
HATCH = 5  # from line to line
DOTS = 3000  # about so many are drawn at most


def width(text, size=TEXT):
    """The width in pixels, rather too large than too small."""
    return len(text) * size * 0.58


def at(x, y):
    """A place in a panel, by its axes."""
    return "%.12g,%.12g" % (x, y)


def _on_paper(x, y):
    """A place in the picture, in pixels from its upper left corner."""
    return "screen px(%g),py(%g)" % (x, y)


def _colour(rgb):
    return "lc rgb '%s'" % rgb


class Panels:
    """Draws its head at once. Then call place() or place_rows(), add what is in a panel, and call
    panel(), for each."""

    def __init__(self, name, title, above="", key=()):
        self._name, self._title = name, title
        self._commands = ["unset key", "set border 1 " + _colour(INK), "set tics scale 0 textcolor "
                          "rgb '%s'" % INK, "set grid lt 1 lw 1 " + _colour(GRID)]
        self._across = self._up = None
        self._count, self._drawn, self._few = 0, 0, (6, 6)  # few: ticks
        self._boxes, self._plots = [], []
        self._down = EDGE
        lines = textwrap.wrap(title, int((WIDTH - 2 * EDGE) / width("x", TITLE)))
        for text, how in [*((line, (INK, TITLE, True)) for line in lines), (above, (FAINT,))]:
            self.label(text, _on_paper(EDGE, self._down + 10), "left", *how)
            self._down += LINE + 2 if text else 0
        self._add_key(key)

    def _add_key(self, entries):
        """Adds names, each with a piece of its line or with its marker, in as many rows as they
        need."""
        x = EDGE
        for text, look in entries:
            sample = 32 if look.dash else 16
            if x > EDGE and x + sample + 8 + width(text) > WIDTH - EDGE:
                x, self._down = EDGE, self._down + LINE
            y = self._down + 12
            if look.dash:
                self._stroke(_on_paper(x, y), _on_paper(x + sample, y),
                             "lw 2 dt %s %s" % (look.dash, _colour(look.colour)))
            if look.point:
                self.label("", _on_paper(x + sample / 2, y), "left point pt %d ps %s %s" % (
                    look.point, 0.8 if look.dash else 1.2, _colour(look.colour)))
            self.label(text, _on_paper(x + sample + 8, y), "left")
            x += sample + 8 + width(text) + 20
        self._down += LINE if entries else 0

    # ---- the room for panels ----------------------------------------------------------------

    def place(self, across, up, panels=1, right=0):
        """Makes room for so many panels, all with the same axes, which are labelled once."""
        self._up, self._count = up, panels
        height, above = HEIGHT, 0
        if panels > 1:
            self._few, height, above = (3, 4), PANEL_HEIGHT, LINE
        left = max(width(up.text(tick)) for tick in up.ticks(self._few[1]))
        self._frame(across, left, right, above, height)
        self._commands.append("set yrange [%.12g:%.12g]" % (up.low, up.high))

    def place_rows(self, across, groups, figures):
        """Makes room for one panel with a row for each bar. Returns {(group, name): its place
        upwards}. At the right there is room for the longest of the figures."""
        self._count, rows, down = 1, {}, 0
        for group, names in groups.items():
            if len(groups) > 1:
                self.label(group, "screen px(%d), first %g" % (EDGE, down + 0.6), "left", bold=True)
                down += 1.1
            rows.update(((group, name), down + each + 0.5) for each, name in enumerate(names))
            down += len(names)
        self._frame(across, max(width(name) for _, name in rows), max(map(width, figures)), -10,
                    ROW * down)
        ticks = ("%s %g" % (quoted(name), row) for (_, name), row in rows.items())
        self._commands += ["set yrange [%g:0]" % down, "set grid noytics",
                           "set ytics (%s)" % ",".join(ticks)]
        return rows

    def _frame(self, across, left, right, above, height):
        columns = min(COLUMNS, self._count)
        rows = math.ceil(self._count / columns)
        left, right, top = EDGE + left + 8, WIDTH - EDGE - right - 16, self._down + above + 14
        self._across, self.pixels = across, right - left
        widest = max(width(across.text(tick)) for tick in across.ticks(self._few[0]))
        room = (self.pixels - (columns - 1) * GAP) / columns / (widest + 12)
        self._few = max(2, min(self._few[0], int(room))), self._few[1]
        self._down = top + rows * height + (rows - 1) * BETWEEN
        self.label(across.axis.title, _on_paper((left + right) / 2, self._down + 1.9 * LINE),
                   "center", FAINT)
        self._commands += [
            "set multiplot layout %d,%d margins screen px(%g),px(%g),py(%g),py(%g) "
            "spacing screen px(%g),1-py(%g)" % (
                rows, columns, left, right, self._down, top, GAP, BETWEEN),
            "set xtics offset 0,0.3", "set xrange [%.12g:%.12g]" % (across.low, across.high)]
        self._commands += ["set logscale " + which for which, scale in (
            ("x", across), ("y", self._up)) if scale and scale.axis.log]

    # ---- what is in the next panel ----------------------------------------------------------

    def label(self, text, place, how, rgb=INK, size=TEXT, bold=False):
        self._commands.append("set label %s at %s %s font 'Arial%s,%d' textcolor rgb '%s'" % (
            quoted(text), place, how, ":Bold" * bold, size, rgb))

    def _stroke(self, start, end, how):
        self._commands.append("set arrow from %s to %s nohead %s" % (start, end, how))

    def box(self, left, right, low, high, rgb):
        self._boxes.append((left, right, low, high, int(rgb[1:], 16)))

    def line(self, points, look, wide, marked=False):
        """A line, which is broken where a point is None; with markers, and with the ranges of the
        figures."""
        how = "%s lw %s" % (_colour(look.colour), wide)
        self._plot(points, "with lines dt %s %s" % (look.dash, how))
        if marked:
            self._plot(points, "using 1:3:(0):($4-$3) with vectors nohead " + how)
            self._plot(points, "with points pt %d ps %g %s" % (
                look.point, 0.4 if self._count > 1 else 0.6, how))

    def dots(self, points, look):
        """A cloud, without the dots that are too close to another one."""
        places = {(self._across.at(point.x), self._up.at(point.middle)): point for point in points if point}
        for grain in range(1000, 10, -10):
            seen = {(int(x * grain), int(y * grain)): point for (x, y), point in places.items()}
            if len(seen) <= DOTS:
                break
        self._plot(list(seen.values()), "with points pt 7 ps 0.25 " + _colour(look.colour))

    def range(self, point, row):
        """The range of a bar: light around dark, so that it is seen on both."""
        for wide, rgb in ((4, PAPER), (1.5, INK)) if point.low < point.high else ():
            self._plot([(point.middle, row, point.low, point.high)],
                       "with xerrorbars pt 0 lw %s %s" % (wide, _colour(rgb)))

    def hatch(self, regions):
        """Hatches the room between two values each, over the whole height."""
        step = HATCH / (self.pixels / min(COLUMNS, self._count))
        for region in regions:
            first, last = (max(0, min(1, self._across.at(each))) for each in region)
            for number in range(math.ceil(first / step), math.floor(last / step) + 1):
                x = "%.12g, graph " % self._across.value(number * step)
                self._stroke(x + "0", x + "1", "back lw 1 " + _colour(OTHERS))

    def tell(self, points, name):
        """Writes the panel's name above it, and the figures next to ticks at their points."""
        self.label(name, "graph 0, graph 1", "left offset 0,0.8", bold=True)
        told = -1.0
        for tick in self._across.ticks(self._few[0]):
            place, near = min(((self._across.at(point.x), point) for point in points if point),
                              key=lambda each: abs(each[0] - self._across.at(tick)))
            if place - told > CLOSE:
                self.label(figure(near.middle), at(*near[:2]), "center front offset 0,0.7",
                           size=OVER_LINES)
                told = place

    def name_ends(self, ends, looks):
        """Writes each line's name at the right, at the height of its last point. No name covers
        another."""
        apart, free, below = LINE / HEIGHT, 2.0, len(ends)
        for key, point in sorted(ends.items(), key=lambda end: -end[1].middle):
            below -= 1
            height = max(min(free, self._up.at(point.middle)), below * apart)
            self.label(key, "graph 1, graph %.4f" % height, "left offset 0.7,0", looks[key].colour,
                       bold=True)
            free = height - apart

    def panel(self):
        """Draws the panel. What is added later is in the next one."""
        columns, each = min(COLUMNS, self._count), self._drawn
        self._drawn += 1
        self._ticks("x", self._across, self._few[0], each + columns >= self._count)
        if self._up:
            self._ticks("y", self._up, self._few[1], each % columns == 0)
        plots, self._plots = self._plots, []
        self._plot(self._boxes, "using 1:3:1:2:3:4:5 with boxxyerror fs solid 1 noborder "
                   "lc rgb variable")
        self._commands += ["plot " + ", ".join(self._plots + plots or ["NaN"]), "unset label",
                           "unset arrow"]
        self._boxes, self._plots = [], []

    def _ticks(self, which, scale, few, are_written):
        self._commands.append("set %stics (%s)" % (which, ", ".join("%s %.12g" % (
            quoted(scale.text(tick) if are_written else ""), tick) for tick in scale.ticks(few))))

    def _plot(self, rows, how):
        """Plots these rows of figures; None is a gap."""
        if any(rows):
            name = "$rows%d" % len(self._commands)
            self._commands.append("\n".join([name + " << END", *(
                " ".join("%.12g" % each for each in row or ()) for row in rows), "END"]))
            self._plots.append("%s %s" % (name, how))

    def draw(self, description):
        """The SVG; None if there is no gnuplot."""
        size = WIDTH, math.ceil(self._down + 2.4 * LINE + EDGE)
        places = ["px(x) = x / %d.0" % size[0], "py(y) = 1 - y / %d.0" % size[1]]
        return gnuplot.draw(places + self._commands, size, self._name, self._title, description)
