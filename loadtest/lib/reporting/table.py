"""table: rows of text, as Markdown that is also a table before it is rendered, and as HTML."""

import html
import re

FIGURE = re.compile(r"(≥ )?[-+]?[\d.][\d,.]*( ?(%|ms|s|kB|KiB|MiB|x))?( [*]| \(\d+\)| \[.*\])*|-( .*)?")
LONG = 40  # letters
AT_LEAST = "≥ "  # before a rate that the load generator has limited
MARKS = re.compile(r"(?: \(\d+\))+$")  # at the end of a cell, as Notes.mark() gives them


def count(number):
    """A number as text: 12,346."""
    return format(round(number), ",")


def median(form, spread):
    """The median of a rounds.Spread, or a dash if there is none."""
    return form % spread.median if spread else "-"


def raw_row(columns, figures):
    """A text for each of the columns of a .tsv; empty where there is no figure."""
    return ["" if figures.get(column) is None else str(figures[column]).replace("\t", " ")
            for column in columns]


def markdown(header, rows):
    """The table as text. Its first column holds names, aligned to the left. The others hold
    figures, aligned to the right, as a colon in the line below the header says. Every cell is a string."""
    rows = [[cell.replace("|", r"\|") for cell in row] for row in [header, *rows]]
    first, *others = [max(3, *map(len, column)) for column in zip(*rows)]
    rows = [[row[0].ljust(first), *map(str.rjust, row[1:], others)] for row in rows]
    rows.insert(1, [":" + "-" * (first - 1), *("-" * (width - 1) + ":" for width in others)])
    return "\n".join("| %s |" % " | ".join(row) for row in rows)


def as_html(header, rows, link=None):
    """The same rows as a <table>. Its first column names the row; figures stand to the right, a
    column of words to the left. `link` turns the mark of a note, (1), into HTML of its own."""
    columns = list(zip(*rows)) or [()] * len(header)
    kinds = [' class="words"', *map(_kind, columns[1:])]

    def cells(row, tags):
        return "".join("<%s%s>%s</%s>" % (
            tag, kind or ' class="least"' * text.startswith(AT_LEAST), _cell(text, link), tag.split()[0])
                       for tag, kind, text in zip(tags, kinds, row))

    head = cells(header, ['th scope="col"'] * len(header))
    body = [cells(row, ['th scope="row"'] + ["td"] * len(row)) for row in rows]
    return "\n".join(["<table>", "<thead><tr>%s</tr></thead>" % head, "<tbody>",
                      *("<tr>%s</tr>" % row for row in body), "</tbody>", "</table>"])


def _kind(column):
    """The class of a column's cells: none for figures, or words, or sentences, which may be
    broken."""
    if all(FIGURE.fullmatch(cell) for cell in column if cell):
        return ""
    return ' class="words%s"' % (" long" if max(map(len, column)) > LONG else "")


def _cell(text, link):
    marks = MARKS.search(text) if link else None
    if not marks:
        return html.escape(text)
    return html.escape(text[:marks.start()]) + re.sub(
        r" \((\d+)\)", lambda mark: link(int(mark.group(1))), marks.group())


def marked(rows):
    """The numbers of the notes that cells of these rows refer to."""
    return {int(number) for row in rows for cell in row
            for marks in MARKS.findall(cell) for number in re.findall(r"\d+", marks)}


class Notes:
    """Footnotes, numbered as they come. The same words get the same number."""

    def __init__(self):
        self._texts = []

    def mark(self, text):
        """Adds a note, and returns the mark to put behind its figure."""
        if text not in self._texts:
            self._texts.append(text)
        return "(%d)" % (self._texts.index(text) + 1)

    def marks(self, texts):
        """The same for several notes, each once."""
        return "".join(" " + self.mark(text) for text in dict.fromkeys(texts))

    def numbered(self):
        return list(enumerate(self._texts, 1))
