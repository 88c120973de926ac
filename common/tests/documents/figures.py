#!/usr/bin/env python3
"""figures: the tables of the documents, and the numbers in their text, come from stored runs.

    common/tests/documents/figures.py        fills the tables in, as `make tables` does

A run is a folder of loadtest/results/. Its table.md holds the cells; nothing is measured here. To
name a cell: RUN | CAPTION | ROW | COLUMN. Each name but the first may be cut short, as long as only
one begins like that.

A table in a document stands between two comments, which GitHub does not show:

    <!-- table: compare | Kept connections
    new = compare | A new connection | 500 clients
    verdict = as written -->

    | server | 500 clients | new | verdict |
    ...
    <!-- /table -->

- Its headings and its first column say which cells it shows. To show another row, add its first cell.
- A column is the one of that name in the table that the first line names. A line HEADING = COLUMN
  gives it another heading, and HEADING = RUN | CAPTION | COLUMN takes it from another table, which
  may lack the row: "-".

A measured number in a document's text has a row in loadtest/results/quoted.tsv: the document, the
words it stands in, and where it comes from.

    README.md   iterative serves {7} pages   {delay | Pages a second | iterative | 50 ms}
    README.md   {twice} what 02 serves       {compare | Kept | ...} / {compare | Kept | ...}
    README.md   epoll is ahead of poll       {...} > {...}

- The words are in the document. The figure between braces is what the cells come to, as exactly as
  it is written: the last digit that is not a zero is rounded. Behind "about" or "some", and in
  words, it may be a tenth off.
- Without braces, what the cells come to is true.
"""

import functools
import os
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # leaves no __pycache__ among the sources

import said
import markdown
import project

RESULTS = os.path.join(said.TOP, "loadtest", "results")
MARKED = re.compile(r"<!-- table: (.*?)-->\n\n?((?:\|[^\n]*\n)+)\n<!-- /table -->", re.DOTALL)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
WIDEST = 160  # letters; a wider table is not padded

WORDS = {"half": 1 / 2, "a third": 1 / 3, "a quarter": 1 / 4, "a fifth": 1 / 5, "a tenth": 1 / 10, "twice": 2,
         **{"%s times" % word: number for number, word in enumerate("three four five six seven eight nine ten".split(), 3)}}


class Missing(Exception):
    """A cell that a document names is in no run."""


class Table:
    def __init__(self, caption, lines):
        self.caption = caption
        self.headings, _, *rows = map(cells_of, lines.splitlines())
        if len({row[0] for row in rows}) < len(rows):  # then two cells name a row
            rows = [[" ".join(row[:2]), *row[1:]] for row in rows]
        self._rows = {bare(row[0]): dict(zip(self.headings, row)) for row in rows}

    def has(self, row):
        return server(row) in self._rows

    def cell(self, row, column):
        cells = self._rows[the_one(server(row), self._rows, self.caption)]
        return cells[the_one(column, self.headings, self.caption)]

    def number(self, row, column):
        found = NUMBER.search(self.cell(row, column))
        if not found:
            raise Missing("there is no number at %s | %s | %s" % (self.caption, row, column))
        return float(found.group().replace(",", ""))


@functools.lru_cache(maxsize=None)
def table(run, caption):
    try:
        parts = ["", *re.split(r"\n\n+", Path(os.path.join(RESULTS, run, "table.md")).read_text("utf-8").strip())]
    except FileNotFoundError:
        raise Missing("there is no run %s" % run) from None
    found = {before.rstrip(":"): Table(before.rstrip(":"), part)
             for before, part in zip(parts, parts[1:]) if part.startswith("|")}
    return found[the_one(caption, found, run)]


def the_one(wanted, names, where):
    """The name that is meant."""
    found = [name for name in names if name == wanted] or [
        name for name in names if name.startswith(wanted)]
    if len(found) != 1:
        raise Missing("%s: %s begins with '%s'; there are: %s" % (
            where, "more than one" if found else "nothing", wanted, ", ".join(names)))
    return found[0]


def server(row):
    """Its name, without the number of its chapter."""
    return re.sub(r"^\d\d ", "", row)


def cells_of(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def bare(cell):
    """A name, without what Markdown adds."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell).replace("`", "")


# ---- tables ---------------------------------------------------------------------------------


def fill(text):
    """The document with its tables filled in."""
    return MARKED.sub(lambda found: found.group().replace(found.group(2), filled(*found.groups())), text)


def filled(marker, lines):
    default, *others = (line.strip() for line in marker.strip().splitlines())
    sources = dict(re.split(r" = ", line, maxsplit=1) for line in others)
    headings, rule, *rows = map(cells_of, lines.splitlines())
    for row in rows:
        row += [""] * (len(headings) - len(row))  # a new one may have its name only
        for at, heading in enumerate(headings[1:], 1):
            source = sources.get(heading, heading)
            if source != "as written":
                row[at] = copied(source, bare(row[0])) if source.count("|") else copied(
                    default + " | " + source, bare(row[0]), must=True)
    return written(headings, rule, rows)


def copied(source, row, must=False):
    """A cell as it stands in a document."""
    run, caption, column = (part.strip() for part in source.split("|"))
    found = table(run, caption)
    return found.cell(row, column) if must or found.has(row) else "-"


def written(headings, rule, rows):
    """As Markdown; in columns of one width, if the lines do not get too long."""
    widths = [max(3, *map(len, column)) for column in zip(headings, *rows)]
    if sum(widths) + 3 * len(widths) > WIDEST:
        return "".join("| %s |\n" % " | ".join(row) for row in [headings, rule, *rows])
    right = [cell.endswith(":") for cell in rule]
    rule = [("-" * (width - 1) + ":") if to_right else ":" + "-" * (width - 1)
            for width, to_right in zip(widths, right)]
    return "".join("| %s |\n" % " | ".join(
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(row, widths, right)) for row in [headings, rule, *rows])


def stale(path, text):
    """The tables of a document that are not as in their runs."""
    for found in MARKED.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        try:
            if fill(found.group()) != found.group():
                yield said.Fault(path, line, "the table is not as in its run: make tables")
        except Missing as missing:
            yield said.Fault(path, line, str(missing))


# ---- numbers in the text --------------------------------------------------------------------


def quoted():
    with open(os.path.join(RESULTS, "quoted.tsv"), encoding="utf-8") as file:
        return [re.split(r"\t+", line.rstrip("\n")) for line in file if not line.startswith("#")]


def misquoted(path, text, rows):
    prose = markdown.Document(path, MARKED.sub(markdown.blank, text)).prose
    for document, words, source in rows:
        if document != path:
            continue
        pattern = re.sub(r"\\[{}]", "", re.sub(r"(?:\\ )+", r"\\s+", re.escape(words)))
        place = re.search(pattern, prose)
        try:
            wrong = disagreement(words, source) if place else "is not there"
        except (Missing, SyntaxError, ZeroDivisionError) as missing:
            wrong = str(missing)
        if wrong:
            line = prose.count("\n", 0, place.start()) + 1 if place else 1
            yield said.Fault(path, line, "'%s' %s" % (words, wrong))


def disagreement(words, source):
    """What is wrong with the words, or nothing."""
    figure, value = re.search(r"\{(.*?)\}", words), evaluated(source)
    if not figure:
        return "" if value is True else "is not so"
    right = agrees(figure[1], value, words[:figure.start()])
    return "" if right else "says %s, and it is %.4g" % (figure[1], value)


def evaluated(expression):
    """With what the cells come to in the place of their names."""
    def figure(found):
        run, caption, row, column = (part.strip() for part in found.group(1).split("|"))
        return repr(table(run, caption).number(row, column))
    return eval(re.sub(r"\{(.*?)\}", figure, expression).strip(),  # ours: digits and operators
                {"__builtins__": {}}, {"min": min, "max": max})


def agrees(stated, value, before):
    if stated in WORDS:
        return abs(WORDS[stated] - value) <= value / 8
    number = float(stated.replace(",", ""))
    digits = stated.replace(",", "")
    zeros = -len(digits.partition(".")[2]) if "." in digits else len(digits) - len(digits.rstrip("0"))
    slack = min(10 ** zeros / 2, value / 20) if zeros > 0 else 10 ** zeros / 2
    if re.search(r"\b(?:about|some)\s+$", before):
        slack = max(slack, value / 10)
    return abs(number - value) <= slack * 1.000001


def main():
    ours = project.Project(said.TOP)
    for path in ours.documents():
        text = ours.text(path)
        try:
            new = fill(text)
        except Missing as missing:
            sys.exit("%s: %s" % (path, missing))
        if new != text:
            Path(os.path.join(said.TOP, path)).write_text(new, "utf-8")
            print(path)


if __name__ == "__main__":
    main()
