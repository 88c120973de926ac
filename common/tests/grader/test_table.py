"""Is every test of the suite in a section, and does every pointer lead somewhere?"""

import os
import re
import unittest

import place  # noqa: F401  (finds the grader)
import models
import places
import criterion
import table


def headings(path):
    with open(os.path.join(places.TOP, path), encoding="utf-8") as file:
        return re.findall(r"^#+ (.+)$", file.read(), re.MULTILINE)


class Sections(unittest.TestCase):
    def test_the_points_make_a_hundred(self):
        self.assertEqual([20, 25, 25, 20, 10], [section.points for section in table.SECTIONS])

    def test_no_file_of_the_suite_is_forgotten(self):
        known = sorted({*table.FILES, *table.LEFT_OUT_FILES})
        self.assertEqual(table.suite_files(), known)

    def test_whatever_is_named_is_a_case(self):
        every = {case for model in places.MODELS for case in table.all_cases(model)}
        self.assertLessEqual({*table.CASES, *table.LEFT_OUT}, every)

    def test_the_cases_are_those_of_the_programs(self):
        for program in ("servers", "weather"):
            path = os.path.join(places.PROGRAMS, program)
            if not os.access(path, os.X_OK):
                self.skipTest("%s is not built" % path)
            cases = {"%s/%s" % (model, case) for model in places.MODELS
                     for case, file in table.all_cases(model).items() if file.startswith(program + "/")}
            self.assertEqual(cases, {each for each in criterion.cases_of(path)
                                     if each.partition("/")[0] in places.MODELS})

    def test_every_section_has_cases_for_every_model(self):
        for model in places.MODELS:
            sections = {place.section for _, place in table.counted(model).values()}
            self.assertEqual({"works", "http", "weather", "cost"}, sections, model)


class Pointers(unittest.TestCase):
    def hold(self, pointer):
        path, _, heading = pointer.partition(": ")
        self.assertIn(heading, headings(path), path)

    def test_lead_to_a_heading(self):
        for place in {*table.FILES.values(), *table.CASES.values(), table.CALLS}:
            for model in places.MODELS:
                self.hold(table.pointer(place, model))

    def test_of_the_models_lead_to_a_heading(self):
        for model, traits in models.TRAITS.items():
            for trait in traits:
                self.hold(models.read(model, trait))
