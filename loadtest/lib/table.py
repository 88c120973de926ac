"""table: Markdown that is also a table before it is rendered."""


def markdown(header, rows):
    """The table as text. Its first column holds names, to the left; the others figures, to the
    right. Every cell is a string."""
    rows = [[cell.replace("|", r"\|") for cell in row] for row in [header, *rows]]
    widths = [max(3, *map(len, column)) for column in zip(*rows)]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, _rule(widths))
    return "\n".join(lines)


def _line(row, widths):
    first = row[0].ljust(widths[0])
    others = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
    return "| %s |" % " | ".join([first, *others])


def _rule(widths):
    """The line below the header; a colon says to which side a column goes."""
    first = ":" + "-" * (widths[0] - 1)
    others = ["-" * (width - 1) + ":" for width in widths[1:]]
    return "| %s |" % " | ".join([first, *others])


class Notes:
    """Footnotes, numbered as they come. The same words get the same number."""

    def __init__(self):
        self._texts = []

    def mark(self, text):
        """Takes a note; returns what to put behind the figure that it is about."""
        if text not in self._texts:
            self._texts.append(text)
        return "(%d)" % (self._texts.index(text) + 1)

    def lines(self):
        """The notes, as a list to put below the table."""
        return ["(%d) %s" % (number, text) for number, text in enumerate(self._texts, 1)]
