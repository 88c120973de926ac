"""Is what Criterion writes understood, whatever a server has made of its messages?"""

import os
import tempfile
import unittest
from unittest import mock

import place
import cage
import places
import suite  # finds criterion
import criterion

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples")


def sample(name):
    with open(os.path.join(SAMPLES, name), encoding="utf-8") as file:
        return file.read()


class Read(unittest.TestCase):
    def test_a_report(self):
        """What the filter left out, and what stands in a message, is no result."""
        text = sample("servers.tap")
        self.assertEqual({
            "poll::it_needs_no_rights": ("failed", "\n".join([
                'not true: end && strcmp(end, "\\n") == 0: the banner is: <bad & "banner', '">',
                "ok - poll::the_home_page_is_index_html", "The server said: it cannot"])),
            "poll::a_server_without_anything_to_do_sleeps": ("skipped", "who is traced wakes more often"),
            "poll::http_1_0_closes_unless_asked_to_stay": ("passed", ""),
            "epoll::a_file_says_what_it_is": (
                "failed", criterion.NO_END + "unexpected signal after common/tests/servers/files.c:27"),
            "poll::an_unknown_method_is_501": (
                "failed", criterion.NO_END + "timed out after common/tests/harness/harness.c:99 (40.00s)")},
            criterion.read_report(text))
        self.assertRegex(criterion.block(text, "poll::it_needs_no_rights"),
                         r"\Anot ok - poll::it_needs_no_rights .*\n  ---\n(  .*\n)*  \.\.\.\n\Z")
        self.assertEqual("not ok - epoll::a_file_says_what_it_is unexpected signal after "
                         "common/tests/servers/files.c:27\n",
                         criterion.block(text, "epoll::a_file_says_what_it_is"))

    def test_what_was_printed_until_criterion_was_stopped(self):
        printed = criterion.read_printed(sample("printed.log"))
        self.assertEqual({"epoll::one": "passed", "epoll::two": "failed",
                          "poll::three": "passed", "epoll::four": "skipped"},
                         {case: result.outcome for case, result in printed.items()})
        reported = {"epoll::six": suite.Result("failed", "a reason")}
        found = suite.complete("epoll", ["one", "two", "five", "six"], reported, printed, "2001 processes")
        missing = ("failed", "not run to its end: 2001 processes")
        self.assertEqual({"one": ("passed", ""), "two": missing, "five": missing, "six": reported["epoll::six"]}, found)


class Portions(unittest.TestCase):
    def test_a_pattern_names_all_of_them(self):
        self.assertEqual("poll/@(one|two)", suite.pattern("poll", {"two", "one"}))

    def test_no_portion_is_longer_than_criterion_can_read(self):
        for count in (0, 1, 64, 65, 99, 1000):
            found = suite.portions("case_%d" % number for number in range(count))
            self.assertEqual({"case_%d" % number for number in range(count)}, set(sum(found, [])))
            self.assertEqual(count, sum(map(len, found)))
            self.assertLess(max(map(len, found), default=0), 99)


class OurProgram(unittest.TestCase):
    """A program of ours that breaks is not the server's failure."""

    def run_suite(self, script, seconds=60):
        """The result for 150 cases of a program in place of the suite's."""
        with tempfile.TemporaryDirectory() as folder:
            place.script(folder, "servers", "#!/usr/bin/env python3\nimport os, re, sys, time\n"
                         "words = dict(zip(sys.argv, sys.argv[1:]))\n"
                         "cases = re.findall(r'\\w+', words['--filter'])[1:]\n"
                         "tap = next(word[6:] for word in sys.argv if word.startswith('--tap='))\n"
                         "report = open(tap, 'w')\n" + script)
            with mock.patch.object(places, "PROGRAMS", folder):
                return suite.run("servers", "poll", {"case_%d" % number for number in range(150)},
                                 folder, folder, lambda: seconds, os.environ)

    def test_all_portions_are_run(self):
        results, why = self.run_suite("for case in cases:\n"
                                      "    report.write('ok - poll::%s  (0.01s)\\n' % case)\n")
        self.assertIsNone(why)
        self.assertEqual(150, sum(each.outcome == "passed" for each in results.values()))

    def test_it_ends_before_its_time(self):
        with self.assertRaisesRegex(suite.Broken, "status -6.*case_1.*\n.*Assertion `tmp' failed"):
            self.run_suite("print(\"servers: Assertion `tmp' failed.\", flush=True)\nos.abort()\n")

    def test_it_leaves_a_case_out(self):
        with self.assertRaisesRegex(suite.Broken, "status 0.*case_"):
            self.run_suite("for case in cases[1:]:\n"
                           "    report.write('ok - poll::%s  (0.01s)\\n' % case)\n")

    def test_its_status_does_not_fit_its_report(self):
        for status in (1, 77):
            with self.assertRaisesRegex(suite.Broken, "status %d" % status):
                self.run_suite("for case in cases:\n"
                               "    report.write('ok - poll::%%s  (0.01s)\\n' %% case)\n"
                               "report.close()\nos._exit(%d)\n" % status)

    def test_a_case_crashes(self):
        with self.assertRaisesRegex(suite.Broken, "case_"):
            self.run_suite("for case in cases:\n    report.write("
                           "'not ok - poll::%s unexpected signal after a.c:27\\n' % case)\n")

    def test_a_case_or_the_program_that_is_not_done_in_time_has_failed(self):
        results, why = self.run_suite("for case in cases:\n    report.write("
                                      "'not ok - poll::%s timed out after a.c:9 (40.00s)\\n' % case)\n"
                                      "report.close()\nos._exit(1)\n")
        self.assertIsNone(why)
        self.assertEqual({"failed"}, {each.outcome for each in results.values()})
        results, why = self.run_suite("time.sleep(600)\n", seconds=0.2)
        self.assertIn(cage.TOO_LONG, why)
        self.assertEqual(150, sum(each.outcome == "failed" for each in results.values()))
