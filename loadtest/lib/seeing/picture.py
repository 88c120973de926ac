"""picture: swim lanes as SVG, still or replayed by a cursor.

One time axis for all servers of a picture. Each has its name and its total, a thin line for each
client, and a lane for each process or thread, with a bar for each call that waited. If more than a
few threads had nothing to do with the clients, they are counted instead of drawn. On a narrow screen (the
width of the picture, where it is an <img>) letters grow, and what is small is left out.
"""

import html
import os
import textwrap

from lib.seeing import lanes
from lib.seeing.lanes import ARRIVAL, BYTES, NAP, OTHERS, REDIS, ROOM, UNKNOWN

WIDTH, LEFT, RIGHT, MARGIN = 760, 112, 744, 16
LEAD_SHARE, LEAD_SECONDS = 0.04, 0.025  # shown before the first client and after the last one
LEAST_WIDTH = 0.2  # of a bar; what is narrower cannot be seen
LETTER = 5.6  # the width of one in a bar
TITLE_LETTERS = 58
NOTE_LETTERS = 74  # in a line that a narrow screen can show, too
SECONDS = 5  # how long the moving picture moves. Longer, and it would have to have a way to stop it
PLAIN_WIDTH = 24  # of a bar that is worth a line of its legend
TICKS = 7  # at most
MOST_IDLE = 2  # lanes of threads that had nothing to do
CALL_LETTERS = 160  # of a call with its arguments

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "picture.css"),
          encoding="utf-8") as file:
    STYLE = file.read()
MOVES = """
.xray .curtain { transform: translateX(%dpx); animation: pass %ds linear; }
@keyframes pass { from { transform: translateX(0); } }
@media print, (prefers-reduced-motion: reduce) {
  .xray .curtain { display: none; }
}""" % (RIGHT - LEFT + 4, SECONDS)

RECT = '<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d">%s</rect>'
ANSWER = '<circle class="answer" cx="%.1f" cy="%.1f" r="2.8"/>'
UNTRACED = '<tspan class="note" dx="8">(untraced: %s)</tspan>'
CURTAIN = ('<svg x="%d" y="%d" width="%d" height="%d"><g class="curtain">'
           '<rect class="paper" width="%d" height="%d"/><path class="cursor" d="M0 0V%d"/></g>'
           '</svg>')
HEADING = '<text class="name" x="%d" y="20">%s<tspan dx="10">%s%s</tspan></text>'

NOTES = ("From a real trace. Where no bar covers a lane, it runs, or is ready to run: a trace of calls cannot "
         "tell which. Each bar is one system call.",
         "Tracing slows what it watches, so look at the shapes.")
COMPARED = "Untraced: the same clients without it."


class Scale:
    """The time axis that the servers of a picture share, in seconds after the first client came."""

    def __init__(self, shots):
        self.longest = max(guest.end - shot.begin for shot in shots for guest in shot.guests)
        self.lead = min(LEAD_SHARE * self.longest, LEAD_SECONDS)
        self._pixels = (RIGHT - LEFT) / (self.longest + 2 * self.lead)

    def x(self, seconds):
        return LEFT + (seconds + self.lead) * self._pixels

    def ticks(self):
        """Milliseconds."""
        step = next(unit * factor for unit in (1, 10, 100, 1000, 10000) for factor in (1, 2, 5)
                    if self.longest * 1000 / (unit * factor) <= TICKS)
        return range(0, int(self.longest * 1000) + 1, step)


def draw(shots, plan, moving=False):
    """The picture. A moving one is replayed once by a cursor, and has no notes, so that it fits on a first
    screen."""
    scale = Scale(shots)
    blocks = [Block(shot, scale, len(shots) == 1, PLAIN_WIDTH if moving else 1) for shot in shots]
    key = legend(set().union(*(block.kinds for block in blocks)))
    title = textwrap.wrap(plan.of(shots)[:1].upper() + plan.of(shots)[1:], TITLE_LETTERS)
    above = 16 + 24 * len(title)
    top = above + (14 if moving else 26) + 24 * ((len(key) + 1) // 2)
    bottom = top + sum(block.height for block in blocks)
    notes = [] if moving else [*NOTES, *([COMPARED] if shots[0].plain else [])]
    notes = textwrap.wrap(" ".join(notes), NOTE_LETTERS)
    size = WIDTH, bottom + (44 if notes else 30) + 22 * len(notes)
    parts = [*head(shots, size, moving),
             *(text(MARGIN, 28 + 24 * number, line, "name") for number, line in enumerate(title))]
    for number, (mark, words) in enumerate(key):
        parts.append('<g transform="translate(%d %d)">%s%s</g>' % (
            MARGIN + number % 2 * 372, above + number // 2 * 24, mark, text(40, 14, words, "note")))
    for number, tick in enumerate(scale.ticks()):
        x = scale.x(tick / 1000)
        parts += ['<path class="grid" d="M%.1f %dV%d"/>' % (x, top, bottom + 4),
                  text(x, bottom + 20, "%d ms" % tick if tick == 0 else str(tick),
                       "note tick" + " odd" * (number % 2))]
    y, headings = top, []
    for block in blocks:
        parts += ['<g transform="translate(0 %d)">' % y, *block.parts, "</g>"]
        headings.append('<g transform="translate(0 %d)">%s</g>' % (y, block.heading))
        y += block.height
    if moving:
        parts.append(CURTAIN % (LEFT - 2, top, RIGHT - LEFT + 4, bottom - top, 2 * WIDTH, bottom,
                                bottom))
    parts += headings  # the curtain hides none
    parts += [text(MARGIN, bottom + 46 + 22 * number, line, "note")
              for number, line in enumerate(notes)]
    return "\n".join([*parts, "</svg>\n"])


def head(shots, size, moving):
    """The first lines of the picture: what it says to who cannot see it, and its style."""
    said = "; ".join("%s: %s" % (shot.name, outcome(shot)) for shot in shots)
    yield '<svg xmlns="http://www.w3.org/2000/svg" class="xray%s" viewBox="0 0 %d %d" role="img" aria-label="%s" width="%d" height="%d">' % (
        " alone" * (len(shots) == 1), *size, html.escape("What each waits for. %s" % said), *size)
    yield "<title>%s</title>" % html.escape(", ".join(shot.name for shot in shots))
    yield "<style>%s%s</style>" % (STYLE, MOVES if moving else "")
    yield '<rect class="paper" width="%d" height="%d" rx="8"/>' % size


class Block:
    """One server: what is drawn of it, from y 0 on."""

    def __init__(self, shot, scale, is_alone, least):
        """`least`: the width of a bar that is worth a line of the legend."""
        self._least = least
        self.parts, self.kinds = [], set()
        self._client, self._row, self._bar = (12, 24, 18) if is_alone else (7, 15, 12)
        self._begin = shot.begin - scale.lead
        self._end = max(guest.end for guest in shot.guests) + scale.lead
        self._x = lambda time: scale.x(min(max(time, self._begin), self._end) - shot.begin)
        watched = shot.watched.between(self._begin, self._end)
        self.heading = HEADING % (
            MARGIN, html.escape(shot.name), outcome(shot), UNTRACED % ms(shot.plain) if shot.plain else "")
        last = shot.guests[-1].name
        self.parts.append(text(LEFT - 8, 34 + self._client * len(shot.guests) / 2,
                               "client A" if last == "A" else "clients A\u2013%s" % last, "lane"))
        self.height = 30
        for guest in shot.guests:
            self._guest(guest, watched.clients)
        self.height += 5
        drawn, idle = divided(watched.lanes)
        for lane in drawn:
            self._lane(lane)
        if idle:
            self.parts.append(text(LEFT, self.height + self._bar, idle, "note"))
            self.height += self._row + 4
        self.height += 8

    def _guest(self, guest, clients):
        y = self.height + self._client / 2
        accepted = [each.accepted for each in clients if each.name == guest.name]
        until = next((time for time in accepted if guest.begin <= time <= guest.end), None)
        if until is None:  # never, if we can tell
            until = guest.end if any(each.name for each in clients) else guest.begin
        x, served, end = map(self._x, (guest.begin, until, guest.end))
        self.parts.append("<g><title>%s</title>%s%s%s</g>" % (
            "client %s: %s after %s, accepted after %s" % (
                guest.name, "status " + guest.how if guest.how.isdigit() else guest.how,
                ms(guest.end - guest.begin), ms(until - guest.begin)),
            path("client queued", x, y, served) if served - x > 1 else "",
            path("client", served, y, end), ANSWER % (end, y) if guest.how.startswith("2") else cross(end, y)))
        self.height += self._client

    def _lane(self, lane):
        x, end = self._x(lane.born), self._x(lane.died or self._end)
        self.parts += [text(LEFT - 8, self.height + self._bar / 2 + 4, lane.name, "lane"),
                       RECT % ("running", x, self.height, max(0.5, end - x), self._bar, "")]
        for bar in lane.bars:
            self._add(bar, self._x(bar.start), self._x(bar.end) - self._x(bar.start))
        self.height += self._row

    def _add(self, bar, x, width):
        if bar.kind is None or width < LEAST_WIDTH:
            return
        if width >= self._least:
            self.kinds.add(bar.kind)
        self.parts.append(RECT % (bar.kind, x, self.height, width, self._bar,
                                  "<title>%s</title>" % html.escape(tooltip(bar))))
        words = next((words for words in label(bar) if len(words) * LETTER + 4 < width), None)
        if words:
            self.parts.append(text(x + width / 2, self.height + self._bar / 2 + 3.5, words,
                                   "in " + bar.kind))


def divided(watched):
    """The lanes to draw; and words for the others, if there are any."""
    busy = [lane for lane in watched if not is_idle(lane)]
    few = len(watched) - len(busy)
    return (busy, "and %d more, which had nothing to do with these clients" % few) if few > MOST_IDLE else (
        watched, "")


def is_idle(lane):
    return all(bar.kind in (None, OTHERS, NAP) and not bar.serves and bar.thing.kind not in (ARRIVAL, REDIS)
               for bar in lane.bars)


# ---- words ----------------------------------------------------------------------------------


def ms(seconds):
    if seconds < 0.001:
        return "%.0f \u00b5s" % (1e6 * seconds)
    return "%.*f ms" % (0 if seconds >= 0.01 else 1, 1000 * seconds)


def outcome(shot):
    good = sum(guest.how == "200" for guest in shot.guests)
    few = "%d of %d answered" % (good, len(shot.guests)) if good < len(shot.guests) else ""
    return ", ".join(filter(None, [shot.total and ms(shot.total), few]))


def tooltip(bar):
    call = str(bar.call)
    if len(call) > CALL_LETTERS:
        call = "%s\u2026 %s" % (call[:CALL_LETTERS], bar.call.outcome)
    return "%s\n%s\n%s" % (call, lanes.awaited(bar), ms(bar.end - bar.start))


def label(bar):
    """What may stand in a bar, the longest first."""
    word = {REDIS: "Redis", BYTES: "bytes", ROOM: "room"}.get(bar.kind, bar.call.name)
    clients = "".join(sorted(each.name for each in bar.serves if each.name))
    if bar.kind in (ARRIVAL, OTHERS, NAP, UNKNOWN) or not clients:
        return [word, word.rstrip("4")]
    clients = clients if len(clients) <= 4 else "%s\u2013%s" % (clients[0], clients[-1])
    return ["%s, for %s" % (word, clients), clients]


def legend(kinds):
    """(mark, words) of everything that occurs."""
    client = path("client queued", 0, 10, 12) + path("client", 12, 10, 28) + ANSWER % (28, 10)
    bars = [each for each in lanes.WORDS.items() if each[0] in kinds]
    return [(client, "client: queued, served, answered"), *(
        (RECT % (kind, 0, 3, 30, 14, ""), words)
        for kind, words in [*bars, ("running", "running, or ready to run")])]


def text(x, y, words, kind):
    return '<text class="%s" x="%.1f" y="%.1f">%s</text>' % (kind, x, y, html.escape(words))


def path(kind, x, y, until):
    return '<path class="%s" d="M%.1f %.1fH%.1f"/>' % (kind, x, y, until)


def cross(x, y):
    return '<path class="bad" d="M%.1f %.1fl8 8m0-8l-8 8"/>' % (x - 4, y - 4)
