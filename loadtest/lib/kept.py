"""kept: what an interrupted run has measured, so that it goes on where it stopped (--into).

In the run's folder, raw/kept.pickle: what the run is, and each cell as soon as it is there. A run of
another command, or of servers whose code has changed since, takes nothing from it. A complete run
leaves no such file.
"""

import os
import pickle
from collections import namedtuple

Sitting = namedtuple("Sitting", "what seed began")


class Kept:
    """Of one run. `what` it is; folder None: nothing is kept, and nothing is there."""

    def __init__(self, folder, what):
        self._path = folder and os.path.join(folder, "raw", "kept.pickle")
        self._what = what
        self._forget()
        if folder and os.path.exists(self._path):
            with open(self._path, "rb") as file:
                self._read(file)
            if not self._sittings or self._sittings[0].what != what:
                self._forget()

    def _forget(self):
        self._sittings, self._cells, self._bytes = [], [], 0
        self.asked = {}  # as in Run

    def _read(self, file):
        try:
            while True:
                one = pickle.load(file)
                if isinstance(one, Sitting):
                    self._sittings.append(one)
                else:
                    cell, self.asked = one
                    self._cells.append(cell)
                self._bytes = file.tell()
        except (EOFError, pickle.UnpicklingError):
            pass  # its end, or a cell that was cut off

    def begin(self, seed, began):
        """Another sitting. Returns the seed of the first, and when all of them began."""
        seed = self._sittings[0].seed if self._sittings else seed
        self._sittings.append(Sitting(self._what, seed, began))
        self._add(self._sittings[-1])
        return seed, ", ".join(each.began for each in self._sittings)

    def _add(self, one):
        if self._path:
            with open(self._path, "ab") as file:
                file.truncate(self._bytes)  # what was cut off
                pickle.dump(one, file)
                self._bytes = file.tell()

    def recall(self, **wanted):
        """The first cell that has these attributes, once; None: it is to be measured."""
        for at, cell in enumerate(self._cells):
            if all(getattr(cell, name) == value for name, value in wanted.items()):
                return self._cells.pop(at)
        return None

    def keep(self, cell, asked):
        self._add((cell, asked))

    def complete(self):
        """Nothing is left to be done."""
        if self._path:
            os.remove(self._path)
