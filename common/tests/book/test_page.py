"""The page that README.md adds to the servers: does the patch fit, is it built, is it served?"""

import email.utils
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import book

sys.path.insert(0, os.path.join(book.TOP, "loadtest"))

from lib import processes, servers

NEEDED = ("README.md", "Makefile", "common", "loadtest", "07_epoll")
BUILT = ("build/plain/common", "build/plain/07_epoll")  # spares most of the building


class Page(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="zerohttpd.")
        self.addCleanup(shutil.rmtree, self.top)
        self.addCleanup(processes.end_all)
        for path in NEEDED + BUILT:
            there = os.path.join(book.TOP, path)
            if os.path.isdir(there):
                shutil.copytree(there, os.path.join(self.top, path))
            elif os.path.exists(there):
                shutil.copy2(there, self.top)
        subprocess.run(["chmod", "-R", "u+w", self.top], check=True)  # ours may be read-only

    def test_the_page_of_the_readme_is_served(self):
        if not shutil.which("patch"):
            self.skipTest("patch is not installed")
        self.run_here("patch", "--fuzz=0", "-p1", said=book_text("README.md"))
        self.assertNotIn("warning:", self.run_here("make", "epoll"))
        with servers.Server(os.path.join(self.top, "epoll"), "127.0.0.1:1", None,
                            os.path.join(self.top, "log")) as server:
            with urllib.request.urlopen(server.url + "/time", timeout=20) as answer:
                self.assertEqual(answer.headers["Content-Type"], "text/plain")
                self.assertIsNotNone(email.utils.parsedate(answer.read().decode()))

    def run_here(self, *command, said=""):
        """With nothing of the make that runs us: SAN= would build something else."""
        done = subprocess.run(command, cwd=self.top, env={"PATH": os.environ["PATH"]}, input=said,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout


def book_text(path):
    with open(os.path.join(book.TOP, path), encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    unittest.main()
