"""filling: a folder of files to serve, the same wherever and whenever it is made.

    ROOT/public/small/0000.bin ... 4999.bin    5 to 15 kB
    ROOT/public/large.bin
    ROOT/templates                             a link to the project's own

The files are real bytes, not sparse, and they are written through to the disk before anything is
measured. Otherwise later writing would disturb the measurement.
"""

import os
import random
import shutil

from lib import Trouble
from lib.measuring import machine, meter

SEED = 5
SMALL_BYTES = (5000, 15000)
BLOCK = 2**20
ROOM = 1.2  # so much must be free besides the files


class Filling:
    """The files, which hold the bytes that a client must receive."""

    def __init__(self, root, small, large_bytes):
        self.root = root
        self._dice = random.Random(SEED)
        self._block = self._dice.getrandbits(8 * BLOCK).to_bytes(BLOCK, "little")
        self._check_room(small * sum(SMALL_BYTES) / 2 + large_bytes)
        os.makedirs(os.path.join(root, "public", "small"))
        os.symlink(os.path.join(machine.TOP, "templates"), os.path.join(root, "templates"))
        digits = len(str(small - 1))
        self.small = [self._make("/small/%0*d.bin" % (digits, number),
                                 self._dice.randint(*SMALL_BYTES)) for number in range(small)]
        self.large = [self._make("/large.bin", large_bytes)]
        self._make("/index.html", self._dice.randint(*SMALL_BYTES))  # peers are asked if ready

    def _check_room(self, needed):
        """Trouble if the files do not fit on the disk, or not all at once into memory."""
        os.makedirs(self.root, exist_ok=True)
        memory = meter.available_memory()
        for what, free in (("disk", shutil.disk_usage(self.root).free), ("memory", memory)):
            if free is not None and free < ROOM * needed:
                raise Trouble("the files take %d MB, and of %s there are %d MB free; see --large"
                              % (needed / 1e6, what, free / 1e6))

    def _make(self, path, size):
        """Makes a file, and returns its path as a client asks for it. Each begins at another place
        in the same random bytes."""
        at = self._dice.randrange(BLOCK // 2)
        with open(self.file_of(path), "wb") as file:
            while file.tell() < size:
                file.write(self._block[at:at + size - file.tell()])
                at = 0
            file.flush()
            if size > BLOCK:
                os.fsync(file.fileno())
        return path

    def file_of(self, path):
        return os.path.join(self.root, "public", path.lstrip("/"))

    def remember(self, paths):
        """Reads them, so that the kernel has them in memory."""
        for path in paths:
            with open(self.file_of(path), "rb", buffering=0) as file:
                while file.read(BLOCK):
                    pass

    def bytes_of(self, paths):
        return sum(os.path.getsize(self.file_of(path)) for path in paths)

    def is_right(self, path, chunks):
        """Are these the bytes of the file?"""
        with open(self.file_of(path), "rb") as file:
            return all(chunk == file.read(len(chunk)) for chunk in chunks) and not file.read(1)
