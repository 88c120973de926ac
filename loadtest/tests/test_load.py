"""A load generator is run to its end, and why it gave up is said in its own words."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib import Trouble
from lib.generators import ab, load

class Running(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.save_as = os.path.join(folder.name, "run")

    def run_shell(self, script, limit=5):
        return load.run("tool", ["sh", "-c", script], None, self.save_as, limit)

    def test_what_it_printed_is_returned_and_stays(self):
        self.assertEqual(self.run_shell("echo out; echo err >&2"), "out\n")
        with open(self.save_as + ".err", encoding="ascii") as err:
            self.assertEqual(err.read(), "err\n")

    def test_who_takes_too_long_is_trouble(self):
        with self.assertRaisesRegex(Trouble, "tool was not done after 0.05 s"):
            self.run_shell("exec sleep 60", 0.05)

    def test_the_reason_is_its_last_line(self):
        for script, why in (("echo no; exit 1", "no"), ("echo; exit 3", "status 3"),
                            ("echo report; echo no >&2; exit 1", "no"),
                            ("echo warning: few descriptors >&2; kill -6 $$", "status -6")):
            with self.subTest(script=script), self.assertRaisesRegex(Trouble, "gave up: " + why):
                self.run_shell(script)

    def test_of_ab_it_is_known_how_far_it_came(self):
        tool = os.path.join(os.path.dirname(self.save_as), "ab")
        with open(tool, "w", encoding="ascii") as script:
            script.write("#!/bin/sh\necho 'Total of 3 requests completed'\necho no >&2; exit 1\n")
        os.chmod(tool, 0o755)
        with self.assertRaisesRegex(Trouble, "ab gave up: no, after 3 requests"):
            ab.run("http://127.0.0.1:1/", 1, None, self.save_as, requests=5,
                   prefix=["env", "PATH=" + os.path.dirname(tool)])

    def test_a_tool_that_is_not_there_has_no_version(self):
        with self.assertRaisesRegex(Trouble, "no-such-tool"):
            load.version("no-such-tool", "-V")


if __name__ == "__main__":
    unittest.main()
