"""Does one of the seven get everything, and who never begins nothing? From the command line."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import place
import places

GRADE = os.path.join(place.GRADER, "grade")
SERVERS = os.path.join(places.TOP, os.environ.get("SERVERS", "."))
SILENT = "#!/bin/sh\n[ \"$1\" = --help ] || sleep 600\n"


def grade(*arguments):
    """Patiently: the machine has other tests to run meanwhile."""
    return subprocess.run([GRADE, *arguments], env={**os.environ, "PATIENCE": "3"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", check=False)


class Usage(unittest.TestCase):
    def test_no_program_is_status_2(self):
        for server in ("/nowhere", "", places.TOP, os.path.join(places.TOP, "README.md")):
            done = grade(server, "epoll")
            self.assertEqual((2, ""), (done.returncode, done.stdout), server)
            self.assertIn("no program", done.stderr)

    def test_no_model_is_status_2(self):
        self.assertEqual(2, grade(GRADE, "select").returncode)


@unittest.skipIf("build/san-" in SERVERS, "what is graded is built plainly")
@unittest.skipUnless(shutil.which("strace") and shutil.which("ab"), "needs strace and ab")
class Graded(unittest.TestCase):
    def result(self, server, model, *options):
        done = grade("--json", *options, server, model)
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)

    def script(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "mine")
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def test_one_of_the_seven_gets_everything(self):
        with tempfile.TemporaryDirectory() as folder:
            lanes = os.path.join(folder, "lanes", "epoll.svg")
            result = self.result(os.path.join(SERVERS, "epoll"), "epoll", "--lanes", lanes)
            with open(lanes, encoding="utf-8") as file:
                self.assertIn("epoll", file.read())
            self.assertEqual(lanes, os.path.abspath(result["lanes"]))
        self.assertEqual((100, 100), (result["points"], result["of"]),
                         json.dumps(result["failures"], indent=1))

    def test_who_never_begins_gets_nothing_and_soon(self):
        result = self.result(self.script(SILENT), "forking")
        self.assertEqual(0, result["points"])
        self.assertIn("did not serve its first client", result["failures"][0]["evidence"])
        self.assertEqual([20, 25, 25, 20, 10], [section["of"] for section in result["sections"]])
        self.assertEqual({section["name"] for section in result["sections"]},
                         {failure["section"] for failure in result["failures"]})


if __name__ == "__main__":
    unittest.main()
