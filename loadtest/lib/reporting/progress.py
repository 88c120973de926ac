"""progress: what runs, and how much time is left, in one line of a terminal that is rewritten in place. A file or a pipe
gets a line now and then."""

import sys
import threading
import time

TERMINAL_SECONDS, PIPE_SECONDS = 0.5, 20  # from one line to the next


class Progress:
    """Counts cells, and guesses from those done how long the others will take."""

    def __init__(self, cells, guess_seconds):
        self.cells = cells
        self._guess = guess_seconds  # for one cell, until one is done
        self._started = time.monotonic()
        self._done = 0
        self._over, self._teller = threading.Event(), threading.Thread(target=self._tell, daemon=True)

    def begin(self, what):
        each = (time.monotonic() - self._started) / self._done if self._done else self._guess
        self._now = what, self._done + 1, time.monotonic() + each * (self.cells - self._done)
        if not self._teller.ident:
            self._teller.start()

    def cell_done(self):
        self._done += 1

    def clear(self):
        """Leaves an empty line for whatever is printed next."""
        if self._teller.ident:
            self._over.set()
            self._teller.join()
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def _tell(self):
        begin, end = ("\r\033[K", "") if sys.stderr.isatty() else ("", "\n")
        while not self._over.wait(PIPE_SECONDS if end else TERMINAL_SECONDS):
            what, number, until = self._now
            print("%s%s (cell %d of %d, about %.0f s left)" % (begin, what, number, self.cells, max(
                1, until - time.monotonic())), end=end, file=sys.stderr, flush=True)
