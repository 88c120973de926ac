"""Every command of the teacher's page, in a fresh copy for a class, prints what stands below it.

The page is read as a class would: `make course` makes the copy, and the blocks of each section are
typed in the order of the page. What stays until Ctrl-C (a server, perhaps under strace) is in the
first terminal, until the next such command or the end of the section; all else is typed in the
second one, a bash. A line below a command has to be printed, wherever in the output; `...` stands
for anything, and a number of two digits or more for any number.

Nobody else's port is taken: in the copy, before anything is built, 8000 becomes a free one.
"""

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import place  # first: it says where the rest lies
import checks  # noqa: F401  (finds lib)
from lib import processes

sys.path.append(os.path.join(place.TOP, "common", "tests", "book"))
import markdown

PAGE = "common/classroom/TEACHING.md"
STAYS = re.compile(r"make serve$|(make bare && )?(strace .*)?\./\w+( --|$)")
PRELUDE = "Three helpers"  # its block is typed at the beginning of each lesson
LIMIT_SECONDS = 300
PORTS = 8  # the one of a server, and behind it those of `make serve`
WITH_PORT = ("common/options.c", "01_iterative/bare.c")
NEEDS = {"strace": "strace", "ab -": "ab", "loadtest/": "ab wrk", "make load": "ab wrk",
         "make compare": "ab wrk", "make serve": "redis-server", "curl": "curl", "ps ": "ps",
         "visit": "curl", "onlookers": "ab", "make doctor": "ab wrk strace redis-server"}
SHORT = {"QUICK": "1", "LOAD_SECONDS": "1"}  # of measurements whose figures nobody looks at


class Command:
    """One command, and the lines below it."""

    def __init__(self, line, text):
        self.line = line
        self.text = text
        self.printed = []

    @property
    def stays(self):
        return bool(STAYS.match(self.text))

    def missing(self):
        """Of the tools it needs, what is not here."""
        tools = " ".join(words for part, words in NEEDS.items() if part in self.text).split()
        return [tool for tool in tools if not shutil.which(tool)]

    def unprinted(self, output):
        """Those of its lines that are not in the output."""
        lines = [" ".join(line.split()) for line in re.split(r"[\r\n]", output)]
        for wanted in self.printed:
            found = next((line for line in lines if pattern(wanted).fullmatch(line)), None)
            if found is None:
                yield wanted
            else:
                lines.remove(found)


def pattern(line):
    """What a printed line has to be."""
    pieces = re.split(r"(\.\.\.|\d[\d.,]*\d)", " ".join(line.split()))
    return re.compile("".join(
        ".*" if piece == "..." else r"\d[\d.,]*" if number else re.escape(piece)
        for piece, number in zip(pieces, [False, True] * len(pieces))))


def sections(text):
    """[(heading, [Command])] of a page, as far as they have commands."""
    document = markdown.Document(PAGE, text)
    headings = [(number, found.group(1)) for number, line in enumerate(document.lines, 1)
                for found in [markdown.HEADING.match(line)] if found]
    found = {}
    for block in document.blocks:
        if block.info != "console":
            continue
        heading = [name for number, name in headings if number < block.line][-1]
        commands = found.setdefault(heading, [])
        for number, line in enumerate(block.lines, block.line):
            if line.startswith("$ "):
                commands.append(Command(number, line[2:]))
            else:
                commands[-1].printed.append(line)
    return list(found.items())


class Second:
    """A bash in which one command is typed after the other."""

    def __init__(self, folder, environment):
        self._process = subprocess.Popen(
            ["bash", "--norc"], cwd=folder, env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self._number = 0

    def type(self, command):
        """Its status, and what was printed by its end."""
        self._number += 1
        mark = "done-%d-%d" % (os.getpid(), self._number)
        typed = "{ %s\n} </dev/null; s=$?; echo; echo %s $s\n" % (command, mark)
        self._process.stdin.write(typed.encode())
        self._process.stdin.flush()
        text, deadline = b"", time.monotonic() + LIMIT_SECONDS
        while True:
            found = re.search(rb"^%s (\d+)$" % mark.encode(), text, re.MULTILINE)
            if found:
                return int(found.group(1)), text[:found.start()].decode("utf-8", "replace")
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise AssertionError("%s: not done in %d s" % (command, LIMIT_SECONDS))
            more = os.read(self._process.stdout.fileno(), 65536)
            if not more:
                raise AssertionError("%s ended the shell" % command)
            text += more

    def close(self):
        end_group(self._process, signal.SIGKILL)
        self._process.stdin.close()
        self._process.stdout.close()


class First:
    """What stays in its terminal until Ctrl-C."""

    def __init__(self, command, folder, environment, port):
        self.command = command
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            ["bash", "-c", command.text], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True)
        deadline = time.monotonic() + LIMIT_SECONDS
        while not self._is_ready(port):
            if processes.has_ended(self._process) or time.monotonic() > deadline:
                raise AssertionError("%s does not listen: %s" % (command.text, self.end()))
            time.sleep(0.02)

    def _is_ready(self, port):
        """`make serve` says so; of the others somebody listens. To connect would be a visit."""
        if self.command.text == "make serve":
            return "Ctrl-C ends them all" in self.output()
        ports = subprocess.run(["ss", "-Hltn", "sport = :%d" % port], stdout=subprocess.PIPE,
                               check=True).stdout
        return bool(ports.strip())

    def output(self):
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")

    def end(self):
        """What it has printed."""
        end_group(self._process, signal.SIGINT)
        with contextlib.closing(self._log):
            return self.output()


def end_group(process, number):
    """All of a session's processes; by SIGKILL, if they do not heed another signal in time."""
    for each in (number, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, each)
        if processes.wait(process, 20):
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port():
    """The first of PORTS free ones in a row."""
    while True:
        with contextlib.ExitStack() as held, contextlib.suppress(OSError, OverflowError):
            first = held.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            for number in range(port + 1, port + PORTS):
                held.enter_context(socket.socket()).bind(("127.0.0.1", number))
            return port


class Teaching(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("git") or not shutil.which("ss"):
            raise unittest.SkipTest("git or ss is not here")
        cls.folder = tempfile.mkdtemp(prefix="zerohttpd.")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.copy = os.path.join(cls.folder, "course")
        cls.port = free_port()
        with open(os.path.join(place.TOP, PAGE), encoding="utf-8") as file:
            text = file.read()
        for word, here in (("../course", cls.copy), ("8000", str(cls.port)),
                           ("/tmp/handed-in", os.path.join(cls.folder, "handed-in"))):
            text = text.replace(word, here)
        cls.sections = sections(text)
        cls.environment = {
            **{name: value for name, value in place.ENVIRONMENT.items()
               if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "OUT", "SAN", "PLAIN")},
            **SHORT, "BASE": str(cls.port), "CFLAGS": "-O0", "LC_ALL": "C.UTF-8"}

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
        second = Second(place.TOP if making else self.copy, self.environment)
        first = None
        try:
            for each in prelude:
                second.type(each.text)
            for each in commands:
                if each.stays:
                    first = self.end(first)
                    first = First(each, self.copy, self.environment, self.port)
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
            self.look(first.command, first.end())

    def look(self, command, output):
        shown = "line %d: %s\n%s" % (command.line, command.text, output)
        self.assertEqual(list(command.unprinted(output)), [], shown)
        self.assertNotRegex(output, r"(?m)^\|.*\| +- \|", shown)  # a cell that was not measured

    def move_the_port(self):
        for name in WITH_PORT:
            path = os.path.join(self.copy, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            self.assertIn("8000", text)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("8000", str(self.port)))

    def test_no_command_of_the_page_is_left_out(self):
        """Those in its sentences and tables are among those that are typed, or near enough."""
        with open(os.path.join(place.TOP, PAGE), encoding="utf-8") as file:
            document = markdown.Document(PAGE, file.read())
        typed = {word for _, commands in sections("\n".join(document.lines))
                 for each in commands for word in each.text.split()}
        for line, text in document.spans:
            found = re.match(r"make ([a-z]+)|(loadtest/\w+|\./\w+)", text)
            if found:
                self.assertIn(found[1] or found[2], typed | NOT_TYPED, "line %d: %s" % (line, text))


NOT_TYPED = {"test", "check"}  # they would run this test


def has_criterion():
    return any(os.path.exists(folder + "/criterion/criterion.h")
               for folder in ("/usr/include", "/usr/local/include"))


class Reading(unittest.TestCase):
    """How the page is taken apart, and how lines are compared."""

    def test_commands_and_their_lines_by_section(self):
        page = "## One\n\n```console\n$ a\n1 2\n$ b\n```\n\n## Two\n\n```console\n$ ./epoll\n```\n"
        found = [(heading, [(each.line, each.text, each.printed) for each in commands])
                 for heading, commands in sections(page)]
        self.assertEqual(found, [("One", [(4, "a", ["1 2"]), (6, "b", [])]),
                                 ("Two", [(12, "./epoll", [])])])

    def test_what_stays_in_the_first_terminal(self):
        for text in ("make serve", "./iterative", "./forking --timeout 60", "strace -c ./epoll",
                     "make bare && strace -e trace=%network,close ./bare"):
            self.assertTrue(Command(1, text).stays, text)
        for text in ("make load SERVER=all", "curl x", "make grade SERVER=./epoll MODEL=epoll"):
            self.assertFalse(Command(1, text).stays, text)

    def test_numbers_and_dots_stand_for_others(self):
        command = Command(1, "a")
        for wanted, printed, same in (
                ("a  12 b", "  a 3,456.7  b", True), ("a", "ab", False), ("4 s", "5 s", False),
                ("x ... z", "x z", False), ("x ... z", "x y z", True),
                ("x...z", "xz", True), ("(a) [b]", "(a) [b]", True)):
            command.printed = [wanted]
            self.assertEqual(not list(command.unprinted(printed)), same, wanted)

    def test_each_line_is_printed_once_for_each_time_it_is_wanted(self):
        command = Command(1, "a")
        command.printed = ["x 10", "x 10"]
        self.assertEqual(list(command.unprinted("x 11\n")), ["x 10"])
        self.assertEqual(list(command.unprinted("x 11\nx 12\n")), [])


if __name__ == "__main__":
    unittest.main()
