"""score: from what every case came to, the points, and how they are shown.

    points of a section = its points, times the share of its cases that passed

rounded down to a tenth, so that only a server that passes all gets all. What could not be tried
here, because this machine lacks something, does not count. The section "is it this model" has a
rule of its own: see models.
"""

import itertools
import json
import math
import textwrap
from collections import namedtuple

import places  # noqa: F401  (finds words)
from words import printable

Row = namedtuple("Row", "section case outcome evidence read")  # outcome: as in suite
SectionScore = namedtuple("SectionScore", "name points of passed cases skipped")

SHOWN = ["section", "case", "evidence", "read"]  # of a failure
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
INDENT = "      "


def floor(points):
    """To a tenth. A hair is added first: 25 * 23 / 25 may be a little less than 23."""
    return math.floor(points * 10 + 1e-6) / 10


def shared(section, rows, points=None):
    """The SectionScore of its rows: shared equally, if there is no rule that says otherwise."""
    tried = [row for row in rows if row.outcome != SKIPPED]
    passed = sum(row.outcome == PASSED for row in tried)
    if points is None:
        points = section.points * passed / len(tried) if tried else 0
    return SectionScore(section.name, floor(points), section.points, passed, len(tried),
                        len(rows) - len(tried))


class Grade:
    lanes = None  # the file of a picture, if there is one
    programs = ()  # the files that were executed and served
    missing = ()  # what this machine did not protect us from, in words

    def __init__(self, server, model, sections, rows, seed):
        self.seed = seed
        self.server = server
        self.model = model
        self.sections = sections
        self.failures = [row for row in rows if row.outcome == FAILED]
        self.points = floor(sum(section.points for section in sections))
        self.of = sum(section.of for section in sections)

    def to_json(self):
        return json.dumps({
            "server": self.server, "model": self.model, "points": self.points, "of": self.of,
            "seed": self.seed, "lanes": self.lanes, "programs": list(self.programs),
            "missing": list(self.missing),
            "sections": [section._asdict() for section in self.sections],
            "failures": [{name: getattr(failure, name) for name in SHOWN}
                         for failure in self.failures]}, indent=1)

    def to_text(self):
        lines = ["%s, as %s: %s of %d points" % (self.server, self.model, tidy(self.points),
                                                 self.of), ""]
        for each in self.sections:
            skipped = ", %d could not be tried here" % each.skipped if each.skipped else ""
            lines.append("  %-17s %5s of %2d   %d of %d cases%s" % (
                each.name, tidy(each.points), each.of, each.passed, each.cases, skipped))
        lines += ["", "The scenes had the seed %d." % self.seed]
        if self.programs:
            lines.append("What served: %s" % ", ".join(self.programs))
        if self.lanes:
            lines.append("What its processes and threads waited for: %s" % self.lanes)
        section = None
        for (named, evidence), alike in itertools.groupby(
                self.failures, lambda failure: (failure.section, failure.evidence)):
            alike = list(alike)
            if named != section:
                section = named
                lines += ["", section]
            lines += ["", *("  %s" % failure.case for failure in alike), *indented(evidence),
                      *(INDENT + "Read %s" % read
                        for read in dict.fromkeys(failure.read for failure in alike))]
        return printable("\n".join(lines))  # much of it has the server said


def tidy(points):
    """20, 19.6"""
    return "%d" % points if points == int(points) else "%.1f" % points


def indented(text):
    return [piece for line in text.splitlines()
            for piece in textwrap.wrap(line, 96, initial_indent=INDENT,
                                       subsequent_indent=INDENT + "  ") or [""]]
