#!/usr/bin/env python3
"""terminals: types the commands of a page, as a reader would, and says which printed lines do not
come.

    common/tests/book/terminals.py [--quiet] 03_preforking/README.md

- Where a page says to open new terminals, new ones are opened. What runs in the older ones is ended.
- A ```console block holds commands, behind $ (and > in the lines that continue them), and below
  each command the lines that it prints. A ```text block below holds what is printed later, in any
  terminal.
- A program that stays until Ctrl-C (a server, perhaps under strace) runs in the first terminal, until
  the page starts the next one. tcpdump and a private Redis have terminals of their own. All other
  commands are typed in the second terminal, each when the one before has ended.
- The text above a block is read too. A server in backticks or in an indented block (`./poll`) is
  started. A command of the second terminal in backticks (`visit /`, `curl ...`) is typed: above a
  block of the first terminal as soon as its server listens, and above any other block before it.
- A printed line must come, wherever in the output. `...` stands for anything. A number of two digits
  or more stands for any number, except a status of HTTP, and so does a digit that is alone in a
  column or counts ms. Addresses and dates stand for others, too, and so do the functions in which
  the kernel lets a process sleep. A call that strace shows in two lines is put together.
- `<!-- not run: WHY -->` before a block says that it is not typed, nor compared.

Every page is typed on a machine of its own: unshare(1) gives it a network, processes and a Redis, so
that it may use port 8000 and end servers by name. As a program it prints all that each terminal
printed, then a line for each fault, and then how many blocks were run, and which were not.
"""

import collections
import contextlib
import fcntl
import glob
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.dont_write_bytecode = True  # leaves no __pycache__ among the sources

import markdown

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

LIMIT_SECONDS = 300  # for a command
LATER_SECONDS = 20  # for a line that is printed after its command has ended
AGAIN_SECONDS = 20  # for a Ctrl-C
POLL_SECONDS = 0.02
MARK = "=ready="  # the prompt

# The transcripts are of this system. Elsewhere ps, ss, strace and curl write other lines.
RELEASE = "bookworm"


def environment(ours=os.environ, **more):
    """Without what a make that runs us has said, and with more."""
    of_make = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "OUT", "SAN", "PLAIN", "SERVERS", "PARTS", "ONLY", "AGAIN")
    return {**{name: value for name, value in ours.items() if name not in of_make}, **more}


def is_the_system():
    with contextlib.suppress(OSError), open("/etc/os-release", encoding="utf-8") as file:
        return "VERSION_CODENAME=%s\n" % RELEASE in file.read()
    return False

STAYS = re.compile(  # until Ctrl-C
    r"make serve$|(make bare && |\(ulimit -n \d+; )?(strace .*|\S+/climb --run \w+ )?"
    r"(\./|/tmp/)[\w./]+( -.*|\))?( 2>&1 \| grep .*)?$")
SERVICES = {"common/tools/redis": "unix:", "sudo tcpdump": "listening on lo"}
REDIS = "redis-server --save '' --daemonize yes"  # as chapter 1 starts one
FRESH = re.compile(r"Open (two|three) new terminals in the project's top folder, all running bash, and end "
                   r"what still runs in older ones\.")
SECOND = re.compile(r"(visit|curl -s|kill|for|sleep) ")  # typed, if a sentence says so
NOT_RUN = re.compile(r"<!-- not run: (.*) -->$")
NEEDS = (  # of a page
    "unshare", "setsid", "ss", "bash", "strace", "ab", "wrk", "redis-server", "tcpdump", "curl", "ps", "gdb")


# ---- commands and what they print ---------------------------------------------------------------

class Command:
    """One command, and the lines below it."""

    def __init__(self, line, text):
        self.line = line
        self.text = text
        self.printed = []

    @property
    def stays(self):
        return bool(STAYS.match(self.text))

    @property
    def service(self):
        """If it stays beside a server: what it prints when it is ready."""
        return next((ready for name, ready in SERVICES.items() if self.text.startswith(name)), None)

    def unprinted(self, output):
        return list(unprinted(self.printed, output))


def unprinted(wanted_lines, output):
    lines = [" ".join(line.split()) for line in whole(re.split(r"[\r\n]", output))]
    for wanted in whole(wanted_lines):
        if wanted.strip() in ("", "..."):
            continue
        found = next(filter(pattern(wanted).fullmatch, lines), None) or resumed(wanted, lines)
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


LOOSE = re.compile(
    r"(?P<any>\.\.\.)|(?P<status>\b(?:200|404|408|431|503)\b)|(?P<address>0x[0-9a-f.]+)"
    r"|(?P<number>\d[\d.,]*\d|\d(?= ms\b| voluntary| involuntary)|(?<=accept4 resumed>\) = )\d)"
    r"|(?P<date>\b[MTWFS][a-z]{2}, \d\d \w+)|(?P<state>(?<= )S(?=l?\+? ))|(?P<nice>(?<= [TZ])(?=\+? ))"
    r"|(?P<path>unix:\S+)"
    r"|(?P<kernel>\b(?:futex_\w*wait\w*|wait_woken|inet_csk_accept|do_sigtimedwait|sigsuspend)(?:\.isra\S*)?)")
STANDS_FOR = {"any": ".*", "address": "0x[0-9a-f]+", "number": r"\d[\d.,]*", "path": r"unix:\S+",
              "date": r"\w+, \d\d \w+", "state": "[SRD][<N]?", "nice": "[<N]?",
              "kernel": r"[\w.-]+"}


def pattern(line):
    """What a printed line has to be."""
    line = re.sub(r"(?<=\s\s)\d(?=\s)", "00", line)  # alone in its column
    line, text, end = " ".join(line.split()), "", 0
    for found in LOOSE.finditer(line):
        text += re.escape(line[end:found.start()])
        text += STANDS_FOR.get(found.lastgroup, re.escape(found.group()))
        end = found.end()
    return re.compile(text + re.escape(line[end:]))


def commands_of(block):
    found = []
    for number, line in enumerate(block.lines, block.line):
        if line.startswith("$ "):
            found.append(Command(number, line[2:]))
        elif line.startswith("> ") and not found[-1].printed:
            found[-1].text += "\n" + line[2:]
        else:
            found[-1].printed.append(line)
    return found


# ---- a terminal ---------------------------------------------------------------------------------

class Terminal:
    """A bash on a pseudo-terminal, with all that a reader has there: Ctrl-C, jobs, whole lines."""

    def __init__(self, folder, environment):
        self._master, slave = pty.openpty()
        modes = termios.tcgetattr(slave)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
        self._shell = subprocess.Popen(
            # what runs in the background ignores Ctrl-C, and so would all that it starts
            ["setsid", "--ctty", "env", "--default-signal", "bash", "--norc", "--noediting", "-i"],
            cwd=folder, stdin=slave, stdout=slave, stderr=slave,
            env={**environment, "PS1": "\n%s $?\n" % MARK, "PS2": "", "TERM": "dumb",
                 "HISTFILE": ""})
        os.close(slave)
        self._text, self._from, self._prompts = b"", 0, 1
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._await_prompt(LIMIT_SECONDS)

    def _read(self):
        with contextlib.suppress(OSError):  # EIO: nobody has the terminal open any more
            while True:
                self._text += os.read(self._master, 65536)

    def _await_prompt(self, seconds):
        return wait(lambda: self.idle or self._shell.poll() is not None, seconds)

    @property
    def idle(self):
        return self._text.count(MARK.encode()) >= self._prompts

    @property
    def output(self):
        """What was printed since something was typed."""
        text = self._text[self._from:].decode("utf-8", "replace").replace("\r\n", "\n")
        return re.sub(r"\n?%s \d+\n|\x1b\[[\d;]*[A-Za-z]" % MARK, "", text)  # nor colours

    def begin(self, text):
        """Types a command, and does not wait for its end."""
        self._from = len(self._text)
        self._write(text)

    def _write(self, text):
        self._prompts += 1
        os.write(self._master, text.encode() + b"\n")

    def type(self, text, seconds=LIMIT_SECONDS):
        """Its status, and what was printed by its end."""
        self.begin(text)
        if not self._await_prompt(seconds):
            raise AssertionError("%s: not done in %d s\n%s" % (text, seconds, self.output))
        status = re.findall(rb"%s (\d+)" % MARK.encode(), self._text)[-1]
        return int(status), self.output

    def interrupt(self):
        """Ctrl-C, and again if it does not help; of a program that was stopped, in the foreground.
        A second one would end a server at once, and leave its children to themselves."""
        if self.idle and "Stopped" in self.output:
            self._write("fg")
        deadline = time.monotonic() + LIMIT_SECONDS
        while not self.idle and time.monotonic() < deadline:
            # The shell would not pass it on, and take back a line that it has not read yet.
            wait(lambda: self.idle or self._has_a_program(), AGAIN_SECONDS)
            if not self.idle:
                os.write(self._master, b"\x03")
                self._await_prompt(AGAIN_SECONDS)

    def _has_a_program(self):
        """Is a program in the foreground? A child that the shell has just made is none yet."""
        group = os.tcgetpgrp(self._master)
        return group != self._shell.pid and command_line(group) not in (b"", command_line(self._shell.pid))

    def close(self):
        """Nothing that was started here stays."""
        self._shell.send_signal(signal.SIGHUP)  # bash passes it on to its jobs
        for each in sessions(self._shell.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self._shell.wait()
        self._reader.join(1)
        os.close(self._master)


def command_line(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read()
    except OSError:
        return b""


def sessions(session):
    return [pid for pid, fields in processes() if int(fields[3]) == session]


def processes():
    """[(pid, fields of /proc/PID/stat behind the name)] of all there are."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
            found.append((int(path.split("/")[2]), file.read().rpartition(")")[2].split()))
    return found


def wait(until, seconds):
    deadline = time.monotonic() + seconds
    while not until():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def listens(port):
    """Does somebody listen there? To connect would be a visit."""
    return bool(subprocess.check_output(["ss", "-Hltn", "sport = :%d" % port]).strip())


class First(Terminal):
    """The terminal of what stays until Ctrl-C."""

    def __init__(self, folder, environment, port):
        super().__init__(folder, environment)
        self._port = port
        self.command = None

    def start(self, command):
        self.command = command
        self.begin(command.text)
        ready = "Ctrl-C ends them all" if command.text == "make serve" else command.service
        wait(lambda: self.idle or (ready in self.output if ready else listens(self._port)),
             LIMIT_SECONDS)

    def end(self):
        """What it has printed. A line that was not at its end when Ctrl-C came is one, too."""
        before = self.output
        self.interrupt()
        return before + "\n" + self.output[len(before):]


# ---- a page -------------------------------------------------------------------------------------

# commands: of a text block its lines; why_not: None, or why it is not typed or not compared; fresh: in
# new terminals
Step = collections.namedtuple("Step", "line is_text commands why_not fresh", defaults=[False])


def steps(document):
    """What a reader does with a page, in order."""
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
        if block.info == "text" and typed_here:
            yield Step(block.line, True, block.lines, why_not)
        elif block.info == "console":
            typed_here, commands = True, commands_of(block)
            started = [each for each in said if each.stays]
            typed = [each for each in said if SECOND.match(each.text)]
            first = commands[0].stays or commands[0].service
            yield Step(block.line, False,
                       commands + typed if first else started + typed + commands, why_not, fresh)
            fresh = False


class Page:
    """Types a page. Afterwards: faults, run (how many blocks) and not_run [(line, why)]."""

    def __init__(self, path, text, folder, say=lambda text: None):
        self.faults, self.run, self.not_run = [], 0, []
        self._path, self._say = path, say
        self._steps = list(steps(markdown.Document(path, text.replace("/tmp/", folder + "/tmp/"))))
        self._needs_redis = "Redis" in text and "redis-cli ping" in text or "Redis runs as" in text
        self._environment = environment(DEPS="no", CFLAGS="-O0", LC_ALL="C.UTF-8")
        self.first = self.second = None
        self._others = {}  # the terminals of services, by their first word
        self._paths = {}  # of a Redis: as printed on the page, and as it is

    def type(self):
        try:
            self._type_steps()
        finally:
            self._close()

    def _open(self):
        self._close()
        self.first = First(TOP, self._environment, 8000)
        self.second = Terminal(TOP, self._environment)
        if self._needs_redis and not listens(6379):
            self.second.type(REDIS)
            wait(lambda: listens(6379), LATER_SECONDS)

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
            if step.fresh:
                self._open()
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

    def _do(self, command):
        for shown, path in self._paths.items():
            command.text = command.text.replace(shown, path)
        settle()
        if command.service:
            self._serve(command)
        elif command.stays:
            self._end_first()
            self.first.start(command)
        else:
            self.second.type(command.text)
            wait(lambda: not command.unprinted(self.second.output), LATER_SECONDS)
            self._compare(command, command.printed, self.second.output)

    def _serve(self, command):
        name = command.text.split()[0]
        if name in self._others:
            self._others[name].interrupt()
        else:
            self._others[name] = First(TOP, self._environment, 0)
            self._others[name].type('sudo() { "$@"; }')
        self._others[name].start(command)
        for shown in filter(lambda line: line.startswith("unix:"), command.printed):
            self._paths[shown] = re.search(r"unix:\S+", self._others[name].output)[0]

    def _end_first(self):
        command = self.first.command
        if command:
            wait(lambda: not command.unprinted(self.first.output), LATER_SECONDS)
            self._compare(command, command.printed, self.first.end())
            self.first.command = None

    def _look_for(self, step):
        if self.first.command and "strace -c " in self.first.command.text:
            self.first.interrupt()  # it prints only then
        def output():
            return "\n".join(each.output for each in (self.first, self.second, *self._others.values()))
        wait(lambda: not list(unprinted(step.commands, output())), LATER_SECONDS)
        self._compare(Command(step.line, "(printed later)"), step.commands, output())

    def _compare(self, command, wanted, output):
        self._say("%s:%d: $ %s\n%s" % (self._path, command.line, command.text, output))
        missing = list(unprinted(wanted, output))
        if missing:
            self.faults.append("%s:%d: %s\n  does not print:\n%s\n  but:\n%s" % (
                self._path, command.line, command.text, "\n".join(missing),
                "\n".join(output.splitlines()[-60:])))


def settle():
    """Until all processes here sleep, and are those of a moment ago: what was typed has happened."""
    before = None
    for _ in range(200):
        now = [(pid, fields[0] in "RD") for pid, fields in processes() if pid != os.getpid()]
        if now == before and not any(busy for _, busy in now):
            return
        before = now
        time.sleep(POLL_SECONDS)


# ---- a machine for it ---------------------------------------------------------------------------

def apart(prepare="true"):
    """The words before a command that run it on a network of its own. Its processes end with it."""
    return ["unshare", *([] if os.getuid() == 0 else ["--map-root-user"]), "--net", "--pid",
            "--fork", "--mount-proc", "--kill-child", "sh", "-c",
            # The shell stays: the first process has to wait for those whose parents have ended.
            'PATH=$PATH:/usr/sbin:/sbin; ip link set lo up && %s && "$@"; exit $?' % prepare, "sh"]


APART = apart("mount -t tmpfs none build/mine && mount -t tmpfs none build/serve")


def why_not():
    for tool in NEEDS:
        if not shutil.which(tool):
            return "%s is not installed; make deps brings it" % tool
    for folder in ("build/mine", "build/serve"):
        os.makedirs(os.path.join(TOP, folder), exist_ok=True)
    if subprocess.run([*APART, "true"], cwd=TOP, stderr=subprocess.DEVNULL, check=False).returncode:
        return "unshare(1) may not give a page a network of its own here"
    return None


def start_apart(words, *script):
    """The process of a script of Python's, behind the words that give it a machine of its own."""
    return subprocess.Popen([*words, sys.executable, *script], cwd=TOP, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")


def start(path, *options):
    return start_apart(APART, os.path.abspath(__file__), "--here", *options, path)


def show(process):
    for line in process.stdout:
        print(line, end="", flush=True)
    return process.wait()


def main(arguments):
    path = arguments[-1]
    if "--here" not in arguments:
        reason = why_not()
        if reason:
            sys.exit("terminals: " + reason)
        return show(start(path, *arguments[:-1]))
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        text = file.read()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
        os.mkdir(os.path.join(folder, "tmp"))
        page = Page(path, text, folder, (lambda text: None) if "--quiet" in arguments else print)
        page.type()
    for each in page.faults:
        print(each)
    for line, why in page.not_run:
        print("%s:%d: not run: %s" % (path, line, why))
    print("%s: %d blocks run, %d not, %d faults, %.0f s" % (
        path, page.run, len(page.not_run), len(page.faults), time.monotonic() - begun))
    return 1 if page.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
