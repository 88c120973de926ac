"""What checks are made of: expectations, clients, what strace writes, a Redis that waits."""

import os
import socket
import struct
import unittest
import unittest.mock

import place  # first: it says where the rest lies
import checks
import client
import outcome
import served


class Expecting(unittest.TestCase):
    def setUp(self):
        self.said = []
        self.ex = checks.Exercise("/bin/echo", self.said.append)
        self.ex.__enter__()
        self.addCleanup(self.ex.__exit__)

    def missed(self, test, **more):
        with self.assertRaises(checks.Missed) as caught:
            self.ex.expect("key", "something", test, **more)
        return caught.exception

    def test_what_is_not_true_is_missed_with_all_that_helps(self):
        missed = self.missed(lambda: False, saw=lambda: 3, hint=2, read="fork(2)")
        self.assertEqual((missed.key, missed.expected, missed.saw, missed.hint, missed.read),
                         ("key", "something", "3", 2, "fork(2)"))

    def test_it_waits_for_what_becomes_true(self):
        answers = iter([False, False, True])
        self.ex.expect("key", "something", lambda: next(answers), within=60)
        self.assertEqual(self.said, ["  ok      something"])

    def test_a_limit_does_not_count_the_time_without_a_core(self):
        kept = [(0, seconds) for seconds in (0, 100, 200, 300)]  # from running, until so late
        with unittest.mock.patch.object(outcome, "schedule", side_effect=kept), \
                unittest.mock.patch.object(outcome.time, "monotonic", side_effect=(0, 100, 200, 300)):
            answers = iter([False, False, True])
            self.assertTrue(outcome.until(lambda: next(answers), 1))

    def test_what_goes_wrong_in_a_test_is_what_was_seen(self):
        def gone():
            raise ProcessLookupError("nobody is there")

        def silent():
            raise checks.Missed("answers", "an answer", "nothing")

        self.assertEqual(self.missed(gone).saw, "nobody is there")
        self.assertIn("door 42", self.missed(lambda: int("door 42")).saw)
        self.assertEqual(self.missed(silent, saw=lambda: [][0]).saw, "nothing")

    def test_a_client_that_finds_no_server_hears_how_it_ended(self):
        def check(ex):
            ex._servers.append(unittest.mock.Mock(death=lambda: "it has ended with signal SIGSEGV"))
            raise checks.Missed("connects", "a connection", "refused")

        with unittest.mock.patch.object(checks, "load", lambda _: unittest.mock.Mock(check=check, SAN="")):
            missed = checks.judge(None, "/bin/echo", self.said.append)
        self.assertEqual(missed.saw, "refused; it has ended with signal SIGSEGV")

    def test_a_mistake_in_a_check_is_not_taken_for_the_learners(self):
        with self.assertRaises(ZeroDivisionError):
            self.ex.expect("key", "something", lambda: 1 / 0)

    def test_a_run_that_does_not_end_is_missed(self):
        self.ex.program = "/bin/sleep"
        with self.assertRaisesRegex(checks.Missed, "still ran"):
            self.ex.run(60, limit=0.01)

    def test_a_server_that_does_not_start_is_missed_with_its_words(self):
        self.ex.program = "/bin/false"
        with self.assertRaisesRegex(checks.Missed, "starts: .* status 1"):
            self.ex.serve()

    def test_a_server_that_listens_nowhere_is_missed_with_its_words(self):
        self.ex.program = os.path.join(self.ex.folder, "server")
        for port in ("five", "99999"):
            with open(self.ex.program, "w", encoding="ascii") as script:
                script.write("#!/bin/sh\necho mine: listening on http://127.0.0.1:%s\nsleep 60\n" % port)
            os.chmod(self.ex.program, 0o755)
            with self.assertRaisesRegex(checks.Missed, "starts: .*127.0.0.1:" + port):
                self.ex.serve()


class Conversation(unittest.TestCase):
    """A client, and this test at the other end."""

    def setUp(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.client = client.Client(*listener.getsockname())
            self.other, _ = listener.accept()
        self.addCleanup(self.client.close)
        self.addCleanup(self.other.close)

    def test_answers_are_taken_one_by_one(self):
        self.other.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\n\r\nhi"
                           b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"
                           b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
                           b"HTTP/1.1 200 OK\r\n\r\nall of it")
        self.other.shutdown(socket.SHUT_WR)
        self.assertEqual(self.client.hear()[:3], (200, {"content-length": "2", "a": "b"}, b"hi"))
        self.assertEqual(self.client.hear().status, 304)
        self.assertEqual(self.client.hear(head=True).body, b"")
        self.assertEqual(self.client.hear().body, b"all of it")
        self.assertIsNone(self.client.hear())
        self.assertTrue(self.client.is_closed())
        self.assertFalse(self.client.was_reset)

    def test_what_is_no_whole_answer_is_missed(self):
        for said, why in ((b"HTTP/1.1 200", "an end after"), (b"hello\r\n\r\n", "hello"),
                          (b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", "five"),
                          (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "an end after")):
            with self.subTest(said=said):
                self.setUp()
                self.other.sendall(said)
                self.other.close()
                with self.assertRaisesRegex(checks.Missed, why):
                    self.client.hear()

    def test_a_silence_is_missed(self):
        self.client.seconds = 0.1
        self.other.sendall(b"HTTP/1.1 200 OK\r\n")
        with self.assertRaisesRegex(checks.Missed, "nothing more within .* 200 OK"):
            self.client.hear()
        self.assertFalse(self.client.is_closed(0.1))

    def test_a_reset_is_an_end_of_another_kind(self):
        self.other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.other.close()
        self.assertTrue(self.client.is_closed(10))
        self.assertTrue(self.client.was_reset)


class Trace(unittest.TestCase):
    def test_calls_are_read_and_halves_joined(self):
        calls = list(served.parse_trace("""\
7 accept4(3, NULL, NULL, SOCK_CLOEXEC) = 4
7 recvfrom(4,  <unfinished ...>
8 accept4(3, NULL, NULL, SOCK_CLOEXEC) = -1 EAGAIN (Resource temporarily unavailable)
7 <... recvfrom resumed>"GET / \\"", 4096, 0, NULL, NULL) = 7
7 --- SIGTERM {si_signo=SIGTERM} ---
7 exit_group(0)                     = ?
7 +++ exited with 0 +++
"""))
        self.assertEqual(calls, [
            (7, "accept4", "3, NULL, NULL, SOCK_CLOEXEC", 4, None),
            (8, "accept4", "3, NULL, NULL, SOCK_CLOEXEC", -1, "EAGAIN"),
            (7, "recvfrom", '4, "GET / \\"", 4096, 0, NULL, NULL', 7, None),
            (7, "exit_group", "0", None, None)])


class Redis(unittest.TestCase):
    def test_one_that_is_too_old_to_hold_answers_makes_the_check_be_skipped(self):
        with checks.Exercise("/bin/echo", lambda _: None) as ex:
            redis = ex.redis()
            with unittest.mock.patch.object(redis, "ask", return_value="ERR syntax error"), \
                    self.assertRaisesRegex(checks.Skipped, "Redis 6.2"):
                redis.hold()

    def test_who_is_held_cannot_let_go(self):
        with checks.Exercise("/bin/echo", lambda _: None) as ex:
            held = ex.redis()
            program = checks.redis.Redis(held.where)
            self.assertEqual("1", program.ask("INCR", "guestbook:visitors"))
            held.hold()
            for words in ("CLIENT UNPAUSE", "CONFIG SET dir /tmp", "ACL SETUSER default +@all"):
                self.assertRegex(program.ask(*words.split()), "NOPERM|unknown command")
            self.assertEqual("OK", held.ask("CLIENT", "UNPAUSE"))
