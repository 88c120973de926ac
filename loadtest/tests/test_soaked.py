"""A soak: a leak is seen, what settles is no leak, and an interrupted run goes on."""

import signal
import subprocess
import time
import unittest
from collections import Counter

import programs
from lib import soaked
from lib.soaked import Held, Turn

USUAL = Held(memory=3000000, descriptors=9, processes=2, threads=3, redis=16)
EACH = 300000  # requests of a turn

soak = programs.load("soak")


def turns(how_many, more=lambda turn: {}, life=1):
    """Turns after which a server holds USUAL, and more(the number of the turn) of some figures."""
    return [Turn("epoll", life, answers={"2xx": EACH}, held=USUAL._replace(**{
        figure: getattr(USUAL, figure) + extra for figure, extra in more(number).items()}))
            for number in range(1, how_many + 1)]


class Verdict(unittest.TestCase):
    def test_a_server_that_holds_the_same_is_flat(self):
        self.assertEqual(soak.verdict(turns(40)), "flat")

    def test_a_descriptor_a_process_or_a_thread_lost_in_a_million_requests_is_seen(self):
        for figure in ("descriptors", "processes", "threads"):
            with self.subTest(figure=figure):
                leak = turns(40, lambda n, figure=figure: {figure: EACH * n // 1000000})
                self.assertEqual(soak.verdict(leak), "grew: " + figure)

    def test_connections_to_redis_may_be_as_many_as_clients_but_no_more(self):
        for growth, wanted in ((soaked.KEPT + soaked.NEW, "flat"), (40, "grew: redis")):
            late = turns(40, lambda n, growth=growth: {"redis": growth if n > 20 else 0})
            self.assertEqual(soak.verdict(late), wanted)

    def test_each_life_is_judged_by_itself(self):
        higher = turns(8, lambda n: {"memory": 5 << 20}, life=2)
        self.assertEqual(soak.verdict(turns(40) + higher), "flat")
        leaking = turns(8, lambda n: {"memory": n << 20}, life=2)
        self.assertEqual(soak.verdict(turns(40) + leaking), "grew: memory")

    def test_a_turn_that_went_wrong_is_not_forgotten(self):
        ended = Turn("epoll", 1, wrong=["epoll ended under load: signal 11"])
        self.assertEqual(soak.verdict(turns(40) + [ended]), "wrong")
        self.assertEqual(soak.troubles([ended]), ended.wrong)


class Causes(unittest.TestCase):
    def test_every_5xx_has_its_status_and_what_is_known_of_its_cause(self):
        odd = Turn("epoll", 1, answers={"2xx": 7, "5xx": 2}, statuses=Counter({200: 7, 503: 2}),
                   stall=3.21, said=["epoll: no Redis"])
        self.assertEqual(soak.troubles(turns(3) + [odd]), [
            "Unexpected in 1 of 4 turns: 503: 2. It printed: epoll: no Redis. For up to 3.2 s of "
            "these turns the machine left us no CPU."])


@programs.needs("wrk", "ab")
class Run(unittest.TestCase):
    def test_an_interrupted_run_goes_on_in_another_life(self):
        folder = programs.folder(self)
        words = ["--quick", "--servers", "epoll", "--into", folder]
        first = subprocess.Popen([soak.__file__, *words], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        while first.poll() is None and not programs.cells(folder):
            time.sleep(0.05)
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(), 128 + signal.SIGTERM)
        before = len(programs.cells(folder))
        said = programs.run("soak", *words).stdout
        rows = programs.cells(folder)
        self.assertEqual([row["life"] for row in rows].index("2"), before, said)
        self.assertGreaterEqual(len(rows), 4)
        statuses = " ".join(row["statuses"] for row in rows)
        for status in soaked.EXPECTED:
            self.assertIn("%d: " % status, statuses)
        self.assertEqual({(row["5xx"], row["errors"], row["wrong"]) for row in rows},
                         {("0", "", "")}, said)
