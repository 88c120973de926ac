"""Is what Criterion writes understood, whatever a server has made of its messages?"""

import os
import unittest

import place  # noqa: F401  (finds the grader)
import suite  # finds criterion
import criterion

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples")


def sample(name):
    with open(os.path.join(SAMPLES, name), encoding="utf-8") as file:
        return file.read()


class Tap(unittest.TestCase):
    def setUp(self):
        self.results = criterion.read_report(sample("servers.tap"))

    def test_who_passed(self):
        self.assertEqual(("passed", ""), self.results["poll::http_1_0_closes_unless_asked_to_stay"])

    def test_what_the_filter_left_out_is_no_result(self):
        self.assertNotIn("epoll::verbose_means_a_line_a_request", self.results)

    def test_who_failed_and_why(self):
        self.assertEqual(("failed", "\n".join([
            'not true: end && strcmp(end, "\\n") == 0: the banner is: <bad & "banner', '">',
            "ok - poll::the_home_page_is_index_html", "The server said: it cannot"])),
            self.results["poll::it_needs_no_rights"])

    def test_no_message_makes_a_result(self):
        self.assertNotIn("poll::the_home_page_is_index_html", self.results)

    def test_why_somebody_was_skipped(self):
        self.assertEqual(("skipped", "who is traced wakes more often"),
                         self.results["poll::a_server_without_anything_to_do_sleeps"])

    def test_a_crash_and_a_time_out_are_failures(self):
        for case in ("epoll::a_file_says_what_it_is", "poll::an_unknown_method_is_501"):
            self.assertEqual("failed", self.results[case].outcome)
        self.assertIn("unexpected signal", self.results["epoll::a_file_says_what_it_is"].evidence)

    def test_what_the_report_says_of_one(self):
        text = sample("servers.tap")
        self.assertRegex(criterion.block(text, "poll::it_needs_no_rights"),
                         r"\Anot ok - poll::it_needs_no_rights .*\n  ---\n(  .*\n)*  \.\.\.\n\Z")
        self.assertEqual("not ok - epoll::a_file_says_what_it_is unexpected signal after "
                         "common/tests/servers/files.c:27\n",
                         criterion.block(text, "epoll::a_file_says_what_it_is"))

    def test_nothing_is_nothing(self):
        self.assertEqual({}, criterion.read_report(""))


class Stopped(unittest.TestCase):
    """Criterion did not come to its end."""

    def setUp(self):
        self.printed = criterion.read_printed(sample("printed.log"))

    def test_what_was_printed_counts(self):
        self.assertEqual({"epoll::one": "passed", "epoll::two": "failed",
                          "poll::three": "passed", "epoll::four": "skipped"},
                         {case: result.outcome for case, result in self.printed.items()})

    def test_the_others_have_failed_and_say_why(self):
        found = suite.complete("epoll", ["one", "two", "five"], {}, self.printed, "2001 processes")
        self.assertEqual("passed", found["one"].outcome)
        for case in ("two", "five"):
            self.assertEqual(("failed", "not run to its end: 2001 processes"), found[case])

    def test_what_was_reported_comes_first(self):
        reported = {"epoll::one": suite.Result("failed", "a reason")}
        self.assertEqual({"one": reported["epoll::one"]},
                         suite.complete("epoll", ["one"], reported, self.printed, None))


class Pattern(unittest.TestCase):
    def test_names_all_of_them(self):
        self.assertEqual("poll/@(one|two)", suite.pattern("poll", {"two", "one"}))


if __name__ == "__main__":
    unittest.main()
