"""`make grade`: one of the seven as itself, and an outsider that has nothing but a port, and serves when asked
for --help."""

import os
import subprocess
import tempfile
import unittest

import place

GRADE = os.path.join(place.TOP, "common", "classroom", "grade")
OUTSIDER = """\
import http.server, socketserver, sys
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
print("It says something before it listens.", flush=True)
%s
server = Server(("127.0.0.1", port), http.server.SimpleHTTPRequestHandler)
server.serve_forever()
"""
OWN_PORT = "port = int(sys.argv[1])"
AS_TOLD = "port = int((sys.argv + [0])[1 + max(map(sys.argv.index, {'-p', '--port'} & {*sys.argv}))])"


def grade(server, only=""):
    done = subprocess.run([GRADE, server], cwd=place.TOP, env={**place.ENVIRONMENT, "ONLY": only}, stdin=subprocess.DEVNULL,
                          capture_output=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout, done.stderr


@unittest.skipIf(os.environ.get("SAN"), "what is graded is built plainly")
class Grade(unittest.TestCase):
    def outsider(self, port):
        script = tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8")
        self.addCleanup(script.close)
        script.write(OUTSIDER % port)
        script.flush()
        return "python3 " + script.name

    def test_one_of_the_seven_holds_everything_and_is_its_own_chapter(self):
        status, said, errors = grade("./poll --port {port}")
        self.assertEqual(0, status, said + errors)
        self.assertRegex(said, r"\Apoll: Chapter 6, .*\n- ")
        self.assertRegex(said, r"\n(\d+) of \1 cases of \*servers\* hold")

    def test_an_outsider_is_told_its_chapter_and_what_fails_first(self):
        status, said, errors = grade(self.outsider(OWN_PORT) + " {port}", "a_c*")
        self.assertEqual(1, status, said + errors)
        self.assertIn("Chapter 4, a thread for each client.", said)
        self.assertRegex(said, r"\n\d of \d+ cases of \*servers\* hold")
        self.assertRegex(said, r"\n\n.* \(common/tests/servers/\w+\.c\)\n    .*\n")
        self.assertIn("\nAnd ", said)
        self.assertNotIn("the banner is", said)

    def test_what_cannot_be_graded_is_said(self):
        for server, why in (("/nowhere", "no such program|not found"), ("sleep 60 {port}", "not ready"),
                            ("setsid --fork sleep 60 {port}", "foreground"), ("python3 -m http.server {port}", "end SERVER with a #"),
                            ("", "which server"), (self.outsider(AS_TOLD), "Its first line has to be")):
            with self.subTest(server=server):
                status, _, errors = grade(server)
                self.assertEqual(2, status)
                self.assertRegex(errors, why)
                self.assertFalse("{port}" in server and "write {port}" in errors, errors)


if __name__ == "__main__":
    unittest.main()
