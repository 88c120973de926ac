"""progress: what runs, and how much time is left, in one line of a terminal that is rewritten in place."""

import sys
import time


class Progress:
    """Counts cells, and guesses from those done how long the others will take."""

    def __init__(self, cells, guess_seconds):
        self.cells = cells
        self._guess = guess_seconds  # for one cell, until one is done
        self._started = time.monotonic()
        self._done = 0

    def begin(self, what):
        each = (time.monotonic() - self._started) / self._done if self._done else self._guess
        self._show("%s (cell %d of %d, about %.0f s left)" % (
            what, self._done + 1, self.cells, each * (self.cells - self._done)))

    def cell_done(self):
        self._done += 1

    def clear(self):
        """Leaves an empty line for whatever is printed next."""
        self._show("")

    def _show(self, text):
        if sys.stderr.isatty():
            print("\r\033[K" + text, end="", file=sys.stderr, flush=True)
