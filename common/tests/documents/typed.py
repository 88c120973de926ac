#!/usr/bin/env python3
"""typed: types what the pages tell somebody to type, each page in a copy of the project and on a network of its own.

    typed.py [--quiet] [PAGE]...

- A ```console block holds commands, behind $ (and > in the lines that continue them), and below each command the
  lines that it prints. In the chapters and the other pages in TRANSCRIPTS these are typed:
    - Where a page says to open new terminals, new ones are opened. What runs in the older ones is ended.
    - A ```text block below holds what is printed later, in any terminal.
    - The text above a block is read too. A server in backticks or in an indented block (`./poll`) is started. A
      command of the second terminal in backticks (`visit /`, `curl ...`) is typed: above a block of the first
      terminal as soon as its server listens, and above any other block before it.
    - A ```diff block of a chapter's bare.c is typed into .mine/bare.c, which is that of the chapter before at first,
      without its first comment. One of another file of the chapter, but its main.c, is typed into a copy of that.
    - `<!-- not run: WHY -->` before a block says that it is not typed, nor compared.
- The teacher's page is read as a class would: `make course` makes the copy, and the blocks of each section are typed
  in the order of the page.
- No other page is typed.
- A program that stays until Ctrl-C (a server, perhaps under strace) runs in the first terminal, until the page
  starts the next one. tcpdump, a private Redis and slow_redis have terminals of their own. All other commands are
  typed in the second terminal, each when the one before has ended.
- A printed line must come, wherever in the output. `...` stands for anything. Times, dates, pids, addresses, clients'
  ports and a digit that is alone in a column stand for any other, and so do the functions in which the kernel lets a
  process sleep. A count of kB or ms stands for one of about as many digits. All other numbers have to be those of the
  page, unless it says otherwise: `<!-- varies: 57 1083 -->` before a block names numbers that stand for others,
  ten thousand times larger or smaller at most. A call that strace shows in two lines is put together.

It prints all that each terminal printed, unless it is to be quiet, then a line for each fault, and then how many
steps were taken, and which were not.
"""

import collections
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leaves no __pycache__ among the sources

import edits
import markdown
import project
from terminals import APART, LATER_SECONDS, TOP, First, Terminal, environment, listens, settle, waiting, why_not

AT_ONCE = 6  # they mostly wait
STAYS = re.compile(  # until Ctrl-C
    r"(?!.* --(help|version))(make ([\w-]+ )?serve.*|build/mine/.*|(make bare && |\(ulimit -n \d+; )?"
    r"((\w+=\S+ )*|strace .*)(\./|/tmp/|build/bare/)[\w./-]+( -.*|( \d+)+|\))?( 2>&1 \| grep .*)?)$")
SHORT = {"LOAD_SECONDS": "1", "QUICK": "1"}  # experiments, unless they are compared
MINE = "zerohttpd/.mine"
EDITED = re.compile(r"diff 0\d_\w+/(?!main\.c)(\w+\.c)")  # in .mine/
TEACHING = "common/classroom/TEACHING.md"
TRANSCRIPTS = re.compile(r"0[1-7]_\w+/(?!exercises)(\w+/)?README\.md|common/(README|book/after|book/ADD_A_PAGE)\.md")
SERVICES = {"common/tools/redis": "unix:", "sudo tcpdump": "listening on lo",
            "build/plain/loadtest/slow_redis": "listening on"}
REDIS = "redis-server --save '' --daemonize yes"  # as chapter 1 starts one
FRESH = re.compile(r"Open (two|three) new terminals\b")
SECOND = re.compile(r"(visit|curl -s|kill|for|sleep) ")  # typed, if a sentence says so
NOT_RUN = re.compile(r"<!-- not run: (.*) -->$")
VARYING = re.compile(r"<!-- varies: (.*) -->$")


# ---- commands and what they print ---------------------------------------------------------------

class Command:
    """One command, and the lines below it."""

    def __init__(self, line, text, must=False, varying=()):
        self.line = line
        self.varying = varying  # numbers in what is printed
        self.text = text
        self.must = must  # stay, or end with status 0, if nothing is printed below it
        self.printed = []

    @property
    def stays(self):
        return bool(STAYS.match(self.text)) and not self.text.endswith("&")

    @property
    def service(self):
        """If it stays beside a server: what it prints when it is ready."""
        return next((ready for name, ready in SERVICES.items() if self.text.startswith(name)), None)

    def unprinted(self, output):
        return list(unprinted(self.printed, output, self.varying))


def unprinted(wanted_lines, output, varying=()):
    lines = [" ".join(line.split()) for line in whole(re.split(r"[\r\n]", output))]
    for wanted in whole(wanted_lines):
        if wanted.strip() in ("", "..."):
            continue
        found = next(filter(pattern(wanted, varying).fullmatch, lines), None) or resumed(wanted, lines)
        if found is None:
            yield wanted
        else:
            lines.remove(found)


def resumed(wanted, lines):
    """The second half of a call, if a page's grep has hidden the first one: it ends as is wanted."""
    for line in lines:
        half = re.fullmatch(r"<\.\.\. (\w+) resumed>(.*)", line)
        if half and wanted.startswith(half[1] + "(") and pattern(
                wanted.rpartition(", ")[2]).fullmatch(half[2].rpartition(", ")[2]):
            return line
    return None


def whole(lines):
    """The lines of strace -f without pids, and with each call in one."""
    begun, found = {}, []
    for line in lines:
        pid, text = re.fullmatch(r"(\[pid +\d+\] )?(.*)", line).groups()
        start = re.fullmatch(r"(.*) <unfinished \.\.\.>", text)
        rest = re.fullmatch(r"<\.\.\. \w+ resumed>(.*)", text)
        if start:
            begun[pid] = start[1]
        else:
            found.append(begun.pop(pid) + rest[1] if rest and pid in begun else text)
    return found


def amount(text, spread=1):
    """A number of about as many digits."""
    digits = sum(map(str.isdigit, text))
    return r"(?:\d,?){%d,%d}" % (max(1, digits - spread), digits + spread)


def rough(text):
    return amount(text, 4)


# What a printed line may say otherwise: as on the page, as in the output.
LOOSE = [
    (r"\.\.\.", ".*"),
    (r"\0", r"\d[\d.,]*"),  # a digit alone in its column
    (r"\bdata=\{u32=\d+, u64=\d+\}", r"data=(?:\{u32=\d+, u64=\d+\}|0x[0-9a-f]+)"),
    (r"(?:0x[0-9a-f]+|parent_tid=\[\d+\]\}, 88)\) = \d+$", r".*\) = \d+"),  # a new process or thread
    (r"0x[0-9a-f.]+", "0x[0-9a-f]+"),
    (r"unix:\S+", r"unix:\S+"),
    (r"^\d+(?: [\d\0]+)?(?= [RSDTZ][<Nl+]*(?: |$)| \w+$)", r"\d+(?: \d+)?"),  # ps: PID, and PPID
    (r"(?<===)\d+(?===)|(?<=\bpid=)\d+|(?<=\bLWP )\d+", r"\d+"),
    (r"(?<=:)[3-6]\d{4}\b", r"\d+"),  # a client's port
    (r"\b\d{4}-\d\d-\d\dT[\d:]{8}Z", r"\d{4}-\d\d-\d\dT[\d:]{8}Z"),
    (r"(?<=0m)10\.\d+", r"10\.\d+"),  # a deadline: its seconds are not loose
    (r"(?<![\d.])\d+\.\d+(?!\.?\d)", r"\d+(?:\.\d+)?"),  # a time, or a share
    (r"(?<=\.\d{6} )\d+(?= \d)", r"\d+"),  # strace -c: usecs/call
    (r"\d[\d,]*(?= (?:kB|KiB|ms|milliseconds|voluntary|involuntary)\b)", amount),
    (r"(?<= )S(?=l?\+? )", "[SRD][<N]?"),
    (r"(?<= [TZ])(?=\+? )", "[<N]?"),
    (r" Process$", "(?: Process)?"),  # the next ones are of Debian's two releases
    (r"\bCouldn't\b", "Could(?:n't| not)"),
    (r"\b(?:futex_\w*wait\w*|wait_woken|inet_csk_accept|do_sigtimedwait|sigsuspend)(?:\.isra\S*)?", r"[\w.-]+"),
]


def pattern(line, varying=()):
    """What a printed line has to be."""
    kinds = LOOSE + [(r"(?<![\d.,])%s(?![\d.,]*\d)" % re.escape(number), rough) for number in varying]
    line = re.sub(r"(?<=\s\s)\d(?=\s)", "\0", line)  # alone in its column
    line, text, end = " ".join(line.split()), "", 0
    for found in re.finditer("|".join("(%s)" % on_page for on_page, _ in kinds), line):
        printed = kinds[found.lastindex - 1][1]
        text += re.escape(line[end:found.start()]) + (printed if isinstance(printed, str) else printed(found.group()))
        end = found.end()
    return re.compile(text + re.escape(line[end:]))


def commands_of(block, must=False, varying=()):
    found = []
    for number, line in enumerate(block.lines, block.line):
        if line.startswith("$ "):
            found.append(Command(number, line[2:], must, varying))
        elif line.startswith("> ") and not found[-1].printed:
            found[-1].text += "\n" + line[2:]
        else:
            found[-1].printed.append(line)
    return found


# ---- a page -------------------------------------------------------------------------------------

# commands: of a text block its lines; why_not: None, or why it is not typed or not compared; fresh: in new terminals;
# edited: the file into which its commands, the lines of a diff, are typed; where: the folder; varying: numbers of a
# text block
Step = collections.namedtuple("Step", "line is_text commands why_not fresh edited where varying",
                              defaults=[None, False, None, "zerohttpd", ()])


def transcripts(document):
    """What a reader does with a chapter, in order."""
    above, typed_here, fresh, blocks = 0, False, False, sorted(document.blocks)
    places = sorted([(line, "typed", text) for line, text in document.spans]
                    + [(each.line, "typed", each.lines[0].strip()) for each in document.indented]
                    + [(number, "heading", "")
                       for number, line in enumerate(document.prose.split("\n"), 1)
                       if markdown.HEADING.match(line)])
    for block in blocks:
        said = []
        for line, what, text in places:
            if above < line < block.line:
                said = [] if what == "heading" else said + [Command(line, text)]
                typed_here = typed_here and what != "heading"
        text = " ".join(" ".join(document.prose.split("\n")[above:block.line]).split())
        fresh = fresh or bool(FRESH.search(text))
        above = block.line + len(block.lines)
        before = next((line for line in reversed(document.lines[:block.line - 2]) if line), "")
        marked = NOT_RUN.match(before)
        why_not = marked[1] if marked else None
        varying = (VARYING.match(before) or ("", ""))[1].split()
        edited = EDITED.fullmatch(block.info)
        if edited:
            yield Step(block.line, False, block.lines, None, False, edited[1])
        elif block.info == "text" and typed_here:
            yield Step(block.line, True, block.lines, why_not, varying=varying)
        elif block.info == "console":
            typed_here, commands = True, commands_of(block, varying=varying)
            started = [each for each in said if each.stays]
            typed = [each for each in said if SECOND.match(each.text)]
            first = commands[0].stays or commands[0].service
            yield Step(block.line, False,
                       commands + typed if first else started + typed + commands, why_not, fresh)
            fresh = False


def lessons(document):
    """The commands of each section in a class's copy, which the first section makes."""
    found = {}
    headings = [(number, match[1]) for number, line in enumerate(document.lines, 1)
                for match in [markdown.HEADING.match(line)] if match]
    for block in document.blocks:
        if block.info == "console":
            heading = [name for number, name in headings if number < block.line][-1]
            found.setdefault(heading, []).append(block)
    for i, blocks in enumerate(found.values()):
        for j, block in enumerate(blocks):
            yield Step(block.line, False, commands_of(block, True), fresh=j == 0, where="course" if i else "zerohttpd")


class Page:
    """Types a page. Afterwards: faults, run (how many steps) and not_run [(line, why)]."""

    def __init__(self, path, folder, say):
        self.faults, self.run, self.not_run = [], 0, []
        self._path, self._folder, self._say = path, folder, say
        text = project.read(os.path.join(TOP, path))
        document = markdown.Document(path, text.replace("/tmp/", folder + "/tmp/"))
        is_transcript = TRANSCRIPTS.fullmatch(path)
        self._steps = list(transcripts(document) if is_transcript else lessons(document))
        self._needs_redis = "Redis" in text and "redis-cli ping" in text or "Redis runs as" in text
        self._environment = environment(DEPS="no", CFLAGS="-O0", LC_ALL="C.UTF-8", **({} if is_transcript else SHORT))
        self.first = self.second = None
        self._others = {}  # the terminals of services, by their first word
        self._paths = {}  # of a Redis: as printed on the page, and as it is

    def type(self):
        make_copy(self._place("zerohttpd"), self._path)
        try:
            self._type_steps()
        finally:
            self._close()

    def _place(self, name):
        return os.path.join(self._folder, name)

    def _open(self, where):
        self._close()
        self.first = First(self._place(where), self._environment, 8000)
        self.second = Terminal(self._place(where), self._environment)
        if self._needs_redis and not listens(6379):
            self.second.type(REDIS)
            waiting.until(lambda: listens(6379), LATER_SECONDS)

    def _close(self):
        if self.first:
            self._end_first()
        for each in filter(None, (self.first, *self._others.values(), self.second)):
            each.interrupt()  # a private Redis takes its folder along
            each.close()
        self.first = self.second = None
        self._others.clear()

    def _type_steps(self):
        typed = False  # was the last console block?
        for step in self._steps:
            if step.edited:
                self._edit(step)
                continue
            if step.fresh or not self.first:
                self._open(step.where)
            if step.is_text:
                if typed and not step.why_not:
                    self._look_for(step)
                continue
            typed = not step.why_not
            if not typed:
                self.not_run.append((step.line, step.why_not))
                continue
            self.run += 1
            for each in step.commands:
                self._do(each)

    def _edit(self, step):
        mine = os.path.join(self._place(MINE), step.edited)
        begun = os.path.exists(mine)
        text = project.read(mine if begun else os.path.join(self._place(MINE), "bare.c"))
        try:
            text = edits.typed(text, step.commands)
        except ValueError as error:
            self.faults.append("%s:%d: %s" % (self._path, step.line, error))
        with open(mine, "w", encoding="utf-8") as file:
            file.write(text)

    def _do(self, command):
        for shown, path in self._paths.items():
            command.text = command.text.replace(shown, path)
        settle()
        if command.service:
            self._serve(command)
        elif command.stays:
            if command.must and self.first.command and self.first.command.text == command.text:
                return  # it still does
            self._end_first()
            self.first.start(command)
            if command.must and self.first.idle:
                self._has_failed(command, [], self.first.output)
        else:
            status, output = self.second.type(command.text)
            if command.must and status and not command.printed:
                self._has_failed(command, [], output)
            waiting.until(lambda: not command.unprinted(self.second.output), LATER_SECONDS)
            self._compare(command, command.printed, self.second.output)

    def _serve(self, command):
        name = command.text.split()[0]
        if name in self._others:
            self._others[name].interrupt()
        else:
            self._others[name] = First(self._place("zerohttpd"), self._environment)
            # tcpdump stays root: nobody else exists in an ordinary user's name-space, whose root may not
            # even set its groups (user_namespaces(7)). strace says that it has.
            self._others[name].type('sudo() { strace -qq -o /dev/null -e trace=setgroups '
                                    '-e inject=setgroups:retval=0 "$1" -Z root "${@:2}"; }')
        self._others[name].start(command)
        for shown in filter(lambda line: line.startswith("unix:"), command.printed):
            self._paths[shown] = re.search(r"unix:\S+", self._others[name].output)[0]

    def _end_first(self):
        command = self.first.command
        if command:
            waiting.until(lambda: not command.unprinted(self.first.output), LATER_SECONDS)
            self._compare(command, command.printed, self.first.end())

    def _look_for(self, step):
        if self.first.command and "strace -c " in self.first.command.text:
            self.first.interrupt()  # it prints only then
        def output():
            return "\n".join(each.output for each in (self.first, self.second, *self._others.values()))
        later = Command(step.line, "(printed later)", varying=step.varying)
        waiting.until(lambda: not list(unprinted(step.commands, output(), step.varying)), LATER_SECONDS)
        self._compare(later, step.commands, output())

    def _compare(self, command, wanted, output):
        self._say("%s:%d: $ %s\n%s" % (self._path, command.line, command.text, output))
        missing = list(unprinted(wanted, output, command.varying))
        if missing or "Traceback (most recent" in output:
            self._has_failed(command, missing, output)

    def _has_failed(self, command, missing, output):
        self.faults.append("%s:%d: %s\n  has failed, or does not print:\n%s\n  but:\n%s" % (
            self._path, command.line, command.text, "\n".join(missing), "\n".join(output.splitlines()[-60:])))


# ---- a copy for it ------------------------------------------------------------------------------

# Whatever other parts of the tests build or lock meanwhile.
NOT_COPIED = {".": [".mine"], ".git": ["index.lock"], "public": ["book"],
              "build/plain": ["unit", "servers", "weather"], "build/plain/common": ["tests"]}


def not_copied(folder, names):
    inside = os.path.relpath(folder, TOP)
    left = set(names) - {"plain", "bare"} if inside == "build" else NOT_COPIED.get(inside, ())
    return {"__pycache__", *left}


def make_copy(folder, page):
    """The project with its history, if it has one, and what the transcripts use of what was built; and .mine/bare.c
    as a reader has it who comes to this page."""
    shutil.copytree(TOP, folder, symlinks=True, ignore=not_copied)
    bares = sorted(glob.glob(os.path.join(glob.escape(folder), "0[1-7]_*", "bare.c")))
    number = [os.path.dirname(each) for each in bares].index(os.path.dirname(os.path.join(folder, page))) \
        if re.fullmatch(r"0\d_\w+/README\.md", page) else 0
    mine = os.path.join(os.path.dirname(folder), MINE)
    os.makedirs(mine)
    with open(os.path.join(mine, "bare.c"), "w", encoding="utf-8") as file:
        file.write(edits.without_essay(project.read(bares[max(0, number - 1)])))


def pages():
    return [page for page in project.Project(TOP).documents() if TRANSCRIPTS.fullmatch(page) or page == TEACHING]


def type_page(path, quiet):
    """Types it, on this machine. Returns how many faults there are."""
    with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
        os.mkdir(os.path.join(folder, "tmp"))
        page = Page(path, folder, (lambda text: None) if quiet else print)
        if path == TEACHING and not os.path.exists(os.path.join(TOP, ".git")):
            return 0  # it begins "in your clone": make course asks git what belongs to the project
        page.type()
    print(*page.faults, *("%s:%d: not run: %s" % (path, line, why) for line, why in page.not_run),
          "%s: %d steps taken, %d not, %d faults" % (path, page.run, len(page.not_run), len(page.faults)), sep="\n")
    return len(page.faults)


def each_page_does_what_it_says(named, options):
    """Each on a machine of its own, at the same time. Is it so? One page alone is heard while it is typed."""
    def typed(page):
        return subprocess.run([*APART, sys.executable, os.path.abspath(__file__), "--here", *options, page], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if named[1:] else None,
                              stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = dict(zip(named, pool.map(typed, named)))
    for page, each in done.items():
        print("%s ... %s" % (page, "FAIL" if each.returncode else "ok"))
    for page, each in done.items():
        if each.returncode or " not run: " in (each.stdout or ""):
            print("%s: %s\n%s" % ("FAIL" if each.returncode else "Not all", page, each.stdout or ""))
    return not any(each.returncode for each in done.values())


def main(arguments):
    options = [each for each in arguments if each.startswith("--")]
    named = [each for each in arguments if not each.startswith("--")] or pages()
    if "--here" in options:
        os.environ.update(GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")
        return 1 if type_page(named[0], "--quiet" in options) else 0
    reason = why_not()
    if reason:
        print("typed ... skipped: " + reason)
        return 0
    return 0 if each_page_does_what_it_says(named, options) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
