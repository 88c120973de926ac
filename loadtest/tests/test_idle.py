"""The memory of connections on which nobody speaks: from what the kernel writes, and alive."""

import unittest

import programs
from lib import Trouble
from lib.measuring import idle, processes
from lib.subjects import peers, servers

FILE, NO_REDIS = "/index.html", "unix:/not/there"
tearDownModule = processes.end_all


class Holding(unittest.TestCase):
    def test_a_kernel_stack_is_all_of_them_by_all_threads(self):
        self.assertEqual(idle.stack_size("Slab:   9 kB\nKernelStack:        1440 kB\n",
                                         "247.63 135.07 59.94 2/89 28874\n"), 16384)

    def measured(self, name, path=FILE, connections=10):
        log = programs.folder(self) + "/log"
        return idle.measure(lambda: servers.Server(servers.path_of(name), NO_REDIS, None, log), path, connections)

    @programs.needs(servers.path_of("epoll"))
    def test_they_are_kept_and_counted_or_it_is_trouble(self):
        found = self.measured("epoll")
        self.assertEqual(found.connections, 10)
        self.assertEqual(set(found.before), set(idle.FIGURES))
        self.assertGreater(min(found.before.values()), 0)
        with self.assertRaisesRegex(Trouble, "of 10 idle connections it kept [01]$"):
            self.measured("iterative")
        with self.assertRaisesRegex(Trouble, "an answer was 404"):
            self.measured("epoll", "/not-there")

    @programs.needs(peers.FLOOR)
    def test_the_floor_needs_nothing_for_one(self):
        log = programs.folder(self) + "/log"
        found = idle.measure(lambda: peers.Floor(None, log), "/", 50)
        self.assertEqual(found.connections, 50)
        self.assertLess(found.each("pss"), 1024)
        self.assertEqual(found.each("stacks"), 0)
