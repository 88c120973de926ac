#!/usr/bin/env python3
"""Whatever happens to the loops of chapters 6 and 7, and in whatever order: is all well? With at
most one mishap. `make states MISHAPS=2` takes longer."""

import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # leaves no __pycache__ among the sources

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
OUT = os.environ.get("OUT", "build/plain")


class States(unittest.TestCase):
    def test_every_state_of_chapters_6_and_7_has_a_way_out(self):
        programs = [subprocess.Popen([os.path.join(OUT, "states_" + loop)], cwd=TOP, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    for loop in ("poll", "epoll")]
        for program in programs:
            said = program.communicate()[0]
            print(said, end="", file=sys.stderr)
            self.assertEqual(program.returncode, 0, said)
