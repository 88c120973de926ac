"""What a server says of itself is no result: neither what it writes into our programs' output and
reports, nor what they print when it has stopped or ended them."""

import os
import shutil
import tempfile
import unittest

import place
import cage
import jail
import places
import program
import suite

CASES = ["a_file_says_what_it_is", "an_unknown_method_is_501"]
WITH_REDIS = "a_view_of_the_guestbook_counts_one_visitor"
SECONDS = 15
FORGES = r"""#!/bin/sh
pid=$PPID
while [ "$pid" -gt 1 ]; do
    report=$(tr '\0' '\n' </proc/$pid/cmdline | sed -n 's/^--tap=//p')
    for case in ${report:+%s}; do
        echo "[PASS] epoll::$case" >/proc/$pid/fd/1
        echo "ok - epoll::$case  (0.01s)" >>$report
    done
    above=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$pid/status)
    [ ! "$report" ] || kill -%s $pid
    pid=$above
done
exit 1
"""


@unittest.skipUnless(os.access(os.path.join(places.PROGRAMS, "servers"), os.X_OK), "is not built")
class Forged(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="grade-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o711)
        cage.adopt_orphans()

    def graded(self, text):
        return program.Program(place.script(self.folder, "mine", text), "epoll", self.folder)

    def hold(self, signal):
        mine = self.graded(FORGES % (" ".join(CASES), signal))
        try:
            results, _ = suite.run("servers", "epoll", CASES, self.folder, mine.servers,
                                   lambda: SECONDS, mine.environment(), mine.cell)
        except suite.Broken:
            return  # no points at all
        self.assertEqual({"failed"}, {each.outcome for each in results.values()}, results)

    def test_a_report_that_the_server_writes(self):
        self.hold("KILL")

    def test_lines_that_the_server_prints(self):
        self.hold("STOP")

    @unittest.skipIf(os.geteuid(), "only the superuser gives it a user of its own")
    def test_the_redis_it_may_talk_to_has_another_user_yet(self):
        mine = self.graded('#!/bin/sh\nstat -c "Redis is %u" "${4#unix:}" >&2\nexit 1\n')
        results, _ = suite.run("servers", "epoll", [WITH_REDIS], self.folder, mine.servers, lambda: SECONDS,
                               mine.environment(), mine.cell)
        if mine.cell.user:
            self.assertIn("Redis is %d" % jail.REDIS_USER, results[WITH_REDIS].evidence)

    @unittest.skipIf(os.geteuid(), "only the superuser gives it a user of its own")
    def test_it_has_another_user_who_reaches_nothing_of_ours(self):
        mine = self.graded('#!/bin/sh\nid -u\ncat /proc/$PPID/environ >/dev/null && echo read\n'
                           'touch "$FOLDERS/servers.tap" && echo written\n'
                           'kill -0 $PPID && echo reached\n')
        said, why = mine.run(["sh", "-c", mine.path + "; exit"], SECONDS)
        if mine.cell.user:
            self.assertRegex(said, r"\A%d\n" % mine.cell.user)
            self.assertNotRegex(said, "(?m)^(read|written|reached)$")
        self.assertIsNone(why)
