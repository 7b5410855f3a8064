"""Cells whose bytes the backend lost: written before, not ready now. Their schema, sizes and backend meta stay.

It holds no words until a partition's first revoke; most never have one.
"""

import numpy as np

from core.arrays import Flags, Ints, grown

from .readiness import WORD, StatusWords, count_bits


class RevokedCells:
    """Bit words as those of readiness, never set in both; `count` per field bit.

    `at` int64 [rows]: the revision at which a row last lost a cell; it stays when the cell is written again.
    """

    __slots__ = ("at", "count", "words")

    def __init__(self) -> None:
        self.words: StatusWords | None = None
        self.count: Ints = np.zeros(WORD, np.int64)
        self.at: Ints = np.zeros(0, np.int64)

    def begin(self, ready: StatusWords) -> None:
        """From here on there may be some, in words as many as these and on the same device."""
        if self.words is None:
            self.words = ready.like(ready.capacity)
            self.reserve(ready.capacity, ready.width * WORD)

    def joined(self, rows: Ints, ready: Ints) -> Ints:
        """int64 [rows, words]: the ready cells (given) and the revoked ones; `ready` itself if none can be."""
        return ready if self.words is None else ready | self.words.gather(rows)

    def add(self, rows: Ints, cells: Ints, revision: int) -> None:
        """These cells (words, ready so far) are lost."""
        if self.words is not None:
            self.at[rows] = revision
            self.words.write(rows, self.words.gather(rows) | cells)
            self.count += count_bits(cells)

    def take(self, rows: Ints, cells: Ints) -> Ints:
        """These cells are not lost any more: written again, or their rows are gone. Per field bit, how many were."""
        if self.words is None:
            return np.zeros(1, np.int64)
        before = self.words.gather(rows)
        self.words.write(rows, before & ~cells)
        taken = count_bits(before & cells)
        self.count -= taken
        return taken

    def reserve(self, rows: int, fields: int) -> None:
        """Room for this many rows and fields; what is there stays."""
        self.count = grown(self.count, max(len(self.count), -(-fields // WORD) * WORD), 0)
        if self.words is not None:
            self.words.reserve(rows, fields)
            self.at = grown(self.at, rows, 0)

    def since(self, rows: Ints, revision: int) -> Flags:
        """Which of these rows lost a cell after this revision."""
        if self.words is None:
            return np.zeros(len(rows), np.bool_)
        return np.asarray(self.at[rows] > revision)

    def compact(self, rows: Ints, capacity: int) -> None:
        """Only these rows remain."""
        if self.words is not None:
            self.words.compact(rows, capacity)
            self.at = grown(self.at[rows], capacity, 0)
