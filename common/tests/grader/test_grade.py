"""Does each of the seven get everything, and a program that never begins nothing?"""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import place
import places

GRADE = os.path.join(place.GRADER, "grade")
SERVERS = os.path.join(places.TOP, os.environ.get("SERVERS", "."))
SILENT = "#!/bin/sh\n[ \"$1\" = --help ] || sleep 600\n"


def run(*command, **environment):
    return subprocess.run(command, cwd=places.TOP, env={**os.environ, **environment}, capture_output=True,
                          encoding="utf-8", check=False)


class Usage(unittest.TestCase):
    def test_no_program_is_status_2(self):
        for server in ("/nowhere", "", places.TOP, os.path.join(places.TOP, "README.md")):
            done = run(GRADE, server, "epoll")
            self.assertEqual((2, ""), (done.returncode, done.stdout), server)
            self.assertIn("no program", done.stderr)

    def test_a_grader_that_is_broken_gives_no_points(self):
        """The Redis that it wants to start is none. (What is in /tmp is not seen in the sandbox.)"""
        with tempfile.TemporaryDirectory(dir=os.path.join(places.TOP, "build")) as folder:
            os.chmod(folder, 0o755)  # it is another user who looks for it
            os.symlink(shutil.which("false"), os.path.join(folder, "redis-server"))
            done = run(GRADE, os.path.join(SERVERS, "epoll"), "epoll", PATH=folder + ":" + os.environ["PATH"])
        self.assertEqual((2, ""), (done.returncode, done.stdout))
        self.assertRegex(done.stderr, r"(?m)^grade: the grader is broken, so there are no points\.")
        self.assertIn("no Redis could be started", done.stderr)


@unittest.skipIf("build/san-" in SERVERS, "what is graded is built plainly")
@unittest.skipUnless(shutil.which("strace") and shutil.which("ab"), "needs strace and ab")
class Graded(unittest.TestCase):
    """As its page says to type it."""

    def make_grade(self, server, model, *words):
        """What `make grade` prints. Patiently: the machine has other tests to run meanwhile."""
        done = run("make", "-s", "grade", "SERVER=" + server, "MODEL=" + model, *words, PATIENCE="3")
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def script(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return place.script(folder.name, "mine", text)

    def test_each_of_the_seven_gets_everything(self):
        """Two at a time: a case mostly waits."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            graded = dict(zip(places.MODELS, pool.map(
                lambda name: self.make_grade(os.path.join(SERVERS, name), name), places.MODELS)))
        for name, said in graded.items():
            with self.subTest(server=name):
                self.assertIn(", as %s: 100 of 100 points\n" % name, said, said)
                lanes = re.search(r"waited for: (build/lanes/%s-as-%s\.svg)" % (name, name), said)
                self.assertIsNotNone(lanes, said)
                self.assertIn(name, Path(os.path.join(places.TOP, lanes[1])).read_text("utf-8"))

    def test_the_page_shows_what_a_wrong_pair_gets(self):
        """All 42 pairs are in test_models."""
        with open(os.path.join(place.GRADER, "README.md"), encoding="utf-8") as file:
            shown = json.loads(re.search(r"(?m)^    \{\"server\": .*\n(?:     .*\n)+", file.read())[0]
                               .replace(", ...", ""))
        result = json.loads(self.make_grade("./poll", "epoll", "JSON=1", "SEED=4711"))
        self.assertEqual(4711, result["seed"])
        for field in ("server", "model", "points", "of"):
            self.assertEqual(shown[field], result[field], json.dumps(result["failures"], indent=1))
        self.assertEqual(shown["sections"][0].items() - result["sections"][0].items(), set())
        self.assertIn(shown["failures"][0]["case"], [each["case"] for each in result["failures"]])

    @unittest.skipUnless(os.path.exists(os.path.join(places.TOP, ".git")), "a release has no .git")
    def test_a_class_is_graded(self):
        """A main.c of ours, and a program that serves nobody."""
        with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
            for name, file, server in (("anna", "01_iterative/main.c", "server.c"),
                                       ("ben", self.script(SILENT), "server")):
                os.mkdir(os.path.join(folder, name))
                shutil.copy(os.path.join(places.TOP, file), os.path.join(folder, name, server))
            done = run(os.path.join(places.TOP, "common", "classroom", "course", "collect"), "--json", "--model",
                       "iterative", "--logs", os.path.join(folder, ".logs"), folder, PATIENCE="3")
            self.assertEqual(0, done.returncode, done.stderr)
            found = {one["student"]: one["exercises"]["01/server"] for one in
                     json.loads(done.stdout)["students"]}
            with open(os.path.join(folder, ".logs", "students", "ben", "01-server.log"), encoding="utf-8") as log:
                self.assertIn("did not serve its first client", log.read())
        self.assertEqual({"anna": 100, "ben": 0}, {name: each.get("points") for name, each
                                                   in found.items()}, done.stdout)

    def test_who_never_begins_gets_nothing_and_soon(self):
        result = json.loads(self.make_grade(self.script(SILENT), "forking", "JSON=1"))
        self.assertEqual(0, result["points"])
        self.assertIn("did not serve its first client", result["failures"][0]["evidence"])
        self.assertEqual([20, 25, 25, 20, 10], [section["of"] for section in result["sections"]])
        self.assertEqual({section["name"] for section in result["sections"]},
                         {failure["section"] for failure in result["failures"]})
