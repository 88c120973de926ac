"""The checker itself, on a project of its own with a fault in it: it must name the right line."""

import os
import shutil
import tempfile
import unittest

import book
import markdown
import project

FILES = {
    "Makefile": "all: $(BIN)epoll notes\n$(BIN)epoll bare:\n\t@echo $(PARTS)\nPARTS = unit $(EX)\n## help\nhelp:\ndeps-%:\n"
                ".PHONY: all help\n",
    "notes": "",
    "README.md": "# The top\n",
    "07_epoll/main.c": """\
/* An essay. */
int twice(int n)
{
    if (n > 0) {
        n *= 2;

        n += 0;
    }
    return n;
}

int main(void)
{
    return twice(0);
}
""",
    "07_epoll/README.md": "",  # the document that is checked
    "07_epoll/exercises/edge.md": "",
    "common/conn.c": "one\ntwo\n",
    "common/tests/run": "echo ${ONLY-}\n",
    "epoll": "#!/bin/sh\necho '  -p, --port N  -w, --workers N'\n",
    "loadtest/compare": "#!/usr/bin/env python3\nprint('[--levels LIST] [--dry-run]')\n",
    "loadtest/hosts": "#!/bin/sh\necho --begun\n",  # takes no options, and would begin
    "loadtest/lib/subjects/redis.py": 'os.environ.get("REDIS")\n',
    "build/old.c": "",
}

WRONG = (  # line of the one fault, words of it, document
    (3, "n *= 3;", "```diff 07_epoll/main.c\n if (n > 0) {\n-    n = 2;\n+    n *= 3;\n```"),
    (3, "n *= 2;", "```c 07_epoll/main.c\nif (n > 0) {\n  n *= 2;\n```"),  # moved unevenly
    (6, "n *= 3;", "Text.\n\n```c 07_epoll/main.c\n{\n    if (n > 0) {\n        n *= 3;\n\n        n += 0;\n```"),
    (3, "return n;", "```c 07_epoll/main.c\n{\n    return n;\n}\n```"),  # without a cut
    (4, "before", "```c 07_epoll/main.c\nint main(void)\n...\nint twice(int n)\n```"),
    (1, "nothing", "```c 07_epoll/main.c\n\n...\n```"), (1, "sketch", "```c\nint x;\n```"),
    (2, "nothing.md", "See [that\nother](nothing.md)."), (2, "b.png", '<picture>\n<img src="b.png" alt="">'),
    (3, "#twice-1", "# Twice\n\n[b](#twice-1)"), (1, "#L3", "[a](../common/conn.c#L3)"),
    (2, "nc.h", "Look at\n`nc.h`."), (3, "common/con.c", "\n```sh\nwc -l common/con.c\n```"),
    (3, "loadtest/compete", "Then:\n\n    loadtest/compete"),
    (2, "./epol", "```console\n$ ./epol\n./apol: not found\n```"),
    (4, "installl", "\n```sh\n$ make all\nmake help && make -s installl   # it\n```"),
    (1, "no exercise 07/egde", "`make all EX=07/egde`"), (1, "PRATS=", "`make all PRATS=unit`"),
    (3, "--cores", "\n```sh\ntaskset -c 0 ./epoll --port 0 \\\n    --cores 3\n```"),
    (1, "--delay", "`compare --delay 3`"),
    (1, "--wrokers", "The `--wrokers` option."), (1, "--begun", "The `--begun` option."))


class Checker(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        top = tempfile.mkdtemp(prefix="zerohttpd.")
        cls.addClassCleanup(shutil.rmtree, top)
        for path, text in FILES.items():
            os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
            with open(os.path.join(top, path), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(os.path.join(top, path), 0o755)
        cls.ours = project.Project(top)

    def test_what_is_wrong_has_one_on_its_line(self):
        for line, words, text in WRONG:
            with self.subTest(text):
                fault, = book.check(markdown.Document("07_epoll/README.md", text), self.ours)
                self.assertEqual(fault.line, line, fault)
                self.assertIn(words, fault.what)

    def test_paths_in_scripts_and_sources(self):
        for text, lines in (("common/tests/run: common/*.c\n-Icommon $(OUT)/common/old.o", []),
                            ('the rest is in common/tests/ and loadtest/compare.\na("loadtest/lib")', []),
                            ("all:\n\tcommon/exercises/list", [2]), ("$(wildcard common/*.py)", [1]),
                            ('os.path.join(TOP, "loadtest/run")', [1])):
            self.assertEqual([fault.line for fault in book.paths("Makefile", text, self.ours)], lines, text)
