"""The shapes of all cells of a partition: one int32 matrix, a row per sample, `rank` columns (slots) per tensor field.

The slots of a field that the sample lacks hold no meaningful value; readers check the production status first.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from core.arrays import Columns, Ints

Sizes = npt.NDArray[np.int32]
STEP = 8


class SizeTable(Columns):
    """int32 [rows, slots]; the slots of removed fields are used again."""

    __slots__ = ("_free", "_used", "table")

    columns: ClassVar[Mapping[str, object]] = {"table": 0}

    def __init__(self, rows: int) -> None:
        self.table: Sizes = np.zeros((rows, 0), np.int32)
        self._used = 0
        self._free: dict[int, list[int]] = {}

    def reserve(self, rank: int) -> int:
        """The first of `rank` slots side by side."""
        free = self._free.get(rank)
        if free:
            return free.pop()
        first = self._used
        self._used += rank
        missing = self._used - self.table.shape[1]
        if missing > 0:
            more = np.zeros((len(self.table), -(-missing // STEP) * STEP), np.int32)
            self.table = np.concatenate([self.table, more], axis=1)
        return first

    def give_back(self, first: int, rank: int) -> None:
        """Free these slots for other fields."""
        self._free.setdefault(rank, []).append(first)

    def put(self, rows: Ints, slots: slice | Ints, sizes: Sizes) -> None:
        """Set the slots of `rows`: `sizes` int32 [rows or 1, slots]."""
        if isinstance(slots, slice):
            self.table[rows, slots] = sizes
        else:
            self.table[rows[:, None], slots] = sizes

    def at(self, rows: slice | Ints, slots: slice | Ints) -> Sizes:
        """int32 [rows, slots]. Whole rows are gathered first: that copies blocks of memory, not single numbers."""
        found: Sizes = self.table[rows] if isinstance(rows, slice) else self.table.take(rows, axis=0)
        return found[:, slots]


def together(slots: list[int]) -> slice | Ints:
    """Slots as the fastest way to index them."""
    first = slots[0] if slots else 0
    last = first + len(slots)
    return slice(first, last) if slots == list(range(first, last)) else np.array(slots, np.int64)
