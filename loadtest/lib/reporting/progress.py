"""progress: what runs, and how much time is left, on standard error.

In a terminal it is one line, rewritten in place. Elsewhere (a file, a CI log) it is a line now and
then."""

import sys
import time


EVERY_SECONDS = 20  # a line, where lines stay


class Progress:
    """Counts cells, and guesses from those done how long the others will take."""

    def __init__(self, cells, guess_seconds, out=sys.stderr, clock=time.monotonic):
        self.cells = cells
        self._guess = guess_seconds  # for one cell, until one is done
        self._out = out
        self._clock = clock
        self._started = self._told = clock()
        self._done = 0
        self._waits = ()  # for a far Redis, in seconds, of the cell that runs and of those behind it
        self._waited = 0  # those of the cells that are done
        self._terminal = out.isatty()

    def begin(self, what, waits=()):
        self._waits = waits
        if self._terminal:
            self._rewrite("%s: cell %d of %d, about %.0f s left" % (
                what, self._done + 1, self.cells, self.seconds_left()))

    def cell_done(self, outcome):
        """`outcome` says what and how it went."""
        self._done += 1
        self._waited += sum(self._waits[:1])
        self._waits = self._waits[1:]
        if not self._terminal and self._clock() - self._told >= EVERY_SECONDS:
            self._told = self._clock()
            print("%s (cell %d of %d, about %.0f s left)" % (
                outcome, self._done, self.cells, self.seconds_left()), file=self._out, flush=True)

    def clear(self):
        """Leaves an empty line for whatever is printed next."""
        if self._terminal:
            self._rewrite("")

    def seconds_left(self):
        spent = max(self._clock() - self._started - self._waited, 0)
        each = spent / self._done if self._done else self._guess
        return each * (self.cells - self._done) + sum(self._waits)

    def _rewrite(self, text):
        self._out.write("\r\033[K" + text)
        self._out.flush()
