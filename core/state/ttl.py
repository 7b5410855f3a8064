"""Rows inserted with `ttl_s`: they disappear unless one of their fields is produced in time.

The rows of one call are one batch with one deadline. Each row holds the number of its batch, the revision of that call;
a batch that no row holds is dropped. The deadlines themselves are in core.state.service.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import Columns, Ints, unpack
from core.events import Timed

from .rows import Rows


@dataclass(slots=True)
class TimedBatch:
    """Rows with one deadline. `left`: how many of them still have no field."""

    indexes: bytes
    length_s: float
    left: int


class Ttls(Columns):
    """`number` int64 [rows]: the batch of each row, 0 for none. `batches`: those that a row points to, by number."""

    __slots__ = ("batches", "number")

    columns: ClassVar[Mapping[str, object]] = {"number": 0}

    def __init__(self) -> None:
        self.number: Ints | None = None
        self.batches: dict[int, TimedBatch] = {}

    def begin(self, rows: Ints, event: Timed, number: int, capacity: int) -> None:
        """Start the time limit of these rows, which have none so far."""
        if self.number is None:
            self.number = np.zeros(capacity, np.int64)
        self.number[rows] = number
        self.batches[number] = TimedBatch(event.indexes, event.length_s, len(rows))

    def end(self, rows: Ints) -> list[int]:
        """End the time limit of these rows. Returns the numbers of the batches that have no rows left."""
        if not self.batches or self.number is None:
            return []
        numbers = self.number[rows]
        self.number[rows] = 0
        left = np.unique(numbers[numbers > 0], return_counts=True)
        return [
            number for number, count in zip(*map(np.ndarray.tolist, left), strict=True) if self._leave(number, count)
        ]

    def _leave(self, number: int, count: int) -> bool:
        batch = self.batches[number]
        batch.left -= count
        if not batch.left:
            del self.batches[number]
        return not batch.left

    def rows_of(self, number: int, rows: Rows) -> Ints:
        """The live rows that are still in this batch."""
        if self.number is None:
            return np.empty(0, np.int64)
        found = rows.locate(unpack(self.batches[number].indexes))
        return np.asarray(found[self.number[found] == number])
