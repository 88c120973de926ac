"""Does whatever runs in the cage come to its end, with all that it has started?"""

import os
import sys
import tempfile
import time
import unittest
from pathlib import Path

import place  # noqa: F401  (finds the grader)
import cage

SECONDS = 20
FORKS = """
import os, time
while True:
    try:
        if os.fork() == 0: time.sleep(600)
    except OSError:
        time.sleep(0.01)
"""
HIDES = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("%s", "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
os.wait()
"""


class Cage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.log = os.path.join(self.folder, "log")
        cage.adopt_orphans()

    def run_python(self, text, seconds=SECONDS, **more):
        started = time.monotonic()
        found = cage.run([sys.executable, "-c", text], self.folder, self.log, seconds, **more)
        self.assertLess(time.monotonic() - started, 2 * SECONDS)
        self.assertEqual([], [stat.pid for stat in cage.descendants()])
        return found

    def test_who_behaves_is_left_alone(self):
        self.assertEqual((3, None), self.run_python("print('hello'); raise SystemExit(3)"))
        self.assertEqual("hello\n", Path(self.log).read_text("utf-8"))

    def test_who_hangs_is_ended(self):
        status, why = self.run_python("import time; time.sleep(600)", seconds=0.5)
        self.assertEqual((-9, "it was not done within 0 s"), (status, why))

    def test_who_forks_without_end_is_ended(self):
        _, why = self.run_python(FORKS, most_tasks=50)
        self.assertIn("processes", why)

    def test_who_writes_without_end_is_ended(self):
        text = "import os\nwhile True: os.write(1, b'x' * 65536)"
        most, cage.MOST_FOLDER = cage.MOST_FOLDER, 8 << 20
        self.addCleanup(setattr, cage, "MOST_FOLDER", most)
        _, why = self.run_python(text)
        self.assertRegex(why, r"\d+ MiB were written")

    def test_who_hides_is_found(self):
        """A daemon, in a session of its own, whose parents have ended."""
        path = os.path.join(self.folder, "pid")
        self.assertEqual((0, None), self.run_python(HIDES % path))
        if os.path.exists(path) and os.path.getsize(path):  # it may have ended before it wrote
            self.assertFalse(os.path.exists("/proc/" + Path(path).read_text("ascii")))
