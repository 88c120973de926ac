"""case: one of the seven servers, and the programs that are its clients.

Each server runs once, for all of its tests: with a Redis of its own, and with a copy of public/
and templates/ to which a large file is added. At its end it must have said nothing on standard
error and leave with status 0, so that what a sanitizer finds is a failure as well.

Whatever is started or written lies under FOLDER; both are gone when Python ends, however it ends
(kill -9 excepted).
"""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(TOP, "loadtest"))

from lib.measuring import processes
from lib.subjects import redis, servers

FOLDER = tempfile.mkdtemp(prefix="zerohttpd.")
ROOT = os.path.join(FOLDER, "root")
LARGE_BYTES = 16 << 20
SOON_SECONDS = 20  # for what should happen at once: if not by then, it never will

# Nobody's settings, proxies or habits: our clients read no file of the user's, and write none.
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": FOLDER, "TMPDIR": FOLDER, "LC_ALL": "C.UTF-8"}


def patience(seconds):
    """A limit of time, longer where sanitizers make everything slower."""
    return seconds * float(os.environ.get("PATIENCE", "1"))


def set_up():
    for number in processes.SIGNALS:  # a KeyboardInterrupt, which unittest does not swallow
        signal.signal(number, signal.default_int_handler)
    for each in ("public", "templates"):
        shutil.copytree(os.path.join(TOP, each), os.path.join(ROOT, each))
    subprocess.run(["chmod", "-R", "u+w", ROOT], check=True)  # the project's may be read-only
    with open(public("large.bin"), "wb") as large:
        large.write(os.urandom(LARGE_BYTES))


@atexit.register
def tidy_up():
    processes.end_all()
    shutil.rmtree(FOLDER)


def public(name):
    return os.path.join(ROOT, "public", name)


def contents(path):
    with open(path, "rb") as file:
        return file.read()


class Server(servers.Server):
    """One of the seven, from its banner to end()."""

    def __init__(self, name, port=0):
        self.folder = tempfile.mkdtemp(prefix=name + ".", dir=FOLDER)
        self.redis = redis.start_private(os.path.join(self.folder, "redis"), None)
        super().__init__(
            os.path.join(TOP, os.environ.get("SERVERS", "."), name), self.redis.where, None,
            os.path.join(self.folder, "out"), [
                "--port", str(port), "--root", ROOT,
                "--timeout", str(3 * SOON_SECONDS),  # who is held stays as long as we look
                *(["--workers", "8"] if name.startswith("pre") else [])], errors=os.path.join(self.folder, "err"))
        self.start(self._command)
        self.await_ready(self._banner, patience(SOON_SECONDS))
        self.url = self._banner().group(1)
        where = urllib.parse.urlsplit(self.url)
        self.host, self.port = where.hostname, where.port

    def end(self):
        status, said = super().end(), processes.printed(self._errors)
        if status or said:
            raise AssertionError("the server left with status %d, and said: %s" % (status, said))


class Case(unittest.TestCase):
    """What every client's tests are made of. test_clients.py gives each of the seven a class."""

    server_name = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.server_name)
        cls.addClassCleanup(cls.server.end)

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=self.server.folder)

    def url(self, path):
        return self.server.url + path

    def place(self, name):
        """A file of this test's own."""
        return os.path.join(self.folder, name)

    def run_client(self, program, *arguments, said=b""):
        """Runs a client to its end, which must be a success. Returns what it printed, and what
        it printed as errors. Skips the test if there is no such program."""
        if not shutil.which(program):
            self.skipTest(program + " is not installed")
        done = subprocess.run([program, *arguments], input=said, cwd=self.folder, env=ENVIRONMENT,
                              capture_output=True, check=False, timeout=patience(SOON_SECONDS))
        out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, 0, " ".join([program, *arguments, out, err]))
        return out, err

    def begin_download(self, name, length):
        """A file that somebody stopped downloading after so many bytes."""
        with open(self.place(name), "wb") as partly:
            partly.write(contents(public(name))[:length])

    def assert_same_file(self, path, name):
        """Is this what lies in public/ under that name? (assertEqual would print it all.)"""
        self.assertTrue(contents(path) == contents(public(name)), "%s is not as it was" % name)

    def entries(self):
        return self.server.redis.number("LLEN", redis.ENTRIES)

    def newest_entry(self):
        """The name and the remarks, as the guestbook keeps them."""
        return self.server.redis.ask("LINDEX", redis.ENTRIES, "-1").split("\n", 2)[1:]

    def visitors(self):
        return self.server.redis.number("GET", redis.VISITORS)
