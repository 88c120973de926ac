"""jail: what keeps a student's program to itself, as far as this machine allows it.

- a user of its own, with a number that has no name, if we are root here;
- namespaces: its own processes, network, mounts and semaphores (namespaces(7)); without root's
  rights these need a user namespace, which not every machine gives;
- limits for each process (prlimit(1)), and for all together (the grader's cage).

It finds out once what works. missing() says in words what does not.
"""

import os
import pwd
import shutil
import subprocess

LIMITS = ["prlimit", "--core=0", "--cpu=10:11", "--fsize=%d" % (64 << 20)]
COMPILER = [*LIMITS, "--as=%d" % (2 << 30)]
PROGRAM = [*LIMITS, "--as=%d" % (24 << 30)]  # a thousand threads reserve much, and touch little

SPACES = ["unshare", "--net", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
ROOT_IN_IT = ["--user", "--map-root-user"]
NO_RIGHTS = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
FIRST_USER, USERS = 61184, 4000  # systemd leaves these to programs that need one for a moment


class Jail:
    def __init__(self, spaces, user):
        self.spaces = spaces  # words to come before a command; [] if there are none
        self.user = user  # a number, or None

    def before(self, limits, most_tasks):
        """The words before a command of the student's."""
        others = 0 if self.user else tasks()  # the limit may count them, too
        return [*limits, "--nproc=%d" % (most_tasks + others), *self._rights()]

    def _rights(self):
        if self.user:
            return [*NO_RIGHTS, "--reuid=%d" % self.user, "--regid=%d" % self.user,
                    "--clear-groups"]
        return NO_RIGHTS if self.spaces else []

    def give(self, folder):
        """Lets the student's program write there."""
        if self.user:
            os.chown(folder, self.user, self.user)

    def missing(self):
        """What it does not keep from, in words."""
        if not self.user:
            yield "a user of its own: it has your rights, and may read, change and delete your " \
                "files (make collect, as root, gives it one)"
        if not self.spaces:
            yield "namespaces of its own: it sees your processes, and reaches your network"


def tasks():
    """All threads of the machine."""
    with open("/proc/loadavg", encoding="ascii") as file:
        return int(file.read().split()[3].partition("/")[2])


def build():
    """A Jail as good as can be had here; another process's has another user."""
    user = None if os.geteuid() else user_without_name()
    if user and not works(Jail([], user).before(LIMITS, 100)):
        user = None
    for spaces in (SPACES, [*SPACES, *ROOT_IN_IT]):
        if works(spaces):
            return Jail(spaces, user)
    return Jail([], user)


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
    return bool(shutil.which(words[0])) and not subprocess.run(
        [*words, "true"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, check=False).returncode
