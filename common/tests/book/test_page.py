"""The page that common/ADD_A_PAGE.md adds to the servers: do its commands work as they are printed?"""

import os
import shutil
import socket
import subprocess
import tempfile
import unittest

import book
import markdown

PAGE = "common/ADD_A_PAGE.md"
PORT = "8000"  # which somebody may use: the only thing that is changed in the commands
NEEDED = ("Makefile", "common", "loadtest", "07_epoll", "public", "templates")
BUILT = ("build/plain/common", "build/plain/07_epoll")  # spares most of the building


class Page(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="zerohttpd.")
        self.addCleanup(shutil.rmtree, self.top)
        for path in NEEDED + BUILT:
            there = os.path.join(book.TOP, path)
            if os.path.isdir(there):
                shutil.copytree(there, os.path.join(self.top, path))
            elif os.path.exists(there):
                shutil.copy2(there, self.top)
        subprocess.run(["chmod", "-R", "u+w", self.top], check=True)  # ours may be read-only

    @unittest.skipUnless(shutil.which("patch") and shutil.which("curl"), "no patch, or no curl")
    def test_its_commands_add_the_page_serve_it_and_stop_the_server(self):
        before = read(self.top, "common", "app.c")
        commands, = (block.lines for block in markdown.Document(PAGE, read(book.TOP, PAGE)).blocks
                     if block.info == "sh")
        commands = "\n".join(commands).replace(PORT, free_port())
        said = self.run_here("trap 'kill $(jobs -p) 2>/dev/null || :' EXIT\n%s\nwait" % commands)
        self.assertRegex(said, r"(?m)^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$")
        self.assertNotRegex(said, "offset|fuzz|warning:")
        self.run_here("patch -R -p1 <%s" % PAGE)
        self.assertEqual(before, read(self.top, "common", "app.c"))

    def run_here(self, commands):
        """With nothing of the make that runs us: SAN= would build something else. A server that the
        commands do not stop makes the shell wait for it, until timeout(1) ends both."""
        done = subprocess.run(["timeout", "300", "bash", "-ec", commands], cwd=self.top,
                              env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as holder:
        return str(holder.getsockname()[1])


def read(*names):
    with open(os.path.join(*names), encoding="utf-8") as file:
        return file.read()
