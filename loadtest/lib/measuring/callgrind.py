"""callgrind: how many instructions a request takes, and in which part of the server.

valgrind(1) runs a server on a simulated processor, and its tool callgrind counts the instructions
of every function. callgrind_annotate(1) adds those of the functions that it calls. Two runs differ
by a number of requests, and the difference of their counts is what these requests took. Starting
and stopping cancel out. Time is not measured, and the kernel's work is not included.
"""

import re

from lib import Trouble
from lib.generators import ab
from lib.measuring import calls, machine, processes
from lib.subjects import places, servers

REQUESTS = 1000
FEW = 100
CLIENTS = 10
LIMIT_SECONDS = 120

# No function here calls another of them, and each includes all that it calls. board.c has several.
PARTS = {
    "http_parse": "parser: the request's bytes",
    "redis_async_ask": "commands to Redis",
    "redisReaderGetReply": "hiredis: the replies",
    "freeReplyObject": "hiredis: replies given back",
    "template_render": "rendering",
    "http_format_head": "the response's head",
    "board": "the scoreboard",
}
ALL, REST = "PROGRAM TOTALS", "all the rest"
NAME = "|".join([*PARTS, r"board_\w+", ALL])
LINE = re.compile(r"^ *([\d,]+) \( *[\d.]+%%\) +(?:\S+:)?(%s)(?: \[.*)?$" % NAME, re.MULTILINE)


def command(out):
    return ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, "-q"]


def parse(annotated):
    """Reads what callgrind_annotate prints: {function, or ALL: instructions}. If a function has
    code of another file compiled into it, there is a line for each file, and the largest is the
    whole."""
    found = {}
    for number, name in LINE.findall(annotated):
        found[name] = max(found.get(name, 0), int(number.replace(",", "")))
    if ALL not in found:
        raise Trouble("callgrind wrote no profile")
    return found


def per_request(open_server, kind, save_as, client_core, requests=REQUESTS):
    """{part: instructions a request} of one of calls.KINDS."""
    short, long = (_run(open_server, kind, "%s-%d" % (save_as, number), client_core, number)
                   for number in (FEW, FEW + requests))
    return difference(short, long)


def difference(short, long):
    """The difference of two runs, each given as a pair: the number of requests, and parse()'s
    result."""
    more = long[0] - short[0]
    if more <= 0:
        raise Trouble("the longer load was not longer")
    parts = dict.fromkeys([*PARTS.values(), REST], 0.0)
    for name, cost in long[1].items():
        each = (cost - short[1].get(name, 0)) / more
        if name == ALL:
            parts[REST] += each
        else:
            parts[PARTS[name if name in PARTS else name.partition("_")[0]]] += each
            parts[REST] -= each
    return parts


def _run(open_server, kind, save_as, client_core, requests):
    """Returns how many requests the server had, by its own account, and their profile."""
    path, kept = calls.KINDS[kind]
    log, out = save_as + ".log", save_as + ".callgrind"
    with open_server(log, command(out)) as server:
        load = ab.run(server.url + path, CLIENTS, places.Place(client_core), save_as, kept=kept,
                      requests=requests, limit=LIMIT_SECONDS)
        server.must_live()
        server.end()
    if load.failed:
        raise Trouble("under valgrind requests failed: %s" % load.errors_text())
    farewell = servers.farewell(processes.printed(log))
    if not farewell:
        raise Trouble("under valgrind the server did not end by itself")
    return farewell.requests, parse(machine.output_of(
        ["callgrind_annotate", "--inclusive=yes", "--threshold=100", "--auto=no", out], 60))
