"""What is turned, under which load, and what its table says of the constants behind it."""

import argparse
import os
import sys
import unittest
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib import dials
from lib.measuring import machine
from lib.subjects import places
from lib.cells import Dials, Spot


def asked(*words):
    """The turns that these options ask for."""
    parser = argparse.ArgumentParser()
    dials.add_options(parser)
    return dials.turns(parser.parse_args(words))


class Turns(unittest.TestCase):
    def test_one_dial_is_turned_the_others_stay(self):
        turn, = asked("--work", "2", "--cores", "1,2")
        self.assertEqual((turn.dial, turn.values), ("cores", [1, 2]))
        self.assertEqual(turn.spots(["epoll", "floor"]),
                         [Spot("epoll", "wrk", 20, dials=Dials(None, 2, 1)),
                          Spot("epoll", "wrk", 20, dials=Dials(None, 2, 2)),
                          Spot("floor", "wrk", 20)])

    def test_a_second_one_makes_another_table_for_each_of_its_settings(self):
        turns = asked("--delay", "0,10,50", "--work", "0,0.1")
        self.assertEqual([turn.settings[1] for turn in turns], [Dials(10, 0), Dials(10, 0.1)])

    def test_a_single_setting_is_a_table_with_a_single_column(self):
        turn, = asked("--work", "0.5")
        self.assertEqual((turn.dial, turn.values), ("work_ms", [0.5]))

    def test_far_from_redis_there_are_many_clients(self):
        self.assertEqual([turn.load for turn in asked("--delay", "0")], [("ab", 500)])

    def test_all_three_on_as_many_cores_as_there_are(self):
        with mock.patch.object(machine, "usable_cores", lambda: [0, 1, 2]):
            delay, work, cores = dials.all_turns()
        self.assertEqual(delay.values, [0, 1, 10, 50])
        self.assertEqual(work.values, [0, 0.1, 1, 10])
        self.assertEqual(cores.settings, tuple(Dials(None, 2, number) for number in (1, 2, 3)))


class Bounds(unittest.TestCase):
    def of(self, turn, allowed=(0, 1)):
        run = SimpleNamespace(hosts=places.Here())
        with mock.patch.object(dials, "team", lambda: 100), \
                mock.patch.object(machine, "usable_cores", lambda: allowed):
            return list(turn.bounds(run))

    def test_who_waits_serves_no_more_than_workers_or_clients_can(self):
        self.assertEqual(self.of(*asked("--delay", "0,50")), [
            "3 x 50 ms: at most 7 pages/s one after the other, 667 by 100 workers, "
            "3,333 by 500 clients"])
        self.assertEqual(self.of(*asked("--delay", "0")), [])

    def test_who_computes_no_more_than_a_core_can_and_others_may_be_on_that(self):
        turn, = asked("--work", "2", "--cores", "1,2")
        self.assertEqual(self.of(turn), ["2 ms: at most 500 pages/s on a core",
                                         "2 cores: shared with wrk and Redis"])
        self.assertEqual(len(self.of(turn, (0, 1, 2))), 1)

    @unittest.skipUnless(os.access(dials.servers.path_of("preforking"), os.X_OK), "not built")
    def test_the_workers_are_as_many_as_the_servers_say(self):
        self.assertGreater(dials.team(), 1)


if __name__ == "__main__":
    unittest.main()
