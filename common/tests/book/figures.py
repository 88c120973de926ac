#!/usr/bin/env python3
"""figures: every table and every measured number of the documents comes from a stored run.

    common/tests/book/figures.py        fills the tables in, as `make tables` does

A run is a folder of loadtest/results/. Its table.md holds the cells; nothing is measured here. To
name a cell: RUN | CAPTION | ROW | COLUMN. Each name but the first may be cut short, as long as only
one begins like that.

A table in a document stands between two comments, which GitHub does not show:

    <!-- table: compare | Kept connections
    new = compare | A new connection | 500 clients
    of lighttpd = 500 clients, of lighttpd
    verdict = as written -->

    | server | 500 clients | new | of lighttpd | verdict |
    ...
    <!-- /table -->

- Its headings and its first column say which cells it shows. To show another row, add its first cell.
- A column is the one of that name in the table that the first line names. A line HEADING = COLUMN
  gives it another heading, HEADING = RUN | CAPTION | COLUMN takes it from another table, and
  ", of ROW" divides each cell by that row's, and ", with 500" takes the row with that option
  (`threading --redis-connections 500` in place of `threading`), where there is one.
- The notes of the cells become marks. The line below the table that explains them is written here.

A measured number in a document's text has a row in loadtest/results/quoted.tsv: the document, the
words it stands in, and where it comes from.

    README.md   iterative serves {7} pages   {delay | Pages a second | iterative | 50 ms}
    README.md   {twice} what 02 serves       {compare | Kept | ...} / {compare | Kept | ...}
    README.md   epoll is ahead of poll       {...} > {...}
    README.md   at most 667 a second         constant: 100 workers / 0.15 s

- The words are in the document. Each figure between braces is what the cells come to, as exactly as
  it is written: the last digit that is not a zero is rounded. Behind "about" or "some", and in
  words, it may be a tenth off. Several are divided by a semicolon.
- Without braces, what the cells come to is true; or it begins with `constant:`, `transcript:` (it is
  in a block of the document) or `quoted:` (somebody else's), and a reason.
- Words that say "faster" or "slower" need cells with an interval, as "0.82 x [0.79-0.84]", and the source must
  be true at all of its ends. So a sentence needs intervals that do not overlap, or a ratio whose interval does not
  hold 1. (Runs that were made before there were seven rounds are exempt.)
- Any other number in a text that looks measured is a fault. Blocks are runs of their own.
"""

import functools
import itertools
import os
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # leaves no __pycache__ among the sources

import book
import markdown
import project

RESULTS = os.path.join(book.TOP, "loadtest", "results")
PAGES = re.compile(  # whose text is looked at
    r"(?:0\d_\w+/|common/|loadtest/(?:companions/)?)?(?:README|OPERATING|programs|four-machines)\.md")

MARKED = re.compile(r"<!-- table: (.*?)-->\n\n?((?:\|[^\n]*\n)+)(.*?)<!-- /table -->", re.DOTALL)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
NOTES = re.compile(r"(?: \(\d+\))+$")  # at the end of a cell, as lib/reporting/table.py writes them
MARKS = {"rounds differ": "*", "by Little": "†", "more than a tenth": "†", "the kernel": "‡", "some rounds": "¶", "2 cores": "◊",
         "wrk could not": "‖"}  # of any other note: §
SHORT = [(r"\d+ of \d+ rounds rejected: .*", "some rounds were rejected"),  # what the run's own table says in full
         (r"wrk gave up: .*", "wrk could not connect"),
         (r"the kernel counted .*", "the kernel dropped or repeated packets")]
WIDEST = 160  # letters; a wider table is not padded

WORDS = {"half": 1 / 2, "a third": 1 / 3, "two thirds": 2 / 3, "a quarter": 1 / 4, "a fifth": 1 / 5, "a sixth": 1 / 6,
         "three quarters": 3 / 4, "three tenths": 0.3, "a tenth": 1 / 10, "twice": 2, "two and a half": 2.5, **{"%s times" % word: number for
         number, word in enumerate("three four five six seven eight nine ten".split(), 3)}}
FASTER = re.compile(r"\b(?:faster|slower)\b")
INTERVAL = re.compile(r"\[([\d.,]+)-([\d.,]+)\]")
NOT_RUNS = ("constant: ", "transcript: ", "quoted: ")
MEASURED = re.compile(
    r"(?<![\w.,/#-])({0})(?:\s*(?:to|and|or|-)\s*({0}))?(?:\s*µs\b|\s*%|\s+x\b(?!\s*\d)"
    r"|\s+times\s+(?:as|more|less|the)\b|\s+(?:pages\s+|requests\s+|connections\s+)?a\s+second\b"
    r"|(?<=\.\d)\s*ms\b|\s*(?:pages|requests|req|files)/s|\s*(?:KiB|MiB|GiB|MB|GB)\b)".format(NUMBER.pattern))
SIZES = {str(2 ** power) for power in range(10)}  # of buffers, files and limits: not measured


class Missing(Exception):
    """A cell that a document names is in no run."""


class Table:
    def __init__(self, caption, lines, below):
        self.caption = caption
        self.headings, _, *rows = map(cells_of, lines.splitlines())
        if len({row[0] for row in rows}) < len(rows):  # then two cells name a row
            rows = [[" ".join(row[:2]), *row[1:]] for row in rows]
        self._rows = {bare(row[0]): dict(zip(self.headings, row)) for row in rows}
        self._notes = dict(re.findall(r"^- \((\d+)\) (.*)", below, re.MULTILINE))

    def cell(self, row, column):
        """Its text, without notes; and the texts of the notes."""
        cells = self._rows[the_one(server(row), self._rows, self.caption)]
        text = cells[the_one(column, self.headings, self.caption)]
        marks = NOTES.search(text)
        return NOTES.sub("", text), [self._notes[number] for number in
                                     re.findall(r"\d+", marks.group() if marks else "")]

    def variant(self, row, option):
        return next((name for name in self._rows if name.startswith(server(row) + " --")
                     and name.endswith(" " + option)), row)

    def number(self, row, column):
        found = NUMBER.search(self.cell(row, column)[0])
        if not found:
            raise Missing("there is no number at %s | %s | %s" % (self.caption, row, column))
        return float(found.group().replace(",", ""))

    def ends(self, row, column):
        """Of the interval in a cell."""
        found = INTERVAL.search(self.cell(row, column)[0])
        if not found:
            raise Missing("'faster' needs an interval at %s | %s | %s" % (self.caption, row, column))
        return [float(end.replace(",", "")) for end in found.groups()]


@functools.lru_cache(maxsize=None)
def table(run, caption):
    try:
        parts = ["", *re.split(r"\n\n+", Path(os.path.join(RESULTS, run, "table.md")).read_text("utf-8").strip()), ""]
    except FileNotFoundError:
        raise Missing("there is no run %s" % run) from None
    found = {before.rstrip(":"): Table(before.rstrip(":"), part, below)
             for before, part, below in zip(parts, parts[1:], parts[2:]) if part.startswith("|")}
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
    return MARKED.sub(lambda found: found.group().replace(
        found.group(2) + found.group(3), filled(*found.group(1, 2))), text)


def filled(marker, lines):
    default, *others = (line.strip() for line in marker.strip().splitlines())
    sources = dict(re.split(r" = ", line, maxsplit=1) for line in others)
    headings, rule, *rows = map(cells_of, lines.splitlines())
    notes = {}  # {text: mark}
    for row in rows:
        row += [""] * (len(headings) - len(row))  # a new one may have its name only
        for at, heading in enumerate(headings[1:], 1):
            source = sources.get(heading, heading)
            if source != "as written":
                row[at] = copied(source if source.count("|") else default + " | " + source, bare(row[0]), notes)
    legend = "; ".join("%s %s" % (mark.replace("*", r"\*"), text) for text, mark in notes.items())
    return written(headings, rule, rows) + "\n" + (legend and legend + ".\n\n")


def copied(source, row, notes):
    """A cell as it stands in a document."""
    run, caption, column = (part.strip() for part in source.split("|"))
    column, _, change = column.partition(", ")
    found = table(run, caption)
    if change.startswith("of "):
        return "%.2f x" % (found.number(row, column) / found.number(change[3:], column))
    if change.startswith("with "):
        row = found.variant(row, change[5:])
    text, texts = found.cell(row, column)
    for long, short in SHORT:
        texts = [re.sub("^" + long, short, each) for each in texts]
    notes.update((each, mark_of(each)) for each in texts)
    return " ".join([text, *dict.fromkeys(map(mark_of, texts))])


def mark_of(note):
    return next((mark for start, mark in MARKS.items() if note.startswith(start)), "§")


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
                yield book.Fault(path, line, "the table is not as in its run: make tables")
        except Missing as missing:
            yield book.Fault(path, line, str(missing))


# ---- numbers in the text --------------------------------------------------------------------


def quoted():
    with open(os.path.join(RESULTS, "quoted.tsv"), encoding="utf-8") as file:
        return [re.split(r"\t+", line.rstrip("\n")) for line in file if not line.startswith("#")]


def misquoted(path, text, rows):
    prose = markdown.Document(path, MARKED.sub(markdown.blank, text)).prose
    covered = set()  # places of digits
    for document, words, source in rows:
        if document != path:
            continue
        pattern = re.sub(r"\\\{(.*?)\\\}", r"(\1)", re.sub(r"(?:\\ )+", r"\\s+", re.escape(words)))
        places = list(re.finditer(pattern, prose))
        for place in places:
            for group in range(1, place.re.groups + 1) or [0]:
                covered.update(range(*place.span(group)))
        line = prose.count("\n", 0, places[0].start()) + 1 if places else 1
        try:
            wrong = disagreement(words, source) if places else "is not there"
        except (Missing, SyntaxError, ZeroDivisionError) as missing:
            wrong = str(missing)
        if wrong:
            yield book.Fault(path, line, "'%s' %s" % (words, wrong))
    for found in MEASURED.finditer(prose):
        places = {found.start(group) for group in (1, 2) if found.group(group)}
        if not places <= covered and not (found.group(1) in SIZES and found.group().endswith("B")):
            yield book.Fault(path, prose.count("\n", 0, found.start()) + 1,
                             "looks measured, and is not in quoted.tsv: " + found.group())


def disagreement(words, source):
    """What is wrong with the words, or nothing."""
    if source.startswith(NOT_RUNS):
        return ""
    figures = list(re.finditer(r"\{(.*?)\}", words))
    if FASTER.search(words) and not all(true_at_all_ends(part) for part in source.split(";")):
        return "is not so at all ends of the intervals"
    values = [evaluated(part) for part in source.split(";")]
    if not figures:
        return "" if values == [True] else "is not so"
    if len(figures) != len(values):
        return "has %d figures, and its row %d" % (len(figures), len(values))
    return "; ".join("says %s, and it is %.4g" % (figure.group(1), value)
                     for figure, value in zip(figures, values)
                     if not agrees(figure.group(1), value, words[:figure.start()]))


def evaluated(expression):
    """With what the cells come to in the place of their names."""
    def figure(found):
        run, caption, row, column = (part.strip() for part in found.group(1).split("|"))
        return repr(table(run, caption).number(row, column))
    return eval(re.sub(r"\{(.*?)\}", figure, expression).strip(),  # ours: digits and operators
                {"__builtins__": {}}, {"min": min, "max": max})


def true_at_all_ends(expression):
    """Is it true whatever the cells are within their intervals?"""
    cells = [[part.strip() for part in cell.split("|")] for cell in re.findall(r"\{(.*?)\}", expression)]
    ends = [table(run, caption).ends(row, column) for run, caption, row, column in cells if has_intervals(run)]
    if len(ends) < len(cells):
        return True
    return all(eval(functools.reduce(lambda text, value: re.sub(r"\{.*?\}", repr(value), text, count=1),
                                     values, expression).strip(), {"__builtins__": {}})
               for values in itertools.product(*ends))


def has_intervals(run):
    return "--rounds 7" in Path(os.path.join(RESULTS, run, "environment.txt")).read_text("utf-8")


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
    ours = project.Project(book.TOP)
    for path in ours.documents():
        text = ours.text(path)
        try:
            new = fill(text)
        except Missing as missing:
            sys.exit("%s: %s" % (path, missing))
        if new != text:
            Path(os.path.join(book.TOP, path)).write_text(new, "utf-8")
            print(path)


if __name__ == "__main__":
    main()
