"""make lab: of servers that a reader may write, the right ones pass, and each wrong one is told what was seen."""

import concurrent.futures
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import place
import checks
import lab_variants
from test_bare import FILES, read

LAB = os.path.join(place.TOP, "common", "classroom", "lab", "lab")
AT_ONCE = 2 * (os.cpu_count() or 1)  # so the machine is busy


class Verdicts(unittest.TestCase):
    def setUp(self):
        checks.make("instruments")
        folder = tempfile.TemporaryDirectory(prefix="zerohttpd.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def in_c(self, name, number, changes=()):
        """The command line of a variant. Instead of changes: the chapter whose bare.c it is."""
        text = read(FILES[(changes if isinstance(changes, int) else number) - 1])
        for old, new in [] if isinstance(changes, int) else changes:
            self.assertIn(old, text, name)
            text = text.replace(old, new)
        program = os.path.join(self.folder, re.sub(r"\W", "", name))
        subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-g", "-O1", "-pthread", "-x", "c", "-", "-o", program], input=text.encode(), check=True)
        return program + " {port}"

    def in_another(self, name, language, text):
        path = os.path.join(self.folder, re.sub(r"[^\w.]", "", name))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return "%s %s {port}" % (language, path)

    def test_a_right_server_passes_and_a_wrong_one_is_told_what_was_seen(self):
        cases = {"chapter %d" % number: (number, self.in_c("chapter %d" % number, number), None) for number in range(1, 8)}
        cases.update({name: (case[0], self.in_c(name, *case), None) for name, case in lab_variants.RIGHT.items()})
        cases.update({name: (case[0], self.in_c(name, *case[:2]), case[2]) for name, case in lab_variants.WRONG.items()})
        cases.update({name: (number, self.in_another(name, "python3", "CHAPTER = %d\n" % number + lab_variants.BEGINNING + text), None)
                      for name, (number, text) in lab_variants.PYTHON.items()})
        if shutil.which("node"):
            cases["node"] = lab_variants.NODE[0], self.in_another("a.js", "node", lab_variants.NODE[1]), None

        def tried(case):
            done = subprocess.run([LAB, str(case[0])], cwd=place.TOP, env={**os.environ, "SERVER": case[1]}, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False)
            return done.returncode, done.stdout

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            told = dict(zip(cases, pool.map(tried, cases.values())))
        for name, (_, _, saw) in cases.items():
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
        lab = os.path.join(place.TOP, "common", "classroom", "lab")
        keep = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[1] + '/lab')['keep'](1)"
        with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
            os.makedirs(os.path.join(folder, ".mine", "01_iterative"))
            for name in ("bare.c", "01_iterative/gone.c"):
                open(os.path.join(folder, ".mine", name), "w", encoding="utf-8").close()
            again = ["git", "--git-dir=.mine/lab.git", "--work-tree=.mine", "commit", "--allow-empty", "-qam", "what the lab saw"]
            for command in (["git", "init", "-q"], ["python3", "-Bc", keep, lab], again, ["git", "add", "-f", ".mine"]):
                subprocess.run(command, cwd=folder, check=True, capture_output=True, env={"PATH": os.environ["PATH"], "HOME": folder})
            found = subprocess.run(["git", "ls-files"], cwd=folder, check=True, capture_output=True, encoding="utf-8").stdout
        for name in ("bare.c", "01_iterative/gone.c", "lab.git/refs/tags/chapter-1"):
            self.assertIn(".mine/%s\n" % name, found)


if __name__ == "__main__":
    unittest.main()
