#!/usr/bin/env python3
"""typed: every command that a page tells somebody to type, and what runs it as it is typed.

    typed.py             types the rows of commands.tsv that say `type`, `stay` or `fail`
    typed.py --first     those of the first page, and --rest: those of the others
    typed.py --slow      types those that say `slow`: before a release, about two hours

commands.tsv has a row for each command, under the name of a page. The rows of a page are typed in
their order, into the two terminals of a reader, in a fresh copy of the project and on a network of
its own. The columns:

    how      type: in the second terminal, until it has ended, with status 0
             fail: the same, but it ends with an error
             stay: in the first terminal, until the next such row, or the end of the page
             slow: like `type`, but only with --slow
             no: nothing runs it, and the last column says why
             the path of a file that runs it, and the last column is in that file
    command  as the page has it. An asterisk stands for anything
    prints   a regular expression for what it prints

Experiments are quick ones, by QUICK=1 and LOAD_SECONDS=1.

The commands of the chapters, and those of TEACHING.md, are typed by test_transcripts.py and
test_teaching.py. The pages themselves say which of those are not run, and why. Those that measure
are typed with --slow.
"""

import collections
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(os.path.dirname(HERE), name) for name in ("book", "exercises")]
import markdown
import terminals
import test_teaching

TOP = terminals.TOP
TABLE = os.path.join(HERE, "commands.tsv")
CHAPTERS = sorted(os.path.relpath(path, TOP)
                  for path in glob.glob(TOP + "/0[1-7]_*/**/README.md", recursive=True))
PAGES = ["README.md", "common/README.md", "common/after.md", "common/SETUP.md", "common/OPERATING.md",
         "common/ADD_A_PAGE.md", "common/classroom/TEACHING.md",
         "common/classroom/grader/README.md",
         "common/classroom/exercises/README.md", "loadtest/README.md", "loadtest/programs.md",
         "loadtest/companions/README.md", "loadtest/four-machines.md", "common/book/README.md", "common/tests/README.md", *CHAPTERS]
TRANSCRIPTS = {"common/README.md", "common/after.md", *CHAPTERS}
CLONE = "git clone ADDRESS zerohttpd; cd zerohttpd"  # makes the copy, too
COMMAND_SECONDS = 3600
OF_GIT = ("make dist", "loadtest/publish --list")  # which an unpacked release has not
ANYBODYS = dict(os.environ, GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory",
                GIT_CONFIG_VALUE_0="*")  # a repository of another user's
BUILT = ("build", ".mine", "bare", "iterative", "forking", "preforking", "threading",
         "prethreading", "poll", "epoll")

TYPED = ("type", "fail", "stay", "slow", "no")

Row = collections.namedtuple("Row", "page how command prints")
Command = collections.namedtuple("Command", "page line text")

# What begins a command, in a sentence or an indented block. A path alone may be only a name, so it
# counts if it is a program's, with a word behind it.
BEGINS = re.compile(
    r"(?:sudo |DEPS=no |[A-Z]+=[\w/.*]+ )*(?:make\b(?! it)|\./\w+ |podman (?:build|run)\b"
    r"|(?:loadtest|common/tools|common/tests/\w+|common/classroom/\w+|build/[\w/]+)/\w+ "
    r"|git (?:clone|tag)\b|patch (?:-R )?-p1 <\w|curl -s --retry |kill \$! |sysctl |ulimit |redis-server |taskset |nsenter |mpstat |nstat )")


def read_table():
    rows, page = [], None
    with open(TABLE, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("# "):
                page = line[2:]
            elif line:
                rows.append(Row(page, *line.split("\t")))
    return rows


def tidy(text):
    """Without the remark behind it: after `#`, or after a gap."""
    return re.sub(r"\s{2,}#.*|(?<=\w)\s{3,}(?=[a-z])(?!--).*", "", text).strip()


def commands_of(page):
    """The commands that a page shows outside of its transcripts."""
    document = markdown.Document(page, Path(os.path.join(TOP, page)).read_text("utf-8"))
    found = [Command(page, line, text) for line, text in document.spans
             if BEGINS.match(text + " ") and (" " in text or text == "make")]
    found += [Command(page, each.line, tidy(each.lines[0])) for each in document.indented
              if BEGINS.match(each.lines[0] + " ")]
    for block in document.blocks:
        if block.info == "console" and page not in TRANSCRIPTS and "TEACHING" not in page:
            found += [Command(page, each.line, each.text) for each in terminals.commands_of(block)]
        elif block.info == "sh":
            text = "\n".join(block.lines).replace("\\\n    ", "")
            found += [Command(page, block.line, tidy(line)) for line in text.split("\n")
                      if BEGINS.match(line.strip() + " ")]
    return found


def commands_of_help():
    """Those of `make help`: the target, and the words that its line shows."""
    listing = subprocess.check_output(["make", "--no-print-directory", "help"], cwd=TOP, encoding="utf-8")
    return [Command("make help", number, "make " + line.split()[1])
            for number, line in enumerate(listing.splitlines(), 1)]


def all_commands():
    return commands_of_help() + [command for page in PAGES for command in commands_of(page)]


def transcripts():
    """(page, step) for each step of the pages that test_transcripts.py types."""
    for page in sorted(TRANSCRIPTS):
        document = markdown.Document(page, Path(os.path.join(TOP, page)).read_text("utf-8"))
        yield from ((page, step) for step in terminals.steps(document) if not step.is_text)


def transcribed():
    """{command: its test} of what other tests type from the pages."""
    found = {}
    for _, step in transcripts():
        by = "not run: " + step.why_not if step.why_not else "common/tests/book/test_transcripts.py"
        found.update((each.text, by) for each in step.commands)
    with open(os.path.join(TOP, test_teaching.PAGE), encoding="utf-8") as file:
        for _, commands in test_teaching.sections(file.read()):
            found.update((each.text, "common/tests/exercises/test_teaching.py")
                         for each in commands)
    return found


def measured():
    """A row for each command that test_transcripts.py leaves out because it measures."""
    return [Row(page, "slow", each.text, "") for page, step in transcripts()
            if (step.why_not or "").startswith("measures")
            for each in step.commands if not each.stays]


def matching(row, texts):
    return fnmatch.filter(texts, row.command.replace("[", "[[]"))


def who_runs(command, rows, typed):
    """What runs it: a row's `how`, or a test. None: nothing."""
    for row in rows:
        if matching(row, [command.text]):
            return row.how
    return typed.get(command.text)


# ---- typing ------------------------------------------------------------------------------------


class Session:
    def __init__(self, folder, say):
        self._say = say
        self.faults = []
        environment = terminals.environment(CFLAGS="-O0", LC_ALL="C.UTF-8", LOAD_SECONDS="1", QUICK="1")
        environment.pop("PATIENCE", None)
        self._first = terminals.First(folder, environment, 0)
        self._second = terminals.Terminal(folder, environment)
        self._staying = None

    def do(self, row):
        begun = time.monotonic()
        if row.how == "stay":
            self.end_first()
            self._staying = row
            self._first.begin(row.command)
            terminals.wait(lambda: self._first.idle
                           or re.search(row.prints, self._first.output, re.M), COMMAND_SECONDS)
            self._judge(row, self._first.output, not self._first.idle, begun)
            return
        status, output = self._second.type(row.command, COMMAND_SECONDS)
        self._judge(row, output, (status == 0) == (row.how != "fail"), begun)

    def _judge(self, row, output, right, begun):
        right = right and re.search(row.prints, output, re.M)
        self._say("%s: %s: %s (%.0f s)" % (row.page, row.command, "ok" if right else "NOT OK",
                                          time.monotonic() - begun))
        if not right:
            self.faults.append("%s: %s\n  does not print %s, or has failed:\n%s" % (
                row.page, row.command, row.prints, output[-3000:]))

    def end_first(self):
        if self._staying:
            self._first.interrupt()
            self._staying = None

    def close(self):
        self.end_first()
        for each in (self._first, self._second):
            each.close()


def make_copy(folder):
    """The project as it is here, with its history if it has one, and without what was built."""
    if not os.path.exists(os.path.join(TOP, ".git")):  # an unpacked release
        shutil.copytree(TOP, folder, symlinks=True, ignore=shutil.ignore_patterns(*BUILT))
        return
    subprocess.run(["bash", "-c", CLONE.replace("ADDRESS", '"$0"'), TOP], check=True,
                   cwd=os.path.dirname(folder), env=ANYBODYS, stderr=subprocess.DEVNULL)
    changes = git(TOP, "diff", "--binary", "HEAD")
    if changes:
        subprocess.run(["git", "apply", "-"], cwd=folder, input=changes, check=True)


def git(folder, *words):
    return subprocess.check_output(["git", *words], cwd=folder, env=ANYBODYS)


def state_of(folder):
    """What differs from the commit."""
    return (git(folder, "status", "--porcelain") + git(folder, "diff")).decode()


def type_rows(hows, part, say=print):
    """Types the rows of these kinds, or a part of them. Returns the faults. No page may change a file of the
    project's, as a `make format` that finds something to do would."""
    faults = []
    with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
        copy = os.path.join(folder, "zerohttpd")  # as the first page calls it
        make_copy(copy)
        history = os.path.exists(os.path.join(copy, ".git"))
        before = history and state_of(copy)
        rows = [row for row in read_table() + measured() if row.how in hows
                and (history or row.command not in OF_GIT)
                and part in ("all", "first" if row.page == PAGES[0] else "rest")]
        for page in dict.fromkeys(row.page for row in rows):
            session = Session(copy, say)
            try:
                for row in rows:
                    if row.page == page:
                        session.do(row)
            finally:
                session.close()
            faults += session.faults
            if history and state_of(copy) != before:
                before = state_of(copy)
                faults.append("%s: its commands have changed the project:\n%s" % (page, before))
    return faults


def start(*options):
    """The process that types the rows, on a network of its own."""
    return terminals.start_apart(terminals.apart(), os.path.abspath(__file__), "--here", *options)


def main(arguments):
    if "--here" not in arguments:
        return terminals.show(start(*arguments))
    part = "first" if "--first" in arguments else "rest" if "--rest" in arguments else "all"
    faults = type_rows({"slow"} if "--slow" in arguments else {"type", "stay", "fail"}, part)
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
