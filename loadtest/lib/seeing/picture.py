"""picture: swim lanes as SVG, still or replayed by a cursor; and as trace events.

One time axis for all servers of a picture. Each has its name and its total, a thin line for each
client, and a lane for each process or thread, with a bar for each call that waited. If more than a
few threads had nothing to do with the clients, they are counted instead of drawn. On a narrow screen (the width of the picture, where it is an <img>) letters grow, and what is small is left out.
"""

import html
import json
import os
import textwrap

from lib.seeing import lanes
from lib.seeing.lanes import ARRIVAL, BYTES, NAP, OTHERS, REDIS, ROOM, SEVERAL, UNKNOWN

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
  .xray tspan { animation: none !important; }
}"""
TOTAL = ' style="animation: total-%d %ds step-end"'
TOTAL_MOVES = "\n@keyframes total-%d { from, %.1f%% { opacity: 0; } %.1f%%, to { opacity: 1; } }"

RECT = '<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d">%s</rect>'
ANSWER = '<circle class="answer" cx="%.1f" cy="%.1f" r="2.8"/>'
UNTRACED = '<tspan class="note" dx="8">(untraced: %s)</tspan>'
CURTAIN = ('<svg x="%d" y="%d" width="%d" height="%d"><g class="curtain">'
           '<rect class="paper" width="%d" height="%d"/><path class="cursor" d="M0 0V%d"/></g>'
           '</svg>')
HEADING = '<text class="name" x="%d" y="20">%s<tspan dx="10"%s>%s%s</tspan></text>'

NOTES = ("From a real trace: a bar is one system call. Between two of them a thread is running, or "
         "ready and waiting for a core; a trace of calls cannot tell which.",
         "Tracing slows what it watches, so look at the shapes.")
COMPARED = "Untraced: the same clients without it."


class Scale:
    """The time axis that the servers of a picture share, in seconds after the first client came."""

    def __init__(self, shots):
        self.longest = max(span.end - shot.begin for shot in shots for guest in shot.guests
                           for span in guest.spans)
        self.lead = min(LEAD_SHARE * self.longest, LEAD_SECONDS)
        self._pixels = (RIGHT - LEFT) / (self.longest + 2 * self.lead)

    def x(self, seconds):
        return LEFT + (seconds + self.lead) * self._pixels

    def ticks(self):
        """Milliseconds."""
        step = next(unit * factor for unit in (1, 10, 100, 1000, 10000) for factor in (1, 2, 5)
                    if self.longest * 1000 / (unit * factor) <= TICKS)
        return range(0, int(self.longest * 1000) + 1, step)


def draw(shots, plan, moving=False, style=True):
    """The picture. Without `style`, for a page that has STYLE already. A moving one is replayed once
    by a cursor, and has no notes, so that it fits on a first screen."""
    scale = Scale(shots)
    blocks = [Block(shot, scale, len(shots) == 1, number if moving else None)
              for number, shot in enumerate(shots)]
    key = legend(set().union(*(block.kinds for block in blocks)))
    title = textwrap.wrap(str(plan)[:1].upper() + str(plan)[1:], TITLE_LETTERS)
    above = 16 + 24 * len(title)
    top = above + (14 if moving else 26) + 24 * ((len(key) + 1) // 2)
    bottom = top + sum(block.height for block in blocks)
    notes = [] if moving else [*NOTES, *([COMPARED] if shots[0].plain else [])]
    notes = textwrap.wrap(" ".join(notes), NOTE_LETTERS)
    size = WIDTH, bottom + (44 if notes else 30) + 22 * len(notes)
    parts = [*head(shots, scale, size, moving, style),
             *(text(MARGIN, 28 + 24 * number, line, "name") for number, line in enumerate(title))]
    for number, (mark, words) in enumerate(key):
        parts.append('<g transform="translate(%d %d)">%s%s</g>' % (
            MARGIN + number % 2 * 372, above + number // 2 * 24, mark, text(40, 14, words, "note")))
    for number, tick in enumerate(scale.ticks()):
        x = scale.x(tick / 1000)
        parts += ['<path class="grid" d="M%.1f %dV%d"/>' % (x, top, bottom + 4),
                  text(x, bottom + 20, "%d ms" % tick if tick == 0 else str(tick),
                       "note tick" + " odd" * (number % 2))]
    y = top
    for block in blocks:
        parts += ['<g transform="translate(0 %d)">' % y, *block.parts, "</g>"]
        y += block.height
    if moving:
        parts.append(CURTAIN % (LEFT - 2, top, RIGHT - LEFT + 4, bottom - top, 2 * WIDTH, bottom,
                                bottom))
    parts += [text(MARGIN, bottom + 46 + 22 * number, line, "note")
              for number, line in enumerate(notes)]
    return "\n".join([*parts, "</svg>\n"])


def head(shots, scale, size, moving, style):
    """The first lines of the picture: what it says to who cannot see it, and its style."""
    said = "; ".join("%s: %s" % (shot.name, outcome(shot)) for shot in shots)
    yield '<svg xmlns="http://www.w3.org/2000/svg" class="xray" viewBox="0 0 %d %d" role="img" aria-label="%s"%s>' % (
        *size, html.escape("What each waits for. %s" % said), ' width="%d" height="%d"' % size if style else "")
    yield "<title>%s</title>" % html.escape(", ".join(shot.name for shot in shots))
    if style:
        yield "<style>%s%s</style>" % (STYLE, moves(shots, scale) if moving else "")
    yield '<rect class="paper" width="%d" height="%d" rx="8"/>' % size


class Block:
    """One server: what is drawn of it, from y 0 on."""

    def __init__(self, shot, scale, is_alone, number):
        """`number`: in a moving picture, of the animation that shows its total; else None."""
        self._least = 1 if number is None else PLAIN_WIDTH
        self.parts, self.kinds = [], set()
        self._client, self._row, self._bar = (12, 24, 18) if is_alone else (7, 15, 12)
        self._begin = shot.begin - scale.lead
        self._end = max(span.end for guest in shot.guests for span in guest.spans) + scale.lead
        self._x = lambda time: scale.x(min(max(time, self._begin), self._end) - shot.begin)
        watched = shot.watched.between(self._begin, self._end)
        self.parts.append(HEADING % (
            MARGIN, html.escape(shot.name), "" if number is None else TOTAL % (number, SECONDS),
            outcome(shot), UNTRACED % ms(shot.plain) if shot.plain else ""))
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
        for span in guest.spans:
            accepted = [each.accepted for each in clients if each.name == guest.name]
            until = next((time for time in accepted if span.begin <= time <= span.end), None)
            if until is None:  # it was accepted before; or never, if we can tell
                unknown = accepted or not any(each.name for each in clients)
                until = span.begin if unknown else span.end
            x, served, end = map(self._x, (span.begin, until, span.end))
            good = span.how.startswith("2")
            self.parts.append("<g><title>%s</title>%s%s%s</g>" % (
                "client %s: %s after %s, accepted after %s" % (
                    guest.name, "status " + span.how if span.how.isdigit() else span.how,
                    ms(span.end - span.begin), ms(until - span.begin)),
                path("client queued", x, y, served) if served - x > 1 else "",
                path("client", served, y, end), ANSWER % (end, y) if good else cross(end, y)))
        self.height += self._client

    def _lane(self, lane):
        x, end = self._x(lane.born), self._x(lane.died or self._end)
        self.parts += [text(LEFT - 8, self.height + self._bar / 2 + 4, lane.name, "lane"),
                       RECT % ("running", x, self.height, max(0.5, end - x), self._bar, "")]
        for bar in lane.bars:
            self._add(bar, self._x(bar.start), self._x(bar.end) - self._x(bar.start))
        if lane.how.startswith("killed"):
            self.parts.append(cross(end, self.height + self._bar / 2))
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


# ---- in a terminal --------------------------------------------------------------------------

LETTERS = {ARRIVAL: "_", REDIS: "R", SEVERAL: "*", OTHERS: ".", BYTES: "b", ROOM: "r", NAP: ".", UNKNOWN: "?"}
KEY = ("R waits for Redis, * for clients and Redis in one call, b for a client's bytes, r for room, "
       "_ for a new client, . for another thread or a time, # runs")
COLUMNS = 64


def in_letters(shot):
    """The lanes as lines: a letter for each slice of the time, for what the thread did in its middle."""
    step = shot.total / COLUMNS
    drawn, idle = divided(shot.watched.between(shot.begin, shot.begin + shot.total).lanes)

    def letter(lane, time):
        if time < lane.born or lane.died and time > lane.died:
            return " "
        return next((LETTERS[bar.kind] for bar in lane.bars if bar.kind and bar.start <= time < bar.end), "#")

    return ["%20s  %s" % (lane.name[-20:], "".join(letter(lane, shot.begin + (at + 0.5) * step)
                                                   for at in range(COLUMNS))) for lane in drawn] + [
        " " * 22 + each for each in [*filter(None, [idle]), *textwrap.wrap(KEY, COLUMNS)]]


# ---- words ----------------------------------------------------------------------------------


def ms(seconds):
    if seconds < 0.001:
        return "%.0f \u00b5s" % (1e6 * seconds)
    return "%.*f ms" % (0 if seconds >= 0.01 else 1, 1000 * seconds)


def outcome(shot):
    good = sum(all(span.how == "200" for span in guest.spans) for guest in shot.guests)
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


def moves(shots, scale):
    """The cursor, and for each total the moment when it is known, in percent."""
    each = [100 * (shot.total + scale.lead) / (scale.longest + 2 * scale.lead) for shot in shots]
    return MOVES % (RIGHT - LEFT + 4, SECONDS) + "".join(
        TOTAL_MOVES % (number, percent, percent + 0.1) for number, percent in enumerate(each))


# ---- for Perfetto, and Chrome's own viewer --------------------------------------------------


def trace_events(shots):
    """The Trace Event Format, as JSON: all servers from the moment when their clients came."""
    events = []

    def name(what, pid, tid, words):
        for field, value in (("name", words), ("sort_index", tid if what == "thread" else pid)):
            events.append({"name": "%s_%s" % (what, field), "ph": "M", "pid": pid, "tid": tid,
                           "args": {field: value}})

    def add(words, kind, pid, tid, begin, end, shot, **details):
        events.append({"name": words, "cat": kind, "ph": "X", "pid": pid, "tid": tid,
                       "ts": round(1e6 * (begin - shot.begin + LEAD_SECONDS)),
                       "dur": round(1e6 * (end - begin)), "args": details})

    for number, shot in enumerate(shots, 1):
        crowd = 1000 * number  # a process for the clients, and from here on those of the server
        name("process", crowd, 0, "%s: clients" % shot.name)
        for tid, guest in enumerate(shot.guests):
            name("thread", crowd, tid, "client " + guest.name)
            for span in guest.spans:
                add(span.how, "client", crowd, tid, span.begin, span.end, shot)
        end = max(span.end for guest in shot.guests for span in guest.spans) + LEAD_SECONDS
        pids = {}
        for tid, lane in enumerate(shot.watched.between(shot.begin - LEAD_SECONDS, end).lanes):
            if lane.pid not in pids:
                pids[lane.pid] = crowd + 1 + len(pids)
                name("process", pids[lane.pid], tid, "%s: %s" % (shot.name, lane.name))
            name("thread", pids[lane.pid], tid, lane.name)
            for bar in lane.bars:
                add(bar.call.name, bar.kind or "no wait", pids[lane.pid], tid, bar.start, bar.end,
                    shot, call=str(bar.call), waits=lanes.awaited(bar), thread=lane.tid)
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, separators=(",", ":"))
