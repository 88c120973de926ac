"""Every command that a page shows is typed by something, as the page shows it."""

import os
import re
import shutil
import subprocess
import unittest

import typed  # first: it says where the rest lies
import terminals

MOST_NOT_RUN = 25  # rows of commands.tsv that say so, each with its reason
TOOLS = ("ip", "git", "pandoc", "weasyprint", *terminals.NEEDS)


class Inventory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = typed.read_table()
        cls.commands = typed.all_commands()
        cls.transcribed = typed.transcribed()

    def test_there_are_commands_on_every_page(self):
        found = {command.page for command in self.commands}
        self.assertEqual({"make help", *typed.PAGES} - found, set())

    def test_something_runs_each_command(self):
        nothing = ["%s:%d: %s" % (each.page, each.line, each.text) for each in self.commands
                   if not typed.who_runs(each, self.rows, self.transcribed)]
        self.assertEqual(nothing, [], "add rows to common/tests/typed/commands.tsv")

    @unittest.skipUnless(os.path.exists(os.path.join(typed.TOP, "common", "tests", "mutants")),
                         "the pages of a course's copy have less")
    def test_each_row_is_a_command_of_some_page(self):
        shown = [command.text for command in self.commands]
        idle = [row.command for row in self.rows if not typed.matching(row, shown)]
        self.assertEqual(idle, [])

    def test_a_file_that_is_named_has_the_words(self):
        for row in self.rows:
            if row.how not in typed.TYPED:
                path = os.path.join(typed.TOP, row.how)
                with self.subTest(row.command), open(path, encoding="utf-8") as file:
                    self.assertTrue(row.prints)
                    self.assertIn(row.prints, file.read())

    def test_few_are_not_run_and_each_says_why(self):
        left_out = [row for row in self.rows if row.how == "no"]
        self.assertLessEqual(len(left_out), MOST_NOT_RUN)
        for row in left_out:
            self.assertRegex(row.prints, r"^[A-Z`].* .*\.$")


@unittest.skipUnless(all(map(shutil.which, TOOLS)), "a tool is missing; make deps brings it")
class AsTyped(unittest.TestCase):
    def test_each_command_does_what_its_page_says(self):
        apart = subprocess.run([*terminals.apart(), "true"], stderr=subprocess.DEVNULL, check=False)
        if apart.returncode:
            self.skipTest("unshare(1) may not make a network here")
        # Side by side: the first page measures for a minute, and waits.
        for part, process in [(part, typed.start(part)) for part in ("--first", "--rest")]:
            with self.subTest(part):
                said, _ = process.communicate()
                print(*re.findall(r"(?m)^.* \(\d+ s\)$", said), sep="\n", flush=True)
                self.assertEqual(process.returncode, 0, said)
