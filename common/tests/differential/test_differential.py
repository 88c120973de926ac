#!/usr/bin/env python3
"""Do the parser in C and the reading of the wire contract in Python say the same of each request?

    OUT=build/plain test_differential.py [NUMBER [SEED]]

Makes up NUMBER requests, hands them to both, and prints a few about which they differ, as short as
they could be made. Without SEED it takes a new one, and says which. `make differential` builds what
it needs."""

import itertools
import os
import random
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # leaves no __pycache__ among the sources

import grammar
import rules

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
READER = os.path.join(TOP, os.environ.get("OUT", "build/plain"), "reader")
METHODS = {b"GET": 1, b"HEAD": 2, b"POST": 4, b"OPTIONS": 8, b"PUT": 16, b"DELETE": 16, b"PATCH": 16,
           b"TRACE": 16, b"CONNECT": 16}  # enum http_method
AT_ONCE = 1000
A_FEW = 3
IN_A_TEST = 30000


def span(value):
    return "-" if value is None else value.hex() or "''"


def describe(sent):
    """What rules.py makes of the bytes, in the form of reader.c."""
    verdict, what = rules.read(sent)
    if verdict != rules.REQUEST:
        return verdict if what is None else "%s %d" % (verdict, what)
    first_x = next(iter(rules.values(what.fields, b"x")), None)
    path = None if what.path == b"*" else rules.decode_path(what.path)
    return " ".join(["request %d %d %d %d %d" % (what.used, METHODS.get(what.method, 0), what.http_1_0,
                                                 what.keep_alive, what.continues)] +
                    [span(each) for each in (what.path, what.query, what.host, what.lines, what.body,
                                             first_x, path)])


def pieces(sent, cuts):
    ends = cuts + [len(sent)]
    cut = [sent[a:b] for a, b in zip([0] + cuts, ends)]
    return b"".join(b"%d\n%s" % (len(each), each) for each in cut if each) + b"0\n"


def read_in_c(requests):
    """What reader.c makes of [(bytes, cuts), ...]: a line for each."""
    return subprocess.check_output([READER], input=b"".join(pieces(*each) for each in requests)).decode().splitlines()


def differ(requests):
    for (sent, cuts), in_c in zip(requests, read_in_c(requests)):
        in_python = describe(sent)
        if in_c != in_python:
            yield sent, cuts, in_c, in_python


def shrink(sent, cuts):
    """A shorter request about which they differ as well: leaves out what can be left out."""
    def cut(shorter):
        return shorter, list(range(1, len(shorter))) if cuts else []
    step = len(sent)
    while step > 0:
        for at in range(len(sent) - step, -1, -step):
            shorter = sent[:at] + sent[at + step:]
            if any(differ([cut(shorter)])):
                sent = shorter
        step //= 2
    return cut(sent) if any(differ([cut(sent)])) else (sent, cuts)


def compare(number, seed):
    """What there is to be said about each difference, up to a few."""
    made, found = grammar.Requests(seed), {}
    for _ in range(0, number, AT_ONCE):
        requests = [(sent, made.cuts(len(sent))) for sent in (made.bytes() for _ in range(AT_ONCE))]
        for sent, cuts, _, _ in itertools.islice(differ(requests), A_FEW - len(found)):
            for sent, cuts, in_c, in_python in differ([shrink(sent, cuts)]):
                found[sent] = "%r%s\n    in C:      %s\n    in Python: %s" % (
                    sent, ", cut up" if cuts else "", in_c, in_python)
    return list(found.values())


class Differential(unittest.TestCase):
    def test_the_parser_reads_what_the_contract_says(self):
        seed = random.randrange(10**6)
        print("differential: %d requests of seed %d" % (IN_A_TEST, seed), file=sys.stderr)
        found = compare(IN_A_TEST, seed)
        self.assertEqual(found, [], "\n".join(found))


def main(number="100000", seed=None):
    seed = int(seed or random.randrange(10**6))
    print("%s requests of seed %d" % (number, seed), flush=True)
    found = compare(int(number), seed)
    print("\n".join(found + ["%d differences" % len(found)]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
