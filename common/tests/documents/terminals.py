"""terminals: a bash on a pseudo-terminal, with all that a reader has there, on a machine of its own."""

import contextlib
import fcntl
import os
import platform
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.append(os.path.join(TOP, "common/tools/lib"))

import proc
import waiting

LIMIT_SECONDS = 300  # for a command
LATER_SECONDS = 20  # for a line that is printed after its command has ended
AGAIN_SECONDS = 20  # for a Ctrl-C
POLL_SECONDS = 0.02
MARK = "=ready="  # the prompt
READY = r"listening on |Ctrl-C ends them all"  # what stays says so

NEEDS = ("unshare", "setsid", "ss", "bash", "git", "strace", "ab", "wrk", "redis-server", "tcpdump", "curl", "ps", "gdb")
# The words before a command that run it on a network of its own. Its processes end with it.
APART = ["unshare", *([] if os.getuid() == 0 else ["--map-root-user"]), "--net", "--pid", "--fork", "--mount-proc",
         "--kill-child", "sh", "-c",
         # The shell stays: the first process has to wait for those whose parents have ended.
         'PATH=$PATH:/usr/sbin:/sbin; ip link set lo up && "$@"; exit $?', "sh"]


# The transcripts are of the first of these systems, and typed.LOOSE knows where the second one prints something else.
# Elsewhere ps, ss, strace and curl write other lines.
RELEASES = "bookworm", "trixie"


def why_not():
    if platform.freedesktop_os_release().get("VERSION_CODENAME") not in RELEASES:
        return "the transcripts are of Debian 12"
    for tool in NEEDS:
        if not shutil.which(tool):
            return "%s is not installed; make deps brings it" % tool
    if subprocess.run([*APART, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        return "unshare(1) may not give a page a network of its own here"
    return None


def environment(ours=os.environ, **more):
    """Without what a make that runs us has said, and with more."""
    of_make = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "OUT", "SAN", "PLAIN", "SERVERS", "PARTS", "ONLY")
    return {**{name: value for name, value in ours.items() if name not in of_make}, **more}


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
        return waiting.until(lambda: self.idle or self._shell.poll() is not None, seconds)

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
            waiting.until(lambda: self.idle or self._has_a_program(), AGAIN_SECONDS)
            if not self.idle:
                os.write(self._master, b"\x03")
                self._await_prompt(AGAIN_SECONDS)

    def _has_a_program(self):
        """Is a program in the foreground? A child that the shell has just made is none yet."""
        group = os.tcgetpgrp(self._master)
        words, of_shell = (proc.read("/proc/%d/cmdline" % pid) for pid in (group, self._shell.pid))
        return group != self._shell.pid and words not in ("", of_shell)

    def close(self):
        """Nothing that was started here stays."""
        self._shell.send_signal(signal.SIGHUP)  # bash passes it on to its jobs
        for each in proc.family(self._shell.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self._shell.wait()
        self._reader.join(1)
        os.close(self._master)


def listens(port):
    """Does somebody listen there? To connect would be a visit."""
    return bool(subprocess.check_output(["ss", "-Hltn", "sport = :%d" % port]).strip())


class First(Terminal):
    """The terminal of what stays until Ctrl-C."""

    def __init__(self, folder, environment, port=None):
        super().__init__(folder, environment)
        self._port = port
        self.command = None

    def start(self, command):
        self.command = command
        self.begin(command.text)
        waiting.until(lambda: self.idle or re.search(command.service or READY, self.output)
             or self._port and listens(self._port), LIMIT_SECONDS)

    def end(self):
        """What it has printed. A line that was not at its end when Ctrl-C came is one, too."""
        before = self.output
        self.interrupt()
        # the prompt comes back with the parent's end, and its workers may hold the port for a moment more
        waiting.until(lambda: not (self._port and listens(self._port)), LATER_SECONDS)
        self.command = None
        return before + "\n" + self.output[len(before):]


def settle():
    """Until all processes here sleep, and are those of a moment ago: what was typed has happened."""
    before = None
    for _ in range(200):
        now = [(stat.pid, stat.state in "RD") for stat in proc.everybody() if stat.pid != os.getpid()]
        if now == before and not any(busy for _, busy in now):
            return
        before = now
        time.sleep(POLL_SECONDS)
