"""Setting up: what make installs, asks for and says, where it builds, and the container's steps."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import book
import project

INSTALLING = ("test", "compare", "dials", "latency", "mixes", "sweep", "cost", "xray", "which", "connections", "files",
              "burst", "ramp", "results")
ASKING = ("epoll", "serve", "load", "check", "lint", "mutants", "grade", "soak", "elsewhere",
          "exercise EX=01/queue", "collect FROM=.")


def read(*names):
    with open(os.path.join(book.TOP, *names), encoding="utf-8") as file:
        return file.read()


NOBODY = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}


def make(folder, *words, path="", **more):
    done = subprocess.run(["make", *words], cwd=folder, check=False, capture_output=True, encoding="utf-8",
                          env={"PATH": path + os.environ["PATH"], "LC_ALL": "C"}, **more)
    return done.returncode, done.stdout, done.stderr


def said(*command, **more):
    return subprocess.check_output(command, encoding="utf-8", **more)


def copy_to(folder):
    """The project without what was built, for tests to change: the original may be read-only."""
    shutil.copytree(book.TOP, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(
        "build", ".git", ".mine", "results", "bare", *project.Project(book.TOP).servers))
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)


class Make(unittest.TestCase):
    """A copy of the project, on a machine where nothing that `deps` knows is there."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="zerohttpd.")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        copy_to(cls.folder)
        os.chmod(cls.folder, 0o755)
        with open(os.path.join(cls.folder, "common", "tools", "deps"), "r+", encoding="utf-8") as deps:
            script = re.sub(r"(?m)^((?:\w+,)*\w+ +)\S+( +\S+ +=)", r"\1not-there\2", deps.read())
            deps.seek(0)
            deps.truncate()
            deps.write(script)
        os.mkdir(os.path.join(cls.folder, "no-root"))
        os.symlink(shutil.which("false"), os.path.join(cls.folder, "no-root", "sudo"))

    def test_plain_targets_end_with_one_line_that_names_deps(self):
        for target in ASKING:
            with self.subTest(target=target):
                status, _, err = make(self.folder, *target.split())
                self.assertEqual(2, status)
                self.assertRegex(err, r"\A[^\n]*missing: not-there[^\n]*Run `make deps`[^\n]*\n\Z")

    def test_what_installs_does_so_before_anything_is_built(self):
        for target in INSTALLING:
            with self.subTest(target=target):
                status, out, err = make(self.folder, "--dry-run", target)
                self.assertEqual((0, ""), (status, err))
                self.assertLess(-1, out.find("common/tools/deps"))
                self.assertLess(out.find("common/tools/deps"), out.find("-c common/"))
                self.assertTrue(re.search("common/tools/deps +(test|compare) ", out))

    def test_without_root_the_last_word_is_what_to_type(self):
        """And nothing is built by a compiler that is not there. Nobody can become root here."""
        for targets, command in (("deps serve", "deps"), ("deps-serve serve", "deps-build deps-serve"),
                                 ("test", "deps-build"), ("compare", "deps-build")):
            with self.subTest(targets):
                status, out, err = make(self.folder, *targets.split(), path=self.folder + "/no-root:", **NOBODY)
                self.assertEqual((2, ""), (status, out))
                self.assertRegex(err, r"(?m)^deps: +sudo make %s\ndeps: .*\nmake: .*\n\Z" % command)
                self.assertNotIn("Run `make deps`", err)

    def test_an_unknown_part_ends_it_before_anything_is_installed(self):
        for parts in ("servrs", "unit servrs"):
            status, out, err = make(self.folder, "test", "PARTS=" + parts)
            self.assertEqual((2, ""), (status, out))
            self.assertRegex(err, r"\A[^\n]*there is no part servrs[^\n]* unit book servers [^\n]*\n\Z")


class Printed(unittest.TestCase):
    """What make says of its work."""

    def test_each_file_is_a_line_and_v_1_shows_the_command(self):
        with tempfile.TemporaryDirectory() as out:
            for word, printed in (("V=", r"LINK \S+/bare"), ("V=1", r"\S+ -std=gnu11 .*/bare\.c .*"),
                                  ("-s", "")):
                with self.subTest(word):
                    done = make(book.TOP, "-B", "OUT=" + out, "DEPS=no", "bare", word)
                    self.assertEqual((0, ""), (done[0], done[2]))
                    self.assertRegex(done[1].strip(), r"\A%s\Z" % printed)

    def test_a_target_that_is_not_there_names_help(self):
        self.assertRegex(make(book.TOP, "srve")[2], r"no target srve\. `make help`")


class Makefile(unittest.TestCase):
    def test_a_student_can_read_it(self):
        text = read("Makefile")
        self.assertLessEqual(text.count("\n"), 100)
        self.assertNotRegex(text, r"\$[({](eval|call) |^define ")
        rules = re.findall(r"(?m)^\$\(BIN\)(\w+): +\$\(OUT\)/\d\d_(\w+)/main\.o", text)
        self.assertEqual(sorted((each, each) for each in project.Project(book.TOP).servers),
                         sorted(rules))


class Elsewhere(unittest.TestCase):
    """A copy of the project in which nobody may write, and a folder beside it."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="zerohttpd.")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.addClassCleanup(subprocess.run, ["chmod", "-R", "u+w", folder], check=True)
        os.chmod(folder, 0o755)
        cls.top, cls.out = os.path.join(folder, "checkout"), os.path.join(folder, "out")
        copy_to(cls.top)
        subprocess.run(["chmod", "-R", "a-w", cls.top], check=True)
        os.mkdir(cls.out)
        if NOBODY:  # root may write anywhere
            os.chown(cls.out, NOBODY["user"], NOBODY["group"])

    def make(self, *words):
        status, out, err = make("/", "-s", "-j2", "-C", self.top, "OUT=" + self.out, "DEPS=no", "CFLAGS=-O0",
                                *words, **NOBODY)
        return status, out + err

    def test_objects_and_servers_go_there(self):
        self.assertEqual((0, ""), self.make("epoll", "all", "bare", "instruments"))
        for name in sorted(project.Project(book.TOP).servers):
            path = os.path.join(self.out, name)
            self.assertIn(name, said(path, "--version"))
            self.assertIn("BIND_NOW", said("readelf", "-d", path), "it has to resolve functions before it forks")
        for name in ("bare", "common/conn.o", "07_epoll/main.o", "loadtest/floor"):
            self.assertTrue(os.path.exists(os.path.join(self.out, name)), name)
        self.assertEqual(0, self.make("--question", "all")[0], "nothing is left to do")

    def test_what_cannot_be_written_is_said_in_a_line(self):
        self.assertEqual((0, ""), self.make("all"))
        os.mkdir(os.path.join(self.out, "serve"), 0o555)
        for words, why in (("exercise", "EX=01/gone"), r"cannot use \S+/.mine/?\S*: Permission denied\n"), \
                           (("serve",), r"serve: \S+/serve may not be written\. "):
            status, out = self.make(*words)
            self.assertEqual(2, status, out)
            self.assertRegex(out, why)
            self.assertNotIn("Traceback", out)

    @unittest.skipUnless(shutil.which("patch"), "patch is not installed")
    def test_so_do_the_programs_of_exercises(self):
        for origin in ("exercises", "solutions"):
            program = os.path.join(self.out, origin, "01_iterative", "reader")
            if origin == "exercises" or os.path.exists(os.path.join(
                    self.top, "01_iterative/exercises/solutions/reader.patch")):
                self.assertEqual((0, ""), self.make(program))
                self.assertTrue(os.access(program, os.X_OK))


@unittest.skipUnless(os.path.exists(os.path.join(book.TOP, ".git")),
                     "an unpacked release has no .git")
class Release(unittest.TestCase):
    """What `make dist` makes of the last commit, unpacked in a folder that git does not know."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="zerohttpd.")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        status, cls.archive, err = make(book.TOP, "-s", "OUT=%s/first" % cls.folder, "dist")
        cls.archive = cls.archive.strip()
        assert status == 0, err
        subprocess.run(["tar", "-xzf", cls.archive, "-C", cls.folder], check=True)
        cls.top = os.path.join(cls.folder, os.path.basename(cls.archive)[:-len(".tar.gz")])

    def test_the_same_commit_gives_the_same_bytes(self):
        done = make(book.TOP, "-s", "OUT=%s/second" % self.folder, "TZ=Asia/Tokyo", "dist")
        self.assertEqual((0, ""), (done[0], done[2]))
        with open(self.archive, "rb") as first, open(done[1].strip(), "rb") as second:
            self.assertEqual(first.read(), second.read())

    def test_its_load_tests_know_the_commit(self):
        self.assertEqual(said("git", "-c", "safe.directory=*", "rev-parse", "HEAD", cwd=book.TOP)[:7], said(
            "python3", "-B", "-c", "from lib.measuring import machine\nprint(dict(machine.environment())['ZeroHTTPd'])",
            cwd=os.path.join(self.top, "loadtest")).strip())


class Version(unittest.TestCase):
    def test_all_who_name_it_agree(self):
        version = re.search(r'ZEROHTTPD_VERSION "(.+)"', read("common", "options.h")).group(1)
        for path, pattern in (("CITATION.cff", r"(?m)^version: (.+)$"),
                              ("CHANGELOG.md", r"(?m)^## (\S+)")):
            with self.subTest(path):
                self.assertEqual(version, re.search(pattern, read(path)).group(1))

    def test_its_date_is_the_same_in_both(self):
        cited = re.search(r"(?m)^date-released: (.+)$", read("CITATION.cff"))
        newest = re.search(r"(?m)^## \S+ - (.+)$", read("CHANGELOG.md")).group(1)
        self.assertEqual(cited and cited.group(1), None if newest == "unreleased" else newest)


class Container(unittest.TestCase):
    def test_what_git_ignores_stays_out_of_it(self):
        """.dockerignore has the same lines. It is no link, because not every way to copy the project
        keeps links. With these beginnings, a line means the same to both programs."""
        self.assertEqual(read(".gitignore"), read(".dockerignore"))
        for line in read(".gitignore").splitlines():
            self.assertRegex(line, r"^(/|\*\*/)")

    def test_its_command_hands_sigterm_on(self):
        """`podman stop` sends it to the first process, which is make."""
        with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
            copy_to(folder)
            with open(os.path.join(folder, "common", "tools", "serve"), "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\ntrap 'echo ended; exit' TERM\necho ready\n"
                           "while read -r line; do :; done\n")
            with subprocess.Popen(["make", "-s", "DEPS=no", "SERVERS=", "serve"], cwd=folder,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, encoding="utf-8") as made:
                self.assertEqual("ready\n", made.stdout.readline())
                made.terminate()
                made.wait()
                made.stdin.close()
                self.assertEqual("ended\n", made.stdout.read())

    def test_an_editor_builds_the_same_container(self):
        found = json.loads(read(".devcontainer", "devcontainer.json"))
        path = os.path.join(book.TOP, ".devcontainer", found["build"]["dockerfile"])
        self.assertTrue(os.path.samefile(path, os.path.join(book.TOP, "Containerfile")))
