"""Is what the documents of this project say still so? See book for what is looked at."""

import os
import re
import unittest

import book
import markdown
import project


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ours = project.Project(book.TOP, os.environ.get("SERVERS", "."))
        cls.documents = [markdown.Document(path, cls.ours.text(path))
                         for path in cls.ours.documents()]

    def test_there_are_documents(self):
        self.assertIn("README.md", [document.path for document in self.documents])

    def test_what_they_say_is_so(self):
        for check in book.CHECKS:
            with self.subTest(check.__name__):
                try:
                    self.assert_none([fault for document in self.documents for fault in check(document, self.ours)])
                except project.NotBuilt as program:
                    self.skipTest("%s is not built" % program)

    def test_paths_in_programs_are_there(self):
        if not self.ours.exists("common/tests/mutants/"):
            self.skipTest("a course's copy has no mutants, and the Makefile names them")
        programs = dict(book.programs(self.ours))
        self.assertIn("Makefile", programs)
        self.assert_none([fault for path, text in programs.items()
                          for fault in book.paths(path, text, self.ours)])

    def test_drawings_have_colours_for_who_knows_no_variables(self):
        """librsvg, which file managers use, takes the declaration before, or black."""
        for folder, _, names in os.walk(book.TOP):
            for name in names:
                if not name.endswith(".svg") or "/build/" in folder + "/" or "/public/" in folder + "/":
                    continue
                with self.subTest(os.path.join(folder, name)), \
                        open(os.path.join(folder, name), encoding="utf-8") as file:
                    text = file.read()
                    rules = re.findall(r"[{;] *([\w-]+): ([^;{}]*);(?= *\1: [^;{}]*var\()", text)
                    self.assertEqual(len(rules), len(re.findall(r": [^;{}]*var\(", text)))
                    self.assertFalse([value for _, value in rules if "var(" in value])

    def assert_none(self, faults):
        if faults:
            self.fail("\n" + "\n".join("%s:%d: %s" % fault for fault in faults))
