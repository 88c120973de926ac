"""kept: the measurements of an interrupted run, so that it goes on where it stopped (--into).

raw/kept.pickle in the run's folder holds the description of the run, and each cell as soon as it is
measured. A run of another command, or of servers whose code has changed since, uses nothing of it.
A complete run leaves no such file.
"""

import os
import pickle
from collections import namedtuple

Sitting = namedtuple("Sitting", "what seed began")


class Kept:
    """The cells of one run. `what` describes it. If `folder` is None, nothing is kept or found."""

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
            pass  # the end of the file, or a cell that was cut off

    def begin(self, seed, began):
        """Begins another part of the run. Returns the seed of the first part, and the times when
        all of them began."""
        seed = self._sittings[0].seed if self._sittings else seed
        self._sittings.append(Sitting(self._what, seed, began))
        self._add(self._sittings[-1])
        return seed, ", ".join(each.began for each in self._sittings)

    def _add(self, one):
        if self._path:
            with open(self._path, "ab") as file:
                file.truncate(self._bytes)  # the cell that was cut off
                pickle.dump(one, file)
                self._bytes = file.tell()

    def recall(self, **wanted):
        """The first cell that has these attributes. Each is returned once. None: it has to be
        measured."""
        for at, cell in enumerate(self._cells):
            if all(getattr(cell, name) == value for name, value in wanted.items()):
                return self._cells.pop(at)
        return None

    def keep(self, cell, asked):
        self._add((cell, asked))

    def complete(self):
        """The run is complete: removes the file."""
        if self._path:
            os.remove(self._path)
