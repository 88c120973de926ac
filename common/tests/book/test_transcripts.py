"""The transcripts of the chapters are what a reader sees: terminals.py types every page anew."""

import glob
import os
import subprocess
import unittest

import markdown
import terminals

PAGES = ["common/README.md", "common/after.md"] + [
    os.path.relpath(path, terminals.TOP)
    for path in sorted(glob.glob(os.path.join(terminals.TOP, "0[1-7]_*", "**", "README.md"), recursive=True))]


@unittest.skipUnless(terminals.is_the_system(), "the transcripts are of Debian 12")
class Transcripts(unittest.TestCase):
    def test_each_command_prints_what_stands_below_it(self):
        """Side by side: the pages mostly wait."""
        reason = terminals.why_not() or build()
        if reason:
            self.skipTest(reason)
        typing = [(path, terminals.start(path, "--quiet")) for path in PAGES]
        for path, process in typing:
            said, _ = process.communicate()
            print("\n".join(line for line in said.splitlines() if line.startswith(path) and " not" in line),
                  flush=True)
            with self.subTest(path):
                self.assertEqual(process.returncode, 0, said)


def texts():
    for path in PAGES:
        with open(os.path.join(terminals.TOP, path), encoding="utf-8") as file:
            yield path, file.read()


def build():
    """Builds what all pages use. Returns why not, or None."""
    made = subprocess.run(
        ["make", "--no-print-directory", "-s", "-j%d" % os.cpu_count(), "OUT=build/plain", "SAN=",
         "all", "bare", "instruments"],
        cwd=terminals.TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", check=False, env=terminals.environment())
    return made.returncode and made.stdout


class Reading(unittest.TestCase):
    """What the pages themselves do not show: that a line which is missing is missed."""

    def test_what_stands_for_others(self):
        for wanted, printed, same in (
                ("a  12 b", "  a 3,456.7  b", True), ("a", "ab", False), ("4 s", "5 s", False),
                ("x ... z", "x z", False), ("x ... z", "x y z", True), ("x...z", "xz", True),
                ("(a) [b]", "(a) [b]", True), ("f(0x7ffe, 1)", "f(0x12ab, 1)", True),
                ("HTTP/1.1 200 OK", "HTTP/1.1 404 OK", False), ("503", "503", True),
                ("9 Sl+ wait_woken x", "9 Rl+ - x", True), ("unix:/a/b", "unix:/c", True),
                ("88 Z x", "89 ZN x", True), ("88 Z x", "89 TN x", False), ("88 Z+ x", "89 ZN+ x", True),
                ("a  3   b", "a 4 b", True), ("Date: Sun, 22 N", "Date: Mon, 01 D", True)):
            self.assertEqual(not list(terminals.unprinted([wanted], printed)), same, wanted)

    def test_each_line_is_printed_once_and_a_call_that_strace_cuts_is_one(self):
        cut = "[pid 31] read(3 <unfinished ...>\n[pid 8] close(4) = 0\n[pid 31] <... read resumed>) = 7\n"
        hidden = "[pid 31] <... clone resumed>, tid=0x12ab) = 297\n"  # whose beginning a grep has hidden
        for wanted, printed, missing in (
                (["read(3) = 7", "close(4) = 0"], cut, []), (cut.split("\n"), cut, []),
                (["[pid 7] clone(flags=CHILD, tid=0x99) = 340"], hidden, []),
                (["[pid 7] close(flags=CHILD, tid=0x99) = 340"], hidden, ["close(flags=CHILD, tid=0x99) = 340"]),
                (["[pid 7] clone(flags=CHILD, pid=0x99) = 340"], hidden, ["clone(flags=CHILD, pid=0x99) = 340"]),
                (["x 10", "...", "", "x 10"], "x 11\n", ["x 10"]), (["x 10", "x 10"], "x 11\nx 12\n", [])):
            self.assertEqual(list(terminals.unprinted(wanted, printed)), missing)

    def test_few_blocks_are_not_run(self):
        self.assertLessEqual(sum(text.count("<!-- not run: ") for _, text in texts()), 12)

    def test_each_chapter_begins_in_new_terminals(self):
        """So that no descriptor, and no server, is left from an older one."""
        for path, text in texts():
            first = next(terminals.steps(markdown.Document(path, text)))
            self.assertTrue(first.fresh, path)

    def test_who_is_root_is_told_to_leave_sudo_out(self):
        for path, text in texts():
            self.assertEqual("$ sudo " in text, "if you are root" in " ".join(text.lower().split()), path)
