"""case: one of the seven servers, and the programs that are its clients.

Each server runs once, for all of its tests: with a Redis of its own, and with a copy of public/
and templates/. At its end it must have said nothing on standard
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

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path[:0] = [os.path.join(TOP, "common/tools/lib"), os.path.join(TOP, "loadtest")]

import processes
import redis
import servers

FOLDER = tempfile.mkdtemp(prefix="zerohttpd.")
ROOT = os.path.join(FOLDER, "root")
SOON_SECONDS = 60  # for what should happen at once: if not by then, it never will

# Nobody's settings, proxies or habits: our clients read no file of the user's, and write none.
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": FOLDER, "TMPDIR": FOLDER, "LC_ALL": "C.UTF-8"}


def patience(seconds):
    """A limit of time, longer where sanitizers make everything slower."""
    return seconds * float(os.environ.get("PATIENCE", "1"))


def set_up():
    for number in processes.SIGNALS:  # a KeyboardInterrupt, which unittest does not swallow
        signal.signal(number, signal.default_int_handler)
    processes.PATIENCE_SECONDS = SOON_SECONDS  # with a machine that has much to do
    for each in ("public", "templates"):  # but public/book, which test_book.py makes and removes meanwhile
        shutil.copytree(os.path.join(TOP, each), os.path.join(ROOT, each), ignore=shutil.ignore_patterns("book"))
    subprocess.run(["chmod", "-R", "u+w", ROOT], check=True)  # the project's may be read-only


@atexit.register
def tidy_up():
    processes.end_all()
    shutil.rmtree(FOLDER)


def contents(path):
    with open(path, "rb") as file:
        return file.read()


class Server(servers.Server):
    """One of the seven, from its banner to end()."""

    def __init__(self, name, port=0):
        self.folder = tempfile.mkdtemp(prefix=name + ".", dir=FOLDER)
        self.redis = redis.start_private(os.path.join(self.folder, "redis"))
        super().__init__(
            os.path.join(TOP, os.environ.get("SERVERS", "."), name), self.redis.where, os.path.join(self.folder, "out"), [
                "--port", str(port), "--root", ROOT,
                "--timeout", str(2 * SOON_SECONDS),  # who is held stays as long as we look
                *(["--workers", "8"] if name.startswith("pre") else [])], errors=os.path.join(self.folder, "err"))
        self.start(self._command)
        self.await_ready(self._banner, patience(SOON_SECONDS))
        self.url = self._banner().group(1)

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
