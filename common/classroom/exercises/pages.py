"""pages: what is done, for a browser: by a learner, and by a class.

Both are a lib.report, and share its style. Nothing is checked here.
"""

import html
import itertools
import os
import sys
import urllib.parse

import exercises

sys.path.insert(0, os.path.join(exercises.TOP, "loadtest"))

from lib.reporting.report import Report, prose
from words import how_many

MARKS = {"passed": "✓", "not yet": "✗", "does not compile": "C", "over the limit": "L", "skipped": "S",
         "not checked": "?"}
NOTHING = "–"

TASKS = """<table class="tasks">
<thead><tr><th scope="col" class="words">exercise</th><th scope="col" class="words">difficulty</th>\
<th scope="col" class="words">progress</th></tr></thead>
<tbody>
%s
</tbody>
</table>"""
TASK = """<tr><th scope="row" class="words">%s<br><code>%s</code></th>
<td class="words"><span role="img" aria-label="%d of 3 stars">%s</span><br>%d min</td>
<td class="words long">%s</td></tr>"""


def write(path, text):
    """Says where it is, but not to a program that reads what else is printed."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    print(os.path.relpath(path), file=sys.stderr)


def of_learner(known, folder):
    """The page of a learner, which will lie in that folder."""
    done = sum(each.state() == "done" for each in known)
    report = Report("Exercises", "%d of %d are done." % (done, len(known)))
    waiting = exercises.following(known)
    if waiting:
        report.add_html("<h2>Next</h2>\n<p>%s. To begin, or to check it again, type "
                        "<code>make exercise EX=%s</code>.</p>" % (link(waiting, folder), waiting.key))
    for _, chapter in itertools.groupby(known, lambda each: each.chapter):
        chapter = list(chapter)
        report.add_html("<h2>%s, %d of %d done</h2>" % (
            exercises.chapter_title(chapter[0]), sum(each.state() == "done" for each in chapter),
            len(chapter)))
        report.add_html(TASKS % "\n".join(row(each, folder) for each in chapter))
    return report.html()


def row(exercise, folder):
    heading = exercise.heading()
    return TASK % (link(exercise, folder), exercise.key, heading.stars,
                   "★" * heading.stars + "☆" * (3 - heading.stars), heading.minutes, how_far(exercise))


def link(exercise, folder):
    """The title, which leads to the task; to the book's page if there is one, whose hints are folded."""
    page = os.path.join(folder, "book", exercise.task[:-len("md")] + "html")
    task = page if os.path.exists(page) else exercise.at(exercise.task)
    return '<a href="%s">%s</a>' % (urllib.parse.quote(os.path.relpath(task, folder)),
                                    prose(exercise.heading().title))


def how_far(exercise):
    if exercise.state() == "done":
        return "<strong>Done.</strong> " + prose(exercise.lesson())
    if exercise.missed():
        return "<strong>Fails.</strong> Expected: " + html.escape(exercise.missed())
    return "<strong>Begun.</strong> Not checked since you changed it." if exercise.state() else "Not begun"


def of_class(known, work, results, log):
    """The page of a class: students by exercises. `results` has a dict for each pair of them: the
    outcome, and how many of its expectations held. `log` gives the address of what a check said."""
    outcomes = {pair: each["outcome"] for pair, each in results.items()}
    handed = {key for _, key in outcomes}
    keys = [each.key for each in known if each.key in handed]
    passed = [pair for pair, outcome in outcomes.items() if outcome == "passed"]
    total = "%d of %d" % (len(passed), len(outcomes))
    report = Report("What students have handed in", "%s, %s passed." % (how_many(len(work), "student"), total))
    report.add_html('<div class="wide" tabindex="0" role="region" aria-label="students by exercises">\n'
                    '<table class="class">')
    report.add_html("<thead>%s</thead>\n<tbody>" % line("col", "student", keys, "passed"))
    for one in work:
        report.add_html(line("row", one.student, [
            cell(results.get((one.student, key)), one.student, key, log) for key in keys],
            "%d of %d" % (sum(student == one.student for student, _ in passed), len(one.sources))))
    report.add_html("</tbody>\n<tfoot>%s</tfoot>\n</table>\n</div>" % line(
        "row", "passed", ["%d" % sum(each == key for _, each in passed) for key in keys], total))
    report.add_text("A mark leads to what the check said: %s. ✗ 7/9: seven of nine expectations held. "
                    "%s: nothing handed in." % (
        ", ".join("%s %s" % (mark, outcome) for outcome, mark in MARKS.items()), NOTHING))
    notes = ["<li>%s</li>" % html.escape("%s: %s" % (one.student, note))
             for one in work for note in one.notes]
    report.add_html("<ul>%s</ul>" % "\n".join(notes) if notes else "")
    return report.html()


def line(scope, name, cells, total):
    """A row; in the header, all of its cells are names."""
    tag = 'th scope="col"' if scope == "col" else "td"
    return '<tr><th scope="%s" class="words">%s</th>%s</tr>' % (scope, html.escape(name), "".join(
        "<%s>%s</%s>" % (tag, each, tag[:2]) for each in [*cells, total]))


def in_words(result):
    """As "not yet, 7 of 9": so many expectations held before one did not."""
    if not result:
        return NOTHING
    share = ", %(held)d of %(of)d" % result if is_partial(result) else ""
    return result["outcome"] + share


def is_partial(result):
    return "held" in result and result["outcome"] != "passed"


def cell(result, student, key, log):
    if not result:
        return NOTHING
    share = " %(held)d/%(of)d" % result if is_partial(result) else ""
    return '<a href="%s" title="%s" aria-label="%s">%s</a>' % (
        urllib.parse.quote(log(student, key)), in_words(result), in_words(result),
        MARKS.get(result["outcome"], "?") + share)
