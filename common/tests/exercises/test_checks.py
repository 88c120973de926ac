"""The learner's copy, and what is no verdict; a clock, and a Redis that waits."""

import tempfile
import unittest
import unittest.mock
from pathlib import Path

import place  # first: it says where the rest lies
import checks
import exercises
import waiting

TASK = "# A number\n\nChapter 1 · predict · 10 minutes · ★☆☆\n"


class Learner(unittest.TestCase):
    """What is there is never overwritten, and a copy that has passed is done until it is changed."""

    def test_the_copy(self):
        with tempfile.TemporaryDirectory() as top:
            for name, text in (("number.md", TASK), ("number.c", "start"), ("number.py", "")):
                path = Path(top, "01_iterative", "exercises", name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
            one, = exercises.every(top)
            mine = Path(top, one.mine)
            self.assertEqual(("", True, "start", "begun"), (
                one.state(), one.copy_once(lambda _: None), mine.read_text("utf-8"), one.state()))
            mine.write_text("answer", "utf-8")
            self.assertEqual((False, "answer"), (one.copy_once(lambda _: None), mine.read_text("utf-8")))
            one.mark_done()
            self.assertEqual("done", one.state())
            mine.write_text("another", "utf-8")
            self.assertEqual("begun", one.state())

    def test_what_is_no_verdict(self):
        status, said = place.run("run", "01/nmber")
        self.assertEqual((2, True), (status, "make exercises lists" in said))
        for text, *told in (("int main(void)\n{\n    return zero;\n}\n", 2, r"\.c:3:.*zero"), (
                "#include <stdio.h>\nint main(void)\n{\n    while (printf(\"on and on\") > 0)\n        ;\n}\n", 1, "status -25, and 'on and on")):
            with tempfile.NamedTemporaryFile("w", suffix=".c") as wrong:
                wrong.write(text)
                wrong.flush()
                status, said = place.run("run", "01/queue", "--source", wrong.name)
            self.assertEqual(told[0], status)
            self.assertRegex(said, told[1])
            self.assertLess(len(said), 10000)

    def test_a_warning_about_a_line_in_another_encoding_is_no_end(self):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "queue.c")
            source.write_bytes(b"int main(void) { int gr; } /* gr\xf6\xdfer */\n")
            self.assertTrue(checks.build(exercises.Exercise("01_iterative", "queue"), str(source), "", folder))


class Checks(unittest.TestCase):
    def setUp(self):
        self.ex = checks.Exercise("/bin/echo", lambda _: None)
        self.ex.__enter__()
        self.addCleanup(self.ex.__exit__)

    def test_a_limit_does_not_count_the_time_without_a_core(self):
        kept = [(0, seconds) for seconds in (0, 100, 200, 300)]  # from running, until so late
        with unittest.mock.patch.object(waiting.proc, "schedule", side_effect=kept), \
                unittest.mock.patch.object(waiting.time, "monotonic", side_effect=(0, 100, 200, 300)):
            answers = iter([False, False, True])
            self.assertTrue(waiting.until(lambda: next(answers), 1))

    def test_who_is_held_by_redis_cannot_let_go(self):
        held = self.ex.redis()
        program = checks.redis.Redis(held.where)
        self.assertEqual("1", program.ask("INCR", "guestbook:visitors"))
        held.hold()
        for words in ("CLIENT UNPAUSE", "CONFIG SET dir /tmp", "ACL SETUSER default +@all"):
            self.assertRegex(program.ask(*words.split()), "NOPERM|unknown command")
        self.assertEqual("OK", held.ask("CLIENT", "UNPAUSE"))


if __name__ == "__main__":
    unittest.main()
