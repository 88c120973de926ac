"""Setting up: what make installs and what it only asks for, and the container's steps."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import book

ELSEWHERE = os.path.join(book.TOP, "common", "tools", "elsewhere")
INSTALLING = ("test", "compare", "sweep", "cost", "connections", "files", "burst", "ramp")
ASKING = ("epoll", "serve", "load", "check", "lint", "mutants", "grade", "soak", "elsewhere",
          "exercise EX=01/queue", "collect FROM=.")


def read(*names):
    with open(os.path.join(book.TOP, *names), encoding="utf-8") as file:
        return file.read()


def make(folder, *words):
    done = subprocess.run(["make", *words], cwd=folder, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8",
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
    return done.returncode, done.stdout, done.stderr


class Make(unittest.TestCase):
    """A copy of the project, on a machine where nothing that `deps` knows is there."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="zerohttpd.")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        shutil.copytree(book.TOP, cls.folder, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("build", ".git", ".mine", "results"))
        subprocess.run(["make", "-s", "clean"], cwd=cls.folder, check=True)
        deps = os.path.join(cls.folder, "common", "tools", "deps")
        with open(deps, encoding="utf-8") as file:
            script = re.sub(r"(?m)^((?:\w+,)*\w+ +)\S+( +\S+ +=)", r"\1not-there\2", file.read())
        with open(deps, "w", encoding="utf-8") as file:
            file.write(script)

    def test_plain_targets_end_with_one_line_that_names_deps(self):
        for target in ASKING:
            with self.subTest(target=target):
                status, _, err = make(self.folder, *target.split())
                self.assertEqual(2, status)
                self.assertRegex(err, r"\A[^\n]*missing: not-there[^\n]*Run `make deps`[^\n]*\n\Z")

    def test_what_the_readme_says_installs_does_so_before_anything_is_built(self):
        for target in INSTALLING:
            with self.subTest(target=target):
                status, out, err = make(self.folder, "--dry-run", target)
                self.assertEqual((0, ""), (status, err))
                self.assertLess(-1, out.find("common/tools/deps"))
                self.assertLess(out.find("common/tools/deps"), out.find("-c common/"))


class Container(unittest.TestCase):
    def test_its_steps_are_those_that_elsewhere_runs(self):
        steps = re.findall(r"(?m)^RUN (.+)$", read("Containerfile"))
        self.assertTrue(all(not step.endswith("\\") for step in steps))
        ran = subprocess.run([ELSEWHERE, "--steps"], check=True, stdout=subprocess.PIPE,
                             encoding="utf-8").stdout.splitlines()
        self.assertEqual(steps, ran)
        self.assertIn("make deps", steps)

    def test_an_editor_builds_the_same_container(self):
        found = json.loads(read(".devcontainer", "devcontainer.json"))
        path = os.path.join(book.TOP, ".devcontainer", found["build"]["dockerfile"])
        self.assertTrue(os.path.samefile(path, os.path.join(book.TOP, "Containerfile")))
        self.assertEqual(["--cap-add=SYS_PTRACE"], found["runArgs"])
        self.assertEqual(list(range(8001, 8008)), found["forwardPorts"])

    def test_the_page_starts_it_with_the_right_to_trace(self):
        runs = re.findall(r"(?m)^ +podman run (.*)$", read("common", "SETUP.md"))
        self.assertTrue(runs)
        for run in runs:
            self.assertIn("--cap-add SYS_PTRACE", run)


if __name__ == "__main__":
    unittest.main()
