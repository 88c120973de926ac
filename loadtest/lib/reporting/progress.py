"""progress: what runs, and how much time is left, in one line of a terminal that is rewritten in place. A file or a pipe
gets a line now and then. Nothing is told while a cell is measured, because that would be work beside it."""

import math
import sys
import time

PIPE_SECONDS = 20  # from one line to the next


class Progress:
    """Counts cells, and guesses from those done how long the others will take."""

    def __init__(self, cells, guess_seconds):
        self.cells = cells
        self._guess = guess_seconds  # for one cell, until one is done
        self._started, self._told = time.monotonic(), -math.inf
        self._done = 0

    def begin(self, what):
        now = time.monotonic()
        each = (now - self._started) / self._done if self._done else self._guess
        begin, end = ("\r\033[K", "") if sys.stderr.isatty() else ("", "\n")
        if now - self._told >= PIPE_SECONDS * bool(end):
            self._told = now
            print("%s%s (cell %d of %d, about %.0f s left)" % (
                begin, what, self._done + 1, self.cells, each * (self.cells - self._done)), end=end, file=sys.stderr, flush=True)

    def cell_done(self):
        self._done += 1

    def clear(self):
        """Leaves an empty line for whatever is printed next."""
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
