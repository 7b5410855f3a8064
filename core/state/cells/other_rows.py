"""The rows that had a field before a write, without the written ones."""

from typing import Protocol

import numpy as np

from core.arrays import Ints

from .fields import Field
from .readiness import bit_column


class Holding(Protocol):
    """What a grid tells of the rows that have a field."""

    def held(self, field: Field) -> int: ...
    def holders(self, field: Field) -> Ints: ...


def nobody() -> Ints:
    """No rows."""
    return np.empty(0, np.int64)


class OtherRows:
    """Of one field; `had` int64 [rows, words]: what the written rows had. Found at the first call, then kept."""

    __slots__ = ("_field", "_found", "_grid", "_had", "_rows")

    def __init__(self, grid: Holding, field: Field, rows: Ints, had: Ints) -> None:
        self._grid, self._field, self._rows, self._had = grid, field, rows, had
        self._found: Ints | None = None

    def __call__(self) -> Ints:
        if self._found is None:
            held = self._grid.held(self._field)
            if not held or held == int(bit_column(self._had, self._field.bit).sum()):
                self._found = nobody()
            else:
                self._found = np.setdiff1d(self._grid.holders(self._field), self._rows)
        return self._found
