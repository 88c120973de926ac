"""chart: lines of figures, drawn by gnuplot.

    svg = chart.lines("sweep", "Throughput holds", "clients at once", ["20", "100", "1,000"], "pages a second",
                      {"epoll": [(14652, 14100, 15020), None, (18000, 17000, 19000)], ...})

The SVG may be inside HTML, several times on one page, or a file of its own. So its ids begin with a name, and
it loads nothing. The places on the axis have equal distances, whatever they are called.
"""

import html
import os
import re
import shutil
import subprocess

import top
from lib import Trouble

WIDTH, KEY, LETTER, HEIGHT, MOST_TICKS = 500, 70, 7, 400, 8  # pixels; KEY without its longest name
ASIDE = 0.03  # from a range to the next one at the same place, so that none is hidden
DECADE = 30  # figures that differ by more than this factor need a logarithmic axis
LIMIT_SECONDS = 60
# A dark page turns the light around, and leaves the colours.
DARK = "@media screen and (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg); } }"

# Colour and marker. The colours are Okabe's and Ito's, which colour-blind readers can tell apart. The marker tells
# the family: triangles are processes, circles threads, diamonds loops. Its number less one is the same, hollow.
STYLES = {**{name: (row["colour"], int(row["marker"])) for name, row in top.ROWS.items()}, "floor": ("#7f7f7f", 5),
          "nginx": ("#5b3a8c", 13), "lighttpd": ("#8c6d1f", 13), "apache": ("#882255", 11)}
MORE = [("#0072b2", 7), ("#d55e00", 9), ("#009e73", 13), ("#cc79a7", 5), ("#56b4e9", 11), ("#7f7f7f", 15)]


def available():
    return shutil.which("gnuplot") is not None


def quoted(text):
    """A string for gnuplot that is taken literally: no escapes, no `commands`."""
    return "'%s'" % " ".join(str(text).split()).replace("'", "''")


def style(name, names):
    """How a line looks. For the seven, the floor and the peers it is always the same, and dashed for another
    revision or other options. For others it follows their order."""
    plain = re.split("[@:, ]", name)[0]
    others = [each for each in names if re.split("[@:, ]", each)[0] not in STYLES]
    colour, point = STYLES.get(plain) or MORE[others.index(name) % len(MORE)]
    return "lw 2 lc rgb '%s' dt %d" % (colour, 1 if plain == name or plain not in STYLES else 2), point


def lines(name, title, x_title, ticks, y_title, series, hollow=(), behind=None):
    """A line for each of the series, with a marker and a range at each place: {name: [figure, ...]}, a figure
    for each tick. A figure is (middle, low, high), or None, which leaves a gap. `hollow` has the (name, number of
    the tick) of those that say "at least". `behind` is a second set, of middles alone, drawn as dots. None if there is
    no gnuplot, or nothing to draw."""
    series = {key: figures for key, figures in series.items() if any(figures)}
    known = [end for figures in series.values() for figure in figures if figure for end in figure]
    known += [figure for figures in (behind or {}).values() for figure in figures if figure]
    if not known or not available():
        return None
    few, width = -(-len(ticks) // MOST_TICKS), WIDTH + KEY + LETTER * max(map(len, series))
    commands = ["set xtics (%s)" % ", ".join("%s %d" % (quoted(tick), at) for at, tick in enumerate(ticks) if at % few == 0),
                "set xrange [-0.3:%.1f]" % (len(ticks) - 0.7), "set xlabel %s" % quoted(x_title),
                "set ylabel %s" % quoted(y_title), "set title %s" % quoted(title), "set grid lc rgb '#d0d7de'",
                "set key at screen %.3f, graph 1 left top Left reverse samplen 2" % ((WIDTH + LETTER) / width), "set format y '%.10g'",
                "set errorbars small", "set rmargin at screen %.3f" % (WIDTH / width), "set tics scale 0", "set border 3",
                "set logscale y" if min(known) > 0 and max(known) > DECADE * min(known) else "set yrange [0:]"]
    plots = []
    for number, (key, figures) in enumerate([*series.items(), *(behind or {}).items()]):
        is_behind = number >= len(series)
        rows = [figure or ("NaN",) * 3 for figure in figures] if not is_behind else [(figure or "NaN",) for figure in figures]
        line, point = style(key, [*series])
        commands.append("\n".join(["$rows%d << END" % number, *("%.2f %s %d" % (
            at + ASIDE * (number % (len(series) or 1) - len(series) / 2), " ".join(map(str, row)), point - (
                (key, at) in hollow)) for at, row in enumerate(rows)), "END"]))
        plots += ["$rows%d with lines %s dt 3 notitle" % (number, line.rpartition(" dt")[0])] if is_behind else [
            "$rows%d using 1:2:3:4 with yerrorlines %s pt 0 notitle" % (number, line),
            "$rows%d with points lc rgb '#ffffff' ps 0.7 pt %d notitle" % (number, point),
            "$rows%d using 1:2:5 with points %s ps 0.7 pt variable notitle" % (number, line),
            "NaN with linespoints %s ps 0.7 pt %d title %s" % (line, point, quoted(key))]
    if hollow:
        plots.append("NaN with points lc rgb '#000000' ps 0.7 pt 6 title 'hollow: ≥'")
    return draw([*commands, "plot " + ", ".join(plots)], width, name, title, "Lines: %s. From left to right: %s. Upwards: %s."
                % (", ".join(series), x_title, y_title))


def draw(commands, width, name, title, description):
    """The picture as SVG text. Trouble if gnuplot refuses the commands."""
    terminal = "set terminal svg noenhanced size %d,%d font 'Arial,14' background '#ffffff'" % (width, HEIGHT)
    try:  # -d: does not read ~/.gnuplot
        done = subprocess.run(["gnuplot", "-d"], input="\n".join(["set encoding utf8", terminal, *commands, ""]),
                              capture_output=True, encoding="utf-8", timeout=LIMIT_SECONDS,
                              env=dict(os.environ, LC_ALL="C.UTF-8"), check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble("gnuplot: %s" % error) from error
    if done.returncode or "</svg>" not in done.stdout:
        raise Trouble("gnuplot: %s" % (done.stderr.strip() or "status %d" % done.returncode))
    svg = done.stdout[done.stdout.index("<svg"):].replace("<svg", '<svg role="img"', 1)
    svg = re.sub(r'\b(id=["\']|href=["\']#)', lambda found: "%schart-%s-" % (found.group(), name), svg)
    head = "<title>%s</title>\n<desc>%s</desc>\n<style>%s</style>" % (html.escape(title), html.escape(description), DARK)
    return re.sub(r"<title>.*?</title>\s*<desc>.*?</desc>", lambda _: head, svg, count=1, flags=re.DOTALL)
