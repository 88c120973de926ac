"""Every command of the teacher's page, in a fresh copy for a class, prints what stands below it.

The page is read as a class would: `make course` makes the copy, and the blocks of each section are
typed in the order of the page. What stays until Ctrl-C (a server, perhaps under strace) is in the
first terminal, until the next such command or the end of the section; all else is typed in the
second one. common/tests/book/terminals.py has the terminals, and compares what is printed.

Nobody else's port is taken: in the copy, before anything is built, 8000 becomes a free one.
"""

import contextlib
import os
import re
import shutil
import socket
import tempfile
import unittest
from pathlib import Path

import place  # first: it says where the rest lies
import markdown
import terminals

PAGE = "common/classroom/TEACHING.md"
PRELUDE = "Three helpers"  # its block is typed at the beginning of each lesson
PORTS = 8  # the one of a server, and behind it those of `make serve`
WITH_PORT = ("common/options.c", "01_iterative/bare.c")
SHORT = {"QUICK": "1", "LOAD_SECONDS": "1"}  # of measurements whose figures nobody looks at


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


def reserve_ports():
    """The first of PORTS free ones in a row, and what keeps them: our sockets are bound to them
    without listening. The kernel gives such a port to nobody who wants any free one, but a server
    that asks for it with SO_REUSEADDR may listen there. socket(7)"""
    while True:
        with contextlib.ExitStack() as held, contextlib.suppress(OSError, OverflowError):
            port = 0
            for number in range(PORTS):
                holder = held.enter_context(socket.socket())
                holder.bind(("127.0.0.1", port and port + number))
                holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                port = port or holder.getsockname()[1]
            return port, held.pop_all()


@place.with_git
@unittest.skipUnless(terminals.is_the_system(), "the transcripts are of Debian 12")
class Teaching(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("git") or not shutil.which("ss"):
            raise unittest.SkipTest("git or ss is not here")
        cls.folder = tempfile.mkdtemp(prefix="zerohttpd.")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.copy = os.path.join(cls.folder, "course")
        cls.port, reserved = reserve_ports()
        cls.addClassCleanup(reserved.close)
        text = Path(os.path.join(place.TOP, PAGE)).read_text("utf-8")
        for word, here in (("../course", cls.copy), ("8000", str(cls.port)),
                           ("/tmp/handed-in", os.path.join(cls.folder, "handed-in"))):
            text = text.replace(word, here)
        cls.sections = sections(text)
        cls.environment = terminals.environment(place.ENVIRONMENT, **SHORT, BASE=str(cls.port), CFLAGS="-O0",
                                                LC_ALL="C.UTF-8")

    def test_each_command_prints_what_stands_below_it(self):
        prelude = dict(self.sections)[PRELUDE]
        for heading, commands in self.sections:
            missing = [tool for each in commands for tool in each.missing()]
            if commands[0].text.startswith("make grade") and not has_criterion():
                missing.append("Criterion")
            with self.subTest(heading):
                if missing:
                    self.skipTest("not installed: %s" % ", ".join(sorted(set(missing))))
                self.teach([] if heading == PRELUDE else prelude, commands)

    def teach(self, prelude, commands):
        """One section, in two terminals."""
        making = commands[0].text.startswith("make course")  # not yet in the copy, but here
        second = terminals.Terminal(place.TOP if making else self.copy, self.environment)
        first = None
        try:
            for each in prelude:
                second.type(each.text)
            for each in commands:
                if each.stays:
                    ended, first = first, None
                    self.end(ended)
                    first = terminals.First(self.copy, self.environment, self.port)
                    first.start(each)
                    continue
                status, output = second.type(each.text)
                self.look(each, output)
                if not each.printed:
                    self.assertEqual(status, 0, "line %d: %s\n%s" % (each.line, each.text, output))
        finally:
            second.close()
            self.end(first)
        if making:
            self.move_the_port()

    def end(self, first):
        if first:
            output = first.end()
            first.close()
            self.look(first.command, output)

    def look(self, command, output):
        shown = "line %d: %s\n%s" % (command.line, command.text, output)
        self.assertEqual(list(command.unprinted(output)), [], shown)
        self.assertNotRegex(output, r"(?m)^\| \w+ +\| +- \|", shown)  # a first cell that has no rate

    def move_the_port(self):
        for name in WITH_PORT:
            path = os.path.join(self.copy, name)
            text = Path(path).read_text("utf-8")
            self.assertIn("8000", text)
            Path(path).write_text(text.replace("8000", str(self.port)), "utf-8")


def has_criterion():
    return any(os.path.exists(folder + "/criterion/criterion.h")
               for folder in ("/usr/include", "/usr/local/include"))


class Reading(unittest.TestCase):
    """How the page is taken apart."""

    def test_commands_and_their_lines_by_section(self):
        page = "## One\n\n```console\n$ a\n1 2\n$ b\n```\n\n## Two\n\n```console\n$ ./epoll\n```\n"
        found = [(heading, [(each.line, each.text, each.printed) for each in commands])
                 for heading, commands in sections(page)]
        self.assertEqual(found, [("One", [(4, "a", ["1 2"]), (6, "b", [])]),
                                 ("Two", [(12, "./epoll", [])])])


if __name__ == "__main__":
    unittest.main()
