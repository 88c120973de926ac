#!/usr/bin/env -S python3 -B
"""Every command of the teacher's page, in a fresh copy for a class, prints what stands below it.

The page is read as a class would: `make course` makes the copy, and the blocks of each section are
typed in the order of the page. What stays until Ctrl-C (a server, perhaps under strace) is in the
first terminal, until the next such command or the end of the section; all else is typed in the
second one. common/tests/book/terminals.py has the terminals, compares what is printed, and gives the
class a machine with a network of its own.
"""

import os
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import place  # first: it says where the rest lies
import markdown
import terminals

PAGE = "common/classroom/TEACHING.md"
PRELUDE = "Three helpers"  # its block is typed at the beginning of each lesson
ENVIRONMENT = terminals.environment(  # the figures of measurements are not looked at: short ones will do
    place.ENVIRONMENT, QUICK="1", LOAD_SECONDS="1", CFLAGS="-O0", LC_ALL="C.UTF-8")


def sections(text):
    """[(heading, [commands])] of a page, as far as they have commands."""
    document = markdown.Document(PAGE, text)
    headings = [(number, found.group(1)) for number, line in enumerate(document.lines, 1)
                for found in [markdown.HEADING.match(line)] if found]
    found = {}
    for block in document.blocks:
        if block.info != "console":
            continue
        heading = [name for number, name in headings if number < block.line][-1]
        found.setdefault(heading, []).extend(terminals.commands_of(block))
    return list(found.items())


class Lesson:
    def __init__(self, copy, commands):
        self.faults = []
        self._copy, self._commands, self._first = copy, commands, None
        making = commands[0].text.startswith("make course")  # not yet in the copy, but here
        self._second = terminals.Terminal(place.TOP if making else copy, ENVIRONMENT)

    def teach(self, prelude):
        try:
            for each in prelude:
                self._second.type(each.text)
            for each in self._commands:
                self._do(each)
        finally:
            self._second.close()
            self._end_first()

    def _do(self, command):
        if command.stays:
            self._end_first()
            self._first = terminals.First(self._copy, ENVIRONMENT, 8000)
            self._first.start(command)
            return
        status, output = self._second.type(command.text)
        self._look(command, output, status == 0 or command.printed)

    def _end_first(self):
        if self._first:
            output = self._first.end()
            self._first.close()
            self._look(self._first.command, output)
            self._first = None

    def _look(self, command, output, right=True):
        missing = command.unprinted(output)
        if missing or not right or re.search(r"(?m)^\| \w+ +\| +- \|", output):  # a first cell that has no rate
            self.faults.append("line %d: %s\n  does not print %s, or has failed:\n%s" % (
                command.line, command.text, missing, output))


def teach_all():
    """All lessons of the page, on this machine. Returns the exit status."""
    faults = []
    with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
        copy = os.path.join(folder, "course")
        text = Path(os.path.join(place.TOP, PAGE)).read_text("utf-8").replace("../course", copy)
        lessons = sections(text.replace("/tmp/handed-in", os.path.join(folder, "handed-in")))
        for heading, commands in lessons:
            if commands[0].text.startswith("make grade") and not has_criterion():
                print("not typed: %s: there is no Criterion" % heading)
                continue
            lesson = Lesson(copy, commands)
            lesson.teach([] if heading == PRELUDE else dict(lessons)[PRELUDE])
            faults += ["%s, %s" % (heading, fault) for fault in lesson.faults]
    print(*faults, sep="\n")
    return 1 if faults else 0


@place.with_git
@unittest.skipUnless(terminals.is_the_system(), "the transcripts are of Debian 12")
class Teaching(unittest.TestCase):
    def test_each_command_prints_what_stands_below_it(self):
        reason = terminals.why_not() or (None if shutil.which("git") else "git is not installed")
        if reason:
            self.skipTest(reason)
        process = terminals.start_apart(terminals.apart(), os.path.abspath(__file__))
        said, _ = process.communicate()
        print("\n".join(re.findall("(?m)^not typed: .*", said)), flush=True)
        self.assertEqual(process.returncode, 0, said)


def has_criterion():
    return any(os.path.exists(folder + "/criterion/criterion.h")
               for folder in ("/usr/include", "/usr/local/include"))


if __name__ == "__main__":
    sys.exit(teach_all())
