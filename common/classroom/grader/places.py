"""places: where the project's things are, and the way to what loadtest/ and the exercises share.

Import this first: `from lib import ...` finds loadtest/lib only behind it, `import diag` the
exercises' sockets, `import jail` the sandbox, and `import criterion` what reads the tests' reports.
"""

import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
TESTS = os.path.join(TOP, "common", "tests")
PROGRAMS = os.path.join(TOP, "build", "plain")  # servers, weather

sys.path[1:1] = [os.path.join(TOP, "loadtest"), os.path.join(TOP, "common", "classroom", "exercises"),
                 os.path.join(TOP, "common", "classroom", "course"), TESTS]

CHAPTERS = {"iterative": "01_iterative", "forking": "02_forking", "preforking": "03_preforking",
            "threading": "04_threading", "prethreading": "05_prethreading", "poll": "06_poll",
            "epoll": "07_epoll"}
MODELS = list(CHAPTERS)
