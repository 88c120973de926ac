"""make lab: of servers that a reader may write, the right ones pass, and each wrong one is told what was seen."""

import concurrent.futures
import os
import re
import runpy
import shutil
import subprocess
import tempfile
import unittest

import place
import checks
import lab_variants
from test_bare import FILES, read

LAB = os.path.join(place.TOP, "common", "classroom", "lab", "lab")
LAB_S = runpy.run_path(LAB)
WITHIN = ["python3", "-Bc", "import os, runpy, sys; sys.path.insert(0, os.path.dirname(sys.argv[1])); "
          "lab = runpy.run_path(sys.argv[1]); exec(sys.argv[2])", LAB]
AT_ONCE = 4 * (os.cpu_count() or 1)  # so the machine is busy: they mostly wait


class Verdicts(unittest.TestCase):
    def setUp(self):
        checks.make("instruments")
        folder = tempfile.TemporaryDirectory(prefix="zerohttpd.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def in_c(self, name, word, changes=()):
        """The command line of a variant. Instead of changes: whose it is."""
        word = word if isinstance(changes, list) else changes or word
        number, _, page = str(word).partition("/")
        text = read(os.path.join(os.path.dirname(FILES[int(number) - 1]), (page or "bare") + ".c"))
        for old, new in changes if isinstance(changes, list) else ():
            self.assertIn(old, text, name)
            text = text.replace(old, new)
        how, path = LAB_S["PAGES"][page or "bare"], self.written(name + ".c", text)
        return "%s %s" % (LAB_S["build"](path, path[:-2], "-w", *how.libraries, *how.watched), how.arguments)

    def in_another(self, name, _page, language, text):
        return "%s %s {port} {redis_port}" % (language, self.written(name, text))

    def written(self, name, text):
        path = os.path.join(self.folder, re.sub(r"[^\w.]", "", name))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_a_right_server_passes_and_a_wrong_one_is_told_what_was_seen(self):
        pages = [*range(1, 8), *("%d/ask" % number for number in range(1, 8)), "5/queue"]
        cases = {"chapter %s" % page: (page, None, self.in_c) for page in pages}
        cases.update({name: (page, None, self.in_c, changes) for name, (page, changes) in lab_variants.RIGHT.items()})
        cases.update({name: (page, saw, self.in_c, changes) for name, (page, changes, saw) in lab_variants.WRONG.items()})
        cases.update({name: (page, None, self.in_another, "python3", "CHAPTER = %s\n" % str(page)[0] + lab_variants.BEGINNING + text)
                      for name, (page, text) in lab_variants.PYTHON.items()})
        if shutil.which("node"):
            cases["node.js"] = 7, None, self.in_another, "node", lab_variants.NODE

        def tried(name):
            page, _, made, *of = cases[name]
            done = subprocess.run([LAB, str(page)], cwd=place.TOP, env={**os.environ, "SERVER": made(name, page, *of)}, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False)
            return done.returncode, done.stdout

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            told = dict(zip(cases, pool.map(tried, cases)))
        for name, (_, saw, *_) in cases.items():
            with self.subTest(name):
                status, said = told[name]
                self.assertEqual(1 if saw else 0, status, said)
                if saw:
                    self.assertRegex(said, "(?s)  saw     .*(%s)" % saw)
                    self.assertRegex(said, r'\n  read on: \w+/README.md:\d+, "')  # the words are there

    def test_whoever_reads_the_first_lines_only_sees_no_traceback(self):
        done = subprocess.run("make -s exercises | head -2", shell=True, cwd=place.TOP, capture_output=True, encoding="utf-8", check=False)
        self.assertEqual((2, ""), (done.stdout.count("\n"), done.stderr))

    def test_the_history_is_kept_beside_a_hand_in_and_does_not_hide_it(self):
        with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
            os.makedirs(os.path.join(folder, ".mine", "01_iterative"))
            for name in ("bare.c", "01_iterative/queue.c"):
                open(os.path.join(folder, ".mine", name), "w", encoding="utf-8").close()
            with open(os.path.join(folder, ".gitconfig"), "w", encoding="utf-8") as file:  # keep must not heed it
                file.write("[commit]\ngpgSign=true\n[tag]\ngpgSign=true\n[core]\nhooksPath=.\nexcludesFile=%s/all\n" % folder)
            with open(os.path.join(folder, "all"), "w", encoding="utf-8") as file:
                file.write("*.c\n")
            own = {"PATH": os.environ["PATH"], "HOME": folder}
            forged = {"GIT_AUTHOR_DATE": "2001-01-01T00:00:00", "GIT_COMMITTER_DATE": "2001-01-01T00:00:00"}
            subprocess.run([*WITHIN, "lab['keep'](1, 'bare')"], cwd=folder, check=True, capture_output=True, env={**own, **forged})
            kept = subprocess.check_output(["git", "--git-dir=.mine/lab.git", "log", "--format=%as %cs"], cwd=folder, encoding="utf-8")
            again = ["git", "--git-dir=.mine/lab.git", "--work-tree=.mine", "commit", "--allow-empty", "-qam", "what the lab saw"]
            for command in (["git", "init", "-q"], again, ["git", "add", "-f", ".mine"]):
                subprocess.run(command, cwd=folder, check=True, capture_output=True, env={**own, "GIT_CONFIG_GLOBAL": os.devnull})
            found = subprocess.run(["git", "ls-files"], cwd=folder, check=True, capture_output=True, encoding="utf-8").stdout
        self.assertNotIn("2001", kept)
        for name in ("bare.c", "01_iterative/queue.c", "lab.git/refs/tags/chapter-1"):
            self.assertIn(".mine/%s\n" % name, found)

    def test_all_seven_that_ask_are_drawn_and_chapter_1_alone_is_a_staircase(self):
        os.mkdir(os.path.join(self.folder, ".mine"))

        def told(words):
            return subprocess.run([*WITHIN, words], cwd=self.folder, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout

        for number, path in enumerate(FILES, 1):
            for name in ("bare.c", "ask.c"):
                shutil.copy(os.path.join(os.path.dirname(path), name), os.path.join(self.folder, ".mine"))
            told("lab['keep'](%d, 'bare'); lab['keep'](%d, 'ask')" % (number, number))
            if number == 6:
                self.assertRegex(told("lab['look_back']()"), r'\nnext: 07_epoll/README.md:\d+, "Your server", then make lab CH=7\n')
        waits = dict(re.findall(r"(\w+) +(\d+) ms\n", told("lab['look_back']()").partition("Redis 30 ms away")[2]))
        self.assertEqual(7, len(waits))
        self.assertGreaterEqual(int(waits.pop("iterative")), 4 * 30)
        self.assertLess(max(map(int, waits.values())), 3 * 30)
        for name in ("bare.svg", "ask.svg"):
            self.assertTrue(os.path.exists(os.path.join(self.folder, ".mine", name)))


if __name__ == "__main__":
    unittest.main()
