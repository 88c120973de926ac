"""report: the results of a run, as one page for a browser and as Markdown, from the same rows.

    report = Report("compare", "How many pages a second does each of the seven serve?")
    report.add_text("Where many wait at once, ...")
    report.add_table(header, rows, "Requests a second", notes)
    report.add_chart(chart.bars(...), "Requests a second", header, rows)
    report.add_raw("cells.tsv", header, rows)
    report.add_environment([("kernel", "Linux 6.1"), ...])
    report.html(), report.markdown()

Texts, tables and charts stay in the order in which they come. What is raw comes last, one click
away. The page is one file: it asks for nothing, and prints. It is well-formed XML, too.
"""

import html
import os
import re

from lib.reporting import gnuplot, table

STYLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.css")

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>%(title)s</title>
<link rel="icon" href="data:,"/>
<style>
%(style)s</style>
</head>
<body>
<main>
<h1>%(title)s</h1>
<p class="question">%(question)s</p>
%(parts)s
</main>
</body>
</html>
"""


class Report:
    """Every cell of a table is a string; one may end with marks of notes, as "1,234 (1)"."""

    def __init__(self, title, question):
        self._title = title
        self._question = question
        self._page = []  # HTML, in order
        self._text = []  # Markdown, in order
        self._last = []  # HTML for the end of the page
        self.pictures = []  # the charts, as SVG
        self._tables = 0

    def add_text(self, paragraph):
        """Text between `backquotes` is code."""
        self._page.append("<p>%s</p>" % prose(paragraph))
        self._text.append(paragraph)

    def add_html(self, markup):
        """What only the page has."""
        self._page.append(markup)

    def add_table(self, header, rows, caption="", notes=None):
        """A table, and below it the notes (table.Notes) that its cells refer to."""
        used = table.marked([header, *rows])
        below = [(number, text) for number, text in notes.numbered() if number in used] \
            if notes else []
        self._tables += 1
        prefix = "note-%d-" % self._tables

        def link(number):
            if number not in dict(below):
                return " (%d)" % number
            return ' <a class="mark" href="#%s%d" title="%s">(%d)</a>' % (
                prefix, number, html.escape(dict(below)[number]), number)

        self._page.append(_scrolling(table.as_html(header, rows, link), caption, True))
        if below:
            self._page.append('<ol class="notes">\n%s\n</ol>' % "\n".join(
                '<li id="%s%d" value="%d">%s</li>' % (prefix, number, number, prose(text))
                for number, text in below))
        self._text += ([caption + ":"] if caption else []) + [table.markdown(header, rows)]
        if below:
            self._text.append("\n".join("- (%d) %s" % note for note in below))

    def add_chart(self, svg, caption, header, rows):
        """A picture, with its figures as a closed table below it. If there is no picture (None, as
        lib.chart says), a line says why, and the table is open."""
        self.pictures += [svg] if svg else []
        picture = '<div class="chart">\n%s</div>' % svg if svg else (
            "<p>%s</p>" % why_no_picture())
        figures = _details("The figures of this chart", table.as_html(header, rows), not svg)
        self._page.append('<figure>\n%s\n<figcaption>%s</figcaption>\n%s\n</figure>' % (
            picture, prose(caption), figures))

    def add_raw(self, name, header, rows):
        """Rows as they were measured, of any values."""
        rows = [["" if cell is None else str(cell) for cell in row] for row in rows]
        self._last.append(_details("%s: %s rows" % (name, format(len(rows), ",")),
                                   table.as_html(header, rows)))

    def add_environment(self, pairs):
        """(name, value) pairs that a reader needs to judge the figures."""
        self._last.append(_details("environment.txt", '<dl>\n%s\n</dl>' % "\n".join(
            "<dt>%s</dt><dd>%s</dd>" % (html.escape(name), html.escape(str(value)))
            for name, value in pairs)))

    def html(self):
        parts = self._page + (["<h2>Fine print</h2>"] if self._last else []) + self._last
        with open(STYLE, encoding="utf-8") as style:
            return PAGE % {"title": html.escape(self._title), "parts": "\n".join(parts),
                           "question": prose(self._question), "style": style.read()}

    def markdown(self):
        """Texts, tables and notes, for the terminal and for a README."""
        return "\n\n".join(self._text)


def why_no_picture():
    if gnuplot.available():
        return "No chart: there is no figure to draw."
    return "No chart: gnuplot is not installed. <code>make deps</code> brings it."


def prose(text):
    """As HTML; text between `backquotes` is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _scrolling(inside, name, shown=False):
    """Content that is too wide for a phone scrolls by itself, also with the keyboard."""
    above = '<p class="caption">%s</p>\n' % html.escape(name) if shown and name else ""
    return '%s<div class="wide" tabindex="0" role="region" aria-label="%s">\n%s\n</div>' % (
        above, html.escape(name or "table"), inside)


def _details(summary, inside, is_open=False):
    return "<details%s><summary>%s</summary>\n%s\n</details>" % (
        ' open=""' if is_open else "", html.escape(summary), _scrolling(inside, summary))
