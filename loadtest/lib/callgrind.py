"""callgrind: whose instructions a request takes, part by part; the same in every run.

valgrind(1) runs a server on a processor of its own making, and its tool callgrind counts the
instructions of every function, and on whose behalf. Two runs differ by so many requests; what the
longer one took more is theirs, and starting and stopping cancel out. Time is not measured, and the
kernel's work is not in it.

What belongs to whom: a function of ours to its source file, what was compiled into it included; one
of hiredis to hiredis; one of the C library, or of text.c, to whoever called it, since a memcpy() in
the parser is the parser's.

The format is described in Valgrind's manual, "Callgrind Format Specification".
"""

import os
import re
from collections import Counter, namedtuple

from lib import Trouble, ab, calls, processes, servers

REQUESTS = 1000
FEW = 100
CLIENTS = 10
LIMIT_SECONDS = 120

PARSER = "http_parse"  # in http.c; what it does not call of these files writes responses' heads
HTTP = ["http.c", "http_characters.c", "http_head.c", "http_uri.c"]
SHARED = "text.c"  # spans and buffers: whoever calls it is charged, as for the C library

Function = namedtuple("Function", "object file name")
Edge = namedtuple("Edge", "caller callee")


class Profile:
    """Instructions: of each function itself, and of each call with all that was called in turn."""

    def __init__(self):
        self.own = Counter()  # by Function
        self.inclusive = Counter()  # by Edge

    def __sub__(self, other):
        result = Profile()
        result.own = Counter(self.own)
        result.own.subtract(other.own)
        result.inclusive = Counter(self.inclusive)
        result.inclusive.subtract(other.inclusive)
        return result


def command(out):
    return ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, "-q"]


# ---- the file ------------------------------------------------------------------------------


# fn=(12) conn_advance, and later only fn=(12); cfn and its like are of a function that is called.
POSITION = re.compile(r"(c?)(ob|fl|fi|fe|fn)=\((\d+)\)(?: (.*))?$")
SPACES = {"ob": "object", "fl": "file", "fi": "file", "fe": "file", "fn": "function"}  # of numbers


def parse(text):
    """A callgrind.out file as a Profile. Names are written once, and have a number from then on."""
    if "events: Ir" not in text:
        raise Trouble("callgrind wrote no profile")
    profile, names = Profile(), {}
    here = {"ob": "", "fl": "", "fn": ""}  # the function whose costs these are
    there = {}  # the one that it called, as far as it is elsewhere
    line_of = ""  # the file that this code is from: another one, if it was compiled into a function
    calling = False
    for line in text.partition("\nevents: Ir")[2].splitlines()[1:]:
        found = POSITION.match(line)
        if found:
            called, key, number, name = found.groups()
            if name is not None:
                names[SPACES[key], number] = name
            name = names[SPACES[key], number]
            if called:
                there["fl" if key in ("fi", "fe") else key] = name
            elif key in here:
                here[key] = name
            if not called and key in ("fl", "fi", "fe"):
                line_of = name
        elif line.startswith("calls="):
            calling = True
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            caller, cost = _function(here), int(line.split()[-1])
            if calling:
                profile.inclusive[Edge(caller, _function({**here, "fl": line_of, **there}))] += cost
                calling, there = False, {}
            else:
                profile.own[caller] += cost
    return profile


def _function(place):
    name = place["fn"].split("'")[0]  # recursion: serve'2
    return Function(os.path.basename(place["ob"]), place["fl"], name)


# ---- what it says --------------------------------------------------------------------------


def part_of(function):
    """Its part of the server, or None if it works for whoever calls it."""
    if function.object.startswith("libhiredis"):
        return "hiredis"
    folder, name = os.path.split(function.file)
    if not (folder.endswith("/common") or name == "main.c"):
        return None
    if function.name == PARSER:
        return "parser"
    if name == SHARED:
        return None
    return "http" if name in HTTP else name.rpartition(".")[0]


def by_part(profile):
    """{part: instructions}, and under None those that belong to no part, which start and end it.

    The parser is http_parse() and all of HTTP that it calls; so whatever of that has been called by
    it is moved from there."""
    parts = Counter()
    for function, cost in profile.own.items():
        parts[part_of(function)] += cost
    for edge, cost in profile.inclusive.items():
        caller, callee = part_of(edge.caller), part_of(edge.callee)
        if caller is not None and callee is None:
            parts[caller] += cost
            parts[None] -= cost
        elif caller is None and callee is not None:  # main(), or a function given to qsort()
            pass
        elif caller == "parser" and callee == "http":
            parts["parser"] += cost
            parts["http"] -= cost
    return parts


# ---- of a server ----------------------------------------------------------------------------


def per_request(open_server, kind, save_as, client_core, requests=REQUESTS):
    """{part: instructions a request} of one of calls.KINDS."""
    short, long = (_run(open_server, kind, "%s-%d" % (save_as, number), client_core, number)
                   for number in (FEW, FEW + requests))
    return difference(short, long)


def difference(short, long):
    """From two pairs of a number of requests and a Profile."""
    more = long[0] - short[0]
    if more <= 0:
        raise Trouble("the longer load was not longer")
    parts = by_part(long[1] - short[1])
    return {part: cost / more for part, cost in parts.most_common() if part and cost > 0}


def _run(open_server, kind, save_as, client_core, requests):
    """How many requests the server had, by its own account, and its Profile."""
    path, kept = calls.KINDS[kind]
    log, out = save_as + ".log", save_as + ".callgrind"
    with open_server(log, command(out)) as server:
        load = ab.run(server.url + path, CLIENTS, client_core, save_as, kept=kept,
                      requests=requests, limit=LIMIT_SECONDS)
        server.must_live()
        server.end()
    if load.failed:
        raise Trouble("under valgrind requests failed: %s" % load.errors_text())
    farewell = servers.farewell(processes.printed(log))
    if not farewell:
        raise Trouble("under valgrind the server did not end by itself")
    return farewell.requests, parse(processes.printed(out))
