"""What make says and does on other machines than ours: where it may not write, where nothing is installed, and for
a release."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import project
import said

HAS_GIT = unittest.skipUnless(os.path.exists(os.path.join(said.TOP, ".git")), "an unpacked release has no .git")
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
GIT = ["git", "-c", "safe.directory=*"]


def output(*command, **more):
    return subprocess.check_output(command, encoding="utf-8", **more)


def make(folder, *words, **more):
    done = subprocess.run(["make", *words], cwd=folder, check=False, capture_output=True, encoding="utf-8",
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, **more)
    return done.returncode, done.stdout, done.stderr


class Make(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="zerohttpd.")
        self.addCleanup(shutil.rmtree, self.folder)

    def copy(self):
        """The project without what was built: the original may be read-only, or its owner's alone."""
        copy = os.path.join(self.folder, "copy")
        left = shutil.ignore_patterns("build", ".git", ".mine", "results", *project.Project(said.TOP).servers)
        shutil.copytree(said.TOP, copy, ignore=lambda folder, names:  # public/book may come and go meanwhile
                        {"book"} if os.path.basename(folder) == "public" else left(folder, names))
        subprocess.run(["chmod", "-R", "u+w,go+rX", copy], check=True)
        os.chmod(self.folder, 0o755)
        return copy

    def test_what_is_missing_or_wrong_is_said_in_a_line(self):
        self.assertRegex(make(said.TOP, "srve")[2], r"no target srve\. `make help`")
        self.assertRegex(make(said.TOP, "test", "PARTS=unit servrs")[2], r"\A[^\n]*there is no part servrs[^\n]*\n\Z")
        brought = output("common/tools/deps", "--list", "compare", cwd=said.TOP).split()
        self.assertLessEqual({"ab", "wrk", "h2load", "strace"}, set(brought))  # what a load test runs
        self.assertEqual([], [line for line in make(said.TOP, "help")[1].splitlines() if len(line) > 80])
        copy = self.copy()
        deps = os.path.join(copy, "common", "tools", "deps")
        script = project.read(deps)
        with open(deps, "w", encoding="utf-8") as file:  # nothing that it knows is there
            file.write(re.sub(r"(?m)^((?:\w+,)*\w+ +)[\w/]\S*( +[\w-]+)$", r"\1not-there\2", script))
        for target in ("epoll", "course", "dist", "tables", "exercises", "format"):
            status, _, error = make(copy, target)
            self.assertEqual(2, status)
            self.assertRegex(error, r"\A[^\n]*missing: not-there[^\n]*`make deps[\w-]*`[^\n]*\n\Z")

    def test_an_image_gets_nothing_that_git_ignores(self):
        self.assertEqual(*(project.read(os.path.join(said.TOP, name)) for name in (".gitignore", ".dockerignore")))

    def test_it_builds_elsewhere_where_nobody_may_write_here(self):
        copy, out = self.copy(), os.path.join(self.folder, "out")
        os.mkdir(os.path.join(copy, "build"))
        subprocess.run(["chmod", "-R", "a-w", copy], check=True)
        self.addCleanup(subprocess.run, ["chmod", "-R", "u+w", copy], check=True)
        os.mkdir(out)
        if NOBODY:  # root may write anywhere
            os.chown(out, NOBODY["user"], NOBODY["group"])
        self.assertIn("you may not write build/", make(copy, "epoll", **NOBODY)[2])
        self.assertIn("you may not write ./", make(copy, "BUILD=new", "epoll", **NOBODY)[2])
        status, said_, error = make("/", "-s", "-j2", "-C", copy, "OUT=" + out, "DEPS=no", "CFLAGS=-O0", "all", "bare", **NOBODY)
        self.assertEqual((0, "", ""), (status, said_, error))
        for name in project.Project(said.TOP).servers:
            self.assertIn(name, output(os.path.join(out, name), "--version"))

    @HAS_GIT
    def test_a_release_is_the_same_bytes_each_time_and_knows_its_commit(self):
        archives = [make(said.TOP, "-s", "OUT=%s/%d" % (self.folder, i), "TZ=" + zone, "archive")[1].strip()
                    for i, zone in enumerate(("UTC", "Asia/Tokyo"))]
        self.assertEqual(0, subprocess.call(["cmp", *archives]))
        subprocess.run(["tar", "-xzf", archives[0], "-C", self.folder], check=True)
        top = os.path.join(self.folder, os.path.basename(archives[0])[:-len(".tar.gz")])
        self.assertEqual(output(*GIT, "rev-parse", "HEAD", cwd=said.TOP)[:7], output(
            "python3", "-B", "-c", "from lib.measuring import machine\nprint(dict(machine.environment())['ZeroHTTPd'])",
            cwd=os.path.join(top, "loadtest")).strip())
