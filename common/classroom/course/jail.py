"""jail: what keeps a student's program to itself, as far as this machine allows it.

- a user of its own, with a number that has no name, if we are root here;
- a sandbox by bubblewrap (bwrap(1)): its own processes, its own network, and files of which it can
  change nothing but what is in its folder. Not every machine and container lets it make one;
- a session keyring of its own (keyrings(7)): in ours may be tickets of Kerberos, or a disk's keys;
- limits for each process (prlimit(1)), and for all together (the grader's cage).

It finds out once what works. missing() says in words what does not.
"""

import ctypes
import errno
import os
import pwd
import re
import shutil
import subprocess

import project_copy

LIMITS = ["prlimit", "--core=0", "--cpu=10:11", "--fsize=%d" % (64 << 20)]
COMPILER = [*LIMITS, "--as=%d" % (2 << 30)]
PROGRAM = [*LIMITS, "--as=%d" % (24 << 30)]  # a thousand threads reserve much, and touch little
SANITIZED = LIMITS  # the address sanitizer reserves terabytes; the cage looks at what is touched

SANDBOX = ["bwrap", "--die-with-parent", "--unshare-net", "--unshare-ipc", "--unshare-pid",
           "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
AS_ROOT = ["--cap-add", "ALL"]  # for the check, which becomes the student's user
EMPTY = ["/tmp", "/var/tmp", "/run", "/dev/shm"]  # in the sandbox: others keep things there
MOST_IN_MEMORY = 256 << 20  # bytes of files in each of these
NO_RIGHTS = ["setpriv", "--pdeathsig=keep", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
FIRST_USER, USERS = 61184, 4000  # systemd leaves these to programs that need one for a moment
KEYCTL, JOIN_SESSION_KEYRING = {"x86_64": 250, "aarch64": 219, "riscv64": 219}, 1  # no libc knows the call
REDIS_USER = FIRST_USER + USERS


class Jail:
    def __init__(self, sandbox, user, has_keys=False):
        self.sandbox = sandbox  # the words that make one; [] if there is none
        self.has_keys = has_keys  # our session's
        self.user = user  # a number, or None

    def around(self, folder, hidden=()):
        """The words before a check, which may write to `folder` alone. It sees nothing of what is
        `hidden`, or lies beside `folder`."""
        words = list(self.sandbox)
        if not words:
            return []
        for place in filter(os.path.isdir, EMPTY):
            words += ["--perms", "1777", "--size", str(MOST_IN_MEMORY), "--tmpfs", place]
        for project in filter(None, [topmost(project_copy.TOP)]):
            words += ["--ro-bind", project, project]
        for place in [*hidden, os.path.dirname(folder)]:
            around = (project_copy.TOP + os.sep).startswith(place + os.sep)
            if os.path.isdir(place) and place not in EMPTY and not around:
                words += ["--perms", "0711", "--tmpfs", place]
        return [*words, "--bind", folder, folder]

    def before(self, limits, most_tasks):
        """The words before a command of the student's."""
        others = 0 if self.user else tasks()  # the limit may count them, too
        return [*limits, "--nproc=%d" % (most_tasks + others), *self.rights()]

    def may_run(self, path, folder, hidden=()):
        """May the student's user read and execute that file, in the sandbox of `folder`?"""
        return succeeds([*self.around(folder, hidden), *self.rights(), "test", "-r", path, "-a", "-x",
                         path])

    def rights(self):
        """The words by which the superuser becomes the student's user."""
        if self.user:
            return [*NO_RIGHTS, "--reuid=%d" % self.user, "--regid=%d" % self.user,
                    "--clear-groups"]
        return NO_RIGHTS if self.sandbox else []

    def give(self, folder):
        """Lets the student's program write there."""
        if self.user:
            os.chown(folder, self.user, self.user)

    def missing(self):
        """What it does not keep from, in words."""
        if not self.user:
            yield "a user of its own: it has your rights, and may read, change and delete your " \
                "files (it gets one from root, if everybody may read the project)"
        if self.has_keys:
            yield "a session keyring of its own: it may read the keys in yours (keyctl show)"
        if not self.sandbox:
            yield "a sandbox: it sees your processes and other hand-ins, reaches your network, and writes where every" \
                " user may (bubblewrap makes one, if this machine lets it)"


def topmost(path):
    """The folder below one of the EMPTY ones that a path leads through; None if it leads through
    none. This is shown again, because bwrap makes no folder that other users may enter."""
    return next((os.path.join(empty, os.path.relpath(path, empty).split(os.sep)[0])
                 for empty in EMPTY if path.startswith(empty + os.sep)), None)


def for_redis(folder):
    """The Jail of a private Redis, to whose socket a student's program comes: as root, Redis would do
    for the program whatever that can talk it into."""
    other = Jail([], None if os.geteuid() else REDIS_USER)
    keeper = os.path.join(project_copy.TOP, "common", "tools", "redis")
    return other if other.may_run(keeper, folder) else Jail([], None)


def open_redis(start, folder):
    """The Redis that start() starts in a new folder, for other users."""
    os.mkdir(folder)
    other = for_redis(folder)
    other.give(folder)
    return opened(start(folder, None, under=other.rights()))


def opened(redis):
    """Lets other users come to its socket."""
    path = redis.where[len("unix:"):]
    os.chmod(os.path.dirname(path), 0o711)
    os.chmod(path, 0o777)
    return redis


def tasks():
    """All threads of the machine."""
    with open("/proc/loadavg", encoding="ascii") as file:
        return int(file.read().split()[3].partition("/")[2])


def build():
    """A Jail as good as can be had here; another process's has another user. From here on our own
    process has left its session's keys, too."""
    user = None if os.geteuid() else user_without_name()
    if user and not works(Jail([], user).before(LIMITS, 100)):
        user = None
    sandbox = SANDBOX + (AS_ROOT if user else [])
    tried = [*sandbox, "--perms", "1777", "--size", str(MOST_IN_MEMORY), "--tmpfs", "/tmp"]
    return Jail(sandbox if works(tried) else [], user, not leave_keyring())


def leave_keyring():
    """Joins a new session keyring, which those that we start will have. True if they come to no key
    of ours; so it is where nobody may make that call (seccomp), or the kernel has none."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = KEYCTL.get(os.uname().machine)
    return bool(number) and (libc.syscall(number, JOIN_SESSION_KEYRING, None) >= 0
                             or ctypes.get_errno() in (errno.EPERM, errno.ENOSYS))


def may_look():
    """May we look at another user's processes? In a container, root may not (CAP_SYS_PTRACE, 19)."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        return bool(int(re.search(r"^CapEff:\s*(\w+)", file.read(), re.MULTILINE)[1], 16) >> 19 & 1)


def user_without_name():
    """A number that no other user has: processes are limited by user."""
    user = FIRST_USER + os.getpid() % USERS
    while True:
        try:
            pwd.getpwuid(user)
        except KeyError:
            return user
        user += 1


def works(words):
    return bool(shutil.which(words[0])) and succeeds([*words, "true"])


def succeeds(command):
    return not subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode
