"""Revoked cells: the backend lost their bytes, so they are not ready. Their schema, sizes and backend meta stay.

No words are allocated before a partition's first revoke; most partitions never have one.
"""

import numpy as np

from core.arrays import Flags, Ints, grown

from .readiness import WORD, StatusWords, count_bits


class RevokedCells:
    """Bit words like those of readiness; no bit is set in both. `count` is per field bit.

    `at` int64 [rows]: the revision at which a row last lost a cell; it stays when the cell is written again.
    """

    __slots__ = ("at", "count", "words")

    def __init__(self) -> None:
        self.words: StatusWords | None = None
        self.count: Ints = np.zeros(WORD, np.int64)
        self.at: Ints = np.zeros(0, np.int64)

    def begin(self, ready: StatusWords) -> None:
        """Allocate the words at the first revoke, of the size and on the device of `ready`."""
        if self.words is None:
            self.words = ready.like(ready.capacity)
            self.reserve(ready.capacity, ready.width * WORD)

    def joined(self, rows: Ints, ready: Ints) -> Ints:
        """int64 [rows, words]: the ready cells (given) and the revoked ones; `ready` itself before any revoke."""
        return ready if self.words is None else ready | self.words.gather(rows)

    def add(self, rows: Ints, cells: Ints, revision: int) -> None:
        """Mark these cells (words, ready so far) as revoked."""
        if self.words is not None:
            self.at[rows] = revision
            self.words.write(rows, self.words.gather(rows) | cells)
            self.count += count_bits(cells)

    def take(self, rows: Ints, cells: Ints) -> Ints:
        """Unmark these cells: written again, or their rows removed. Returns per field bit how many were revoked."""
        if self.words is None:
            return np.zeros(1, np.int64)
        before = self.words.gather(rows)
        self.words.write(rows, before & ~cells)
        taken = count_bits(before & cells)
        self.count -= taken
        return taken

    def reserve(self, rows: int, fields: int) -> None:
        """Make room for this many rows and fields; the words stay."""
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
