"""Production leases: rows that disappear unless a field is produced in time (`ttl_s`).

The rows of one call are one batch with one deadline, whatever their number. A row points to its batch by number, the
revision of that call; a batch that no row points to is over. Derived from events, the deadlines are the engine's.
"""

from dataclasses import dataclass

import numpy as np

from core.arrays import Ints, grown, unpack
from core.events import Timed

from .rows import Rows


@dataclass(slots=True)
class TimedBatch:
    """`left`: how many rows still point to it."""

    indexes: bytes
    length_s: float
    left: int


class Ttls:
    """`number` int64 [rows]: the batch of each row, 0 for none. `ended`: batches that are over, until looked at."""

    __slots__ = ("batches", "ended", "number")

    def __init__(self) -> None:
        self.number: Ints | None = None
        self.batches: dict[int, TimedBatch] = {}
        self.ended: list[int] = []

    def begin(self, rows: Ints, event: Timed, number: int, capacity: int) -> None:
        """These rows have their time from now on, and no other."""
        if self.number is None:
            self.number = np.zeros(capacity, np.int64)
        self.end(rows)
        self.number[rows] = number
        self.batches[number] = TimedBatch(event.indexes, event.length_s, len(rows))

    def end(self, rows: Ints) -> None:
        """These rows have a field now, or another time, or are gone."""
        if not self.batches or self.number is None:
            return
        numbers = self.number[rows]
        self.number[rows] = 0
        for number, count in zip(*np.unique(numbers[numbers > 0], return_counts=True), strict=True):
            self._leave(int(number), int(count))

    def _leave(self, number: int, count: int) -> None:
        batch = self.batches[number]
        batch.left -= count
        if not batch.left:
            del self.batches[number]
            self.ended.append(number)

    def rows_of(self, number: int, rows: Rows) -> Ints:
        """The live rows that still point to this batch."""
        if self.number is None:
            return np.empty(0, np.int64)
        found = rows.locate(unpack(self.batches[number].indexes))
        return np.asarray(found[self.number[found] == number])

    def resize(self, rows: int) -> None:
        """Room for this many rows."""
        if self.number is not None:
            self.number = grown(self.number, rows, 0)

    def keep(self, rows: Ints, capacity: int) -> None:
        """Only these rows remain."""
        if self.number is not None:
            self.number = grown(self.number[rows], capacity, 0)
