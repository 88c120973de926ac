"""What the load tests share. One idea a file, which its first line says:

- engine, cells, rows    one engine for all experiments: its options and order, a measurement, the tables
- subjects/              what is measured, and where it runs: the seven, peers, companions, other machines
- generators/            what loads it: ab, wrk, h2load
- measuring/             what is seen meanwhile: processes, cores, memory, system calls
- reporting/             what it comes to: tables, charts, a page
- seeing/                swim lanes, for xray and which

Processes, servers, Redis and strace are those of common/tools/lib, which is on the path behind this.
"""

import codecs
import contextlib
import os
import sys

sys.path.insert(1, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../common/tools/lib")))

from top import Trouble  # for the others of this package

# What a terminal may not know.
codecs.register_error("spelled", lambda error: ({"≥": ">=", "µ": "u"}.get(error.object[error.start], "?"), error.start + 1))
for each in (sys.stdout, sys.stderr):
    with contextlib.suppress(AttributeError):
        each.reconfigure(errors="spelled")
