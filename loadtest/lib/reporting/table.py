"""table: rows of text, as Markdown that is also a table before it is rendered."""

AT_LEAST = "≥ "  # before a rate that the load generator has limited


def count(number):
    """A number as text: 12,346."""
    return format(round(number), ",")


def two_digits(value):
    """At least: 0.12, 9.1, 12, 1,234."""
    return count(value) if value >= 9.95 else "%.1f" % value if value >= 0.995 or not value else "%.2f" % value


def markdown(header, rows):
    """The table as text. Its first column holds names, aligned to the left. The others hold
    figures, aligned to the right, as a colon in the line below the header says. Every cell is a string."""
    rows = [[cell.replace("|", r"\|") for cell in row] for row in [header, *rows]]
    first, *others = [max(3, *map(len, column)) for column in zip(*rows)]
    rows = [[row[0].ljust(first), *map(str.rjust, row[1:], others)] for row in rows]
    rows.insert(1, [":" + "-" * (first - 1), *("-" * (width - 1) + ":" for width in others)])
    return "\n".join("| %s |" % " | ".join(row) for row in rows)
