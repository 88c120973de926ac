"""exercises: which there are, where their files lie, and which of them are done.

An exercise NAME of a chapter 0N_name is four files:

    0N_name/exercises/NAME.md                 the task, with hints
    0N_name/exercises/NAME.c                  the starting file, a whole program; or NAME.patch, and
                                              make produces it from the chapter's main.c
    0N_name/exercises/NAME.py                 the check
    0N_name/exercises/solutions/NAME.patch    from the starting file to a solution

What make builds of it lies in build/, in a folder for each origin. The learner works on a copy, in
.mine/0N_name/NAME.c; beside it lies NAME.done, which holds the hash of the copy that passed.
"""

import glob
import hashlib
import os
import re
import sys
from collections import namedtuple
from pathlib import Path

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(1, os.path.join(TOP, "common", "tools", "lib"))
KINDS = ["find the bug", "predict", "change a policy", "build", "build it all"]
ORIGINS = ["mine", "exercises", "solutions"]  # the learner's copy, the starting file, the solution

Heading = namedtuple("Heading", "title chapter kind minutes stars")  # stars: 1 to 3, more are harder

HEADING = re.compile(r"# (?P<title>[^\n]+)\n\n"
                     r"Chapter (?P<chapter>\d) · (?P<kind>[a-z ]+) · (?P<minutes>\d+) minutes"
                     r" · (?P<stars>★☆☆|★★☆|★★★)\n")


class Exercise:
    """One of them, in the project whose top folder is `top`."""

    def __init__(self, chapter, name, top=TOP):
        self.chapter = chapter  # "03_preforking"
        self.name = name
        self.key = "%s/%s" % (chapter[:2], name)
        self.top = top
        self.task = "%s/exercises/%s.md" % (chapter, name)  # as all paths here: from the top
        self.source = "%s/exercises/%s.patch" % (chapter, name)
        self.start = "build/exercises/%s/%s.c" % (chapter, name)  # make produces it
        if not os.path.exists(self.at(self.source)):
            self.source = self.start = "%s/exercises/%s.c" % (chapter, name)
        self.check = "%s/exercises/%s.py" % (chapter, name)
        self.solution = "%s/exercises/solutions/%s.patch" % (chapter, name)
        self.mine = ".mine/%s/%s.c" % (chapter, name)

    def at(self, path):
        """The file that a path from the top names."""
        return os.path.join(self.top, path)

    def files(self):
        return [self.task, self.source, self.check, self.solution]

    def program(self, origin, san=None):
        """What make builds of it. It is make's target, too."""
        built = "build/san-" + san.replace(",", "-") if san else "build"
        return "/".join([built, origin, self.chapter, self.name])

    def source_of(self, origin):
        """The C file of an origin."""
        return {"mine": self.mine, "exercises": self.start}.get(origin, self.program(origin) + ".c")

    def heading(self):
        """The title, and the line below it; None if the file does not begin so."""
        found = HEADING.match(self._read(self.task))
        return found and Heading(found["title"], int(found["chapter"]), found["kind"],
                                 int(found["minutes"]), found["stars"].count("★"))

    def copy_once(self, make):
        """Gives the learner a copy of the starting file, if there is none; make(path) is to bring
        that up to date. True if it did."""
        if os.path.exists(self.at(self.mine)):
            return False
        make(self.start)
        os.makedirs(os.path.dirname(self.at(self.mine)), exist_ok=True)
        text = self._read(self.start)
        with open(self.at(self.mine), "x", encoding="utf-8") as mine:
            mine.write(text)
        return True

    def mark_done(self):
        Path(self.at(self.mine[:-1] + "done")).write_text(self.hash() + "\n", "utf-8")

    def state(self):
        """How far the learner is: "done", "begun", or "" for not yet. Who changes a file that has
        passed has begun again."""
        if not os.path.exists(self.at(self.mine)):
            return ""
        done = self.mine[:-1] + "done"
        is_done = os.path.exists(self.at(done)) and self._read(done).strip() == self.hash()
        return "done" if is_done else "begun"

    def hash(self):
        with open(self.at(self.mine), "rb") as mine:
            return hashlib.sha256(mine.read()).hexdigest()

    def _read(self, path):
        return Path(self.at(path)).read_text("utf-8")


def every(top=TOP):
    """All exercises, chapter by chapter; in a chapter the easy ones first. An exercise counts if it has
    one of the four files, so that none of the others can be forgotten."""
    found = set()
    for path in glob.glob(os.path.join(glob.escape(top), "0[1-9]_*", "exercises", "**", "*"), recursive=True):
        name, suffix = os.path.splitext(os.path.basename(path))
        if suffix in (".md", ".c", ".py", ".patch"):
            found.add((os.path.relpath(path, top).split(os.sep)[0], name))
    return sorted((Exercise(chapter, name, top) for chapter, name in found), key=order)


def order(exercise):
    there = os.path.exists(exercise.at(exercise.task))
    heading = exercise.heading() if there else None
    difficulty = (heading.stars, heading.minutes) if heading else (0, 0)
    return exercise.chapter, difficulty, exercise.name


def chapter_title(exercise):
    number, _, server = exercise.chapter.partition("_")
    return "Chapter %d: %s" % (int(number), server)
