"""Is what Criterion writes understood, whatever a server has made of its messages?"""

import os
import unittest

import suite

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples")


def sample(name):
    with open(os.path.join(SAMPLES, name), encoding="utf-8") as file:
        return file.read()


class Tap(unittest.TestCase):
    def setUp(self):
        self.results = suite.read_tap(sample("servers.tap"), "poll")

    def test_who_passed(self):
        self.assertEqual(("passed", ""), self.results["http_1_0_closes_unless_asked_to_stay"])

    def test_only_the_models_own(self):
        self.assertNotIn("verbose_means_a_line_a_request", self.results)

    def test_who_failed_and_why(self):
        self.assertEqual(("failed", "\n".join([
            'not true: end && strcmp(end, "\\n") == 0: the banner is: <bad & "banner', '">',
            "ok - poll::the_home_page_is_index_html", "The server said: it cannot"])),
            self.results["it_needs_no_rights"])

    def test_no_message_makes_a_result(self):
        self.assertNotIn("the_home_page_is_index_html", self.results)

    def test_why_somebody_was_skipped(self):
        self.assertEqual(("skipped", "who is traced wakes more often"),
                         self.results["a_server_without_anything_to_do_sleeps"])

    def test_a_crash_and_a_time_out_are_failures(self):
        for case in ("a_file_says_what_it_is", "an_unknown_method_is_501"):
            self.assertEqual("failed", self.results[case].outcome)
        self.assertIn("unexpected signal", self.results["a_file_says_what_it_is"].evidence)

    def test_nothing_is_nothing(self):
        self.assertEqual({}, suite.read_tap("", "poll"))


class Stopped(unittest.TestCase):
    """Criterion did not come to its end."""

    def setUp(self):
        self.printed = suite.read_printed(sample("printed.log"), "epoll")

    def test_what_was_printed_counts(self):
        self.assertEqual({"one": "passed", "two": "failed", "four": "skipped"},
                         {case: result.outcome for case, result in self.printed.items()})

    def test_the_others_have_failed_and_say_why(self):
        found = suite.complete(["one", "two", "five"], {}, self.printed, "2001 processes")
        self.assertEqual("passed", found["one"].outcome)
        for case in ("two", "five"):
            self.assertEqual(("failed", "not run to its end: 2001 processes"), found[case])

    def test_what_was_reported_comes_first(self):
        reported = {"one": suite.Result("failed", "a reason")}
        self.assertEqual(reported, suite.complete(["one"], reported, self.printed, None))


class Pattern(unittest.TestCase):
    def test_names_all_of_them(self):
        self.assertEqual("poll/@(one|two)", suite.pattern("poll", {"two", "one"}))


if __name__ == "__main__":
    unittest.main()
