"""report: the results of a run, as one page for a browser and as Markdown, from the same rows.

    report = Report("compare", "How many pages a second does each of the seven serve?")
    report.add_text("Where many wait at once, ...")
    report.add_table(header, rows, "Requests a second")
    report.add_chart(chart.lines(...))
    report.add_environment([("kernel", "Linux 6.1"), ...])
    report.html(), report.markdown()

Texts, tables and charts stay in the order in which they come. The page is one file: it asks for nothing, and
prints. It is well-formed XML, too. What is raw lies beside it.
"""

import html
import os
import re

from lib.reporting import table

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
    """Every cell of a table is a string."""

    def __init__(self, title, question):
        self._title = title
        self._question = question
        self._page = []  # HTML, in order
        self._text = []  # Markdown, in order
        self.pictures = []  # the charts, as SVG

    def add_text(self, paragraph):
        """Text between `backquotes` is code."""
        self._page.append("<p>%s</p>" % prose(paragraph))
        self._text.append(paragraph)

    def add_list(self, texts):
        if texts:
            self._page.append('<ul class="notes">\n%s\n</ul>' % "\n".join("<li>%s</li>" % prose(text) for text in texts))
            self._text.append("\n".join("- " + text for text in texts))

    def add_html(self, markup):
        """What only the page has."""
        self._page.append(markup)

    def add_table(self, header, rows, caption=""):
        """The same text in both. What is too wide for a screen scrolls by itself, also with the keyboard."""
        lines = ["<tr><th>%s</th>%s</tr>" % (cell(row[0]), "".join("<%s>%s</%s>" % (tag, cell(each), tag) for each in row[1:]))
                 for row, tag in [(header, "th"), *((row, "td") for row in rows)]]
        self._page.append('<p class="caption">%s</p>\n<div class="wide" tabindex="0"><table>\n%s\n</table></div>' % (
            html.escape(caption), "\n".join(lines)))
        self._text += ([caption + ":"] if caption else []) + [table.markdown(header, rows)]

    def add_chart(self, svg):
        """A picture, beside the table of its figures. If there is none, a line says why."""
        self.pictures += [svg] if svg else []
        self._page.append('<figure class="chart wide" tabindex="0">\n%s</figure>' % svg if svg else
                          "<p>No chart: there is no gnuplot, which <code>make deps</code> brings, or no figure.</p>")

    def add_environment(self, pairs):
        """(name, value) pairs that a reader needs to judge the figures; and where the raw figures are. Last."""
        self._page.append('<h2>Fine print</h2>\n<p>Every raw figure is in <a href="./">this page\'s folder</a>.</p>\n'
                          '<dl>\n%s\n</dl>' % "\n".join("<dt>%s</dt><dd>%s</dd>" % (
                              html.escape(name), html.escape(str(value))) for name, value in pairs))

    def html(self):
        with open(STYLE, encoding="utf-8") as style:
            return PAGE % {"title": html.escape(self._title), "parts": "\n".join(self._page),
                           "question": prose(self._question), "style": style.read()}

    def markdown(self):
        """Texts, tables and notes, for the terminal and for a README."""
        return "\n\n".join(self._text)


def cell(text):
    """As HTML. Where there is little room, an interval has a line of its own, and who was full has one for all columns."""
    return re.sub(r"(?<=[≥=/]) | (?=/)", "\N{NO-BREAK SPACE}", re.sub(r"(\[.+\])", r"<small>\1</small>", html.escape(text)))


def prose(text):
    """As HTML; text between `backquotes` is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text))
