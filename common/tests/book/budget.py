#!/usr/bin/env python3
"""budget: how many lines each part of the project has, and how many it may have.

    common/tests/book/budget.py        writes the first into the table, as `make tables` does

The table is in common/tests/README.md. A row names files by shell patterns in which * stands for slashes
too. A file counts in the first row that names it, and the last row has them all. What measurements have
left in loadtest/results/ and what is no text does not count.
"""

import fnmatch
import os
import re
import sys

sys.dont_write_bytecode = True  # leaves no __pycache__ among the sources

import book
import project

PATH = "common/tests/README.md"
ROW = re.compile(r"^\| [^|]*?((?:`[^`|]+`,? ?)+)\| *([\d,]+) \| *([\d,]+) \|$", re.MULTILINE)


def lines(ours, path):
    try:
        return 0 if path.startswith("loadtest/results/") else ours.text(path).count("\n")
    except UnicodeDecodeError:
        return 0


def rows(ours):
    """[(patterns, lines there are, lines as the table has them, lines there may be)]"""
    left, found = {path: lines(ours, path) for path in ours.files}, []
    everything = sum(left.values())
    for patterns, stated, most in ROW.findall(ours.text(PATH)):
        names = re.findall("`(.+?)`", patterns)
        here = [path for path in left if any(fnmatch.fnmatchcase(path, name) for name in names)]
        there = everything if names == ["*"] else sum(map(left.pop, here))
        found.append((patterns.strip(), there, *(int(number.replace(",", "")) for number in (stated, most))))
    return found


def about(there, stated):
    """What the table is to say: the same as long as it is about right, so that not every commit changes it."""
    return stated if abs(there - stated) <= there / 20 + 50 else round(there, -2)


def main():
    ours = project.Project(book.TOP)
    now = iter([about(there, stated) for _, there, stated, _ in rows(ours)])
    text = ROW.sub(lambda row: row[0].replace("| %s |" % row[2], "| {:,} |".format(next(now)), 1), ours.text(PATH))
    with open(os.path.join(book.TOP, PATH), "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
