"""What curl 7.88 wrote of each file is added up rightly."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from lib import Trouble
from lib.generators import curl


def sample(name):
    with open(os.path.join(HERE, "samples", "curl_%s.tsv" % name), encoding="utf-8") as file:
        return file.read()


def report(name):
    return curl.parse(sample(name), 20)


class Files(unittest.TestCase):
    def test_all_came_over_one_connection(self):
        clean = report("clean")
        self.assertEqual((clean.requests, clean.content, clean.connections, clean.errors),
                         (20, 20 * 600, 1, {}))
        self.assertAlmostEqual(clean.seconds, 0.00207)
        self.assertAlmostEqual(clean.rate, 20 / 0.00207)

    def test_errors_by_status_or_kind_bring_no_bytes(self):
        for name, errors, connections in [("503", {"not 2xx": 2}, 1), ("short", {"length": 2}, 2),
                                          ("timeout", {"time-out": 2}, 2),
                                          ("refused", {"connect": 20}, 0)]:
            with self.subTest(name=name):
                wrong = sum(errors.values())
                self.assertEqual((report(name).errors, report(name).requests, report(name).content,
                                  report(name).connections),
                                 (errors, 20 - wrong, (20 - wrong) * 600, connections))

    def test_a_broken_connection_is_mostly_hidden_by_asking_again(self):
        broken = report("reset")
        self.assertEqual((broken.errors, broken.requests, broken.connections), ({"reset": 1}, 19, 4))

    def test_errors_in_words(self):
        self.assertEqual(report("refused").errors_text(), "20 connect")

    def test_other_failures_are_errors_too(self):
        self.assertEqual(curl.error_of(["35", "000"]), "other")

    def test_a_line_for_each_file(self):
        lines = sample("clean").splitlines()
        for text in ("\n".join(lines[:-1]), sample("clean")[:-12], ""):
            with self.assertRaisesRegex(Trouble, "curl gave up after"):
                curl.parse(text, 20)


class List(unittest.TestCase):
    def test_an_output_for_each_address(self):
        text = curl.list_of(["http://h/1", "http://h/2"], 0.5)
        self.assertIn("max-time = 0.5\n", text)
        self.assertEqual(text.count("url = "), 2)
        self.assertEqual(text.count('output = "/dev/null"'), 2)


if __name__ == "__main__":
    unittest.main()
