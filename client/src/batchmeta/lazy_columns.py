"""The sources of an array column before its first use: JSON, rows of another column, or joined columns."""

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec
from msgspec import Raw

if TYPE_CHECKING:
    from .columns import Array, Column

T_co = TypeVar("T_co", covariant=True)
Places = slice | list[int]


class Later(Generic[T_co]):
    """The cells of an array column before their first use."""

    # No ABC: thousands are asked for their type.
    __slots__ = ()
    size: int

    def values(self) -> list[T_co]:
        """One value per row, in a list that nobody else changes."""
        raise NotImplementedError


class Encoded(Later[T_co]):
    """As the JSON they came in."""

    __slots__ = ("decoder", "raw", "size")

    def __init__(self, raw: Raw, size: int, decoder: "msgspec.json.Decoder[list[T_co]]") -> None:
        self.raw, self.size, self.decoder = raw, size, decoder

    def values(self) -> list[T_co]:
        """ValueError if the JSON is not that."""
        values = self.decoder.decode(self.raw)
        if len(values) != self.size:
            raise ValueError(f"a column of {self.size} rows came with {len(values)} values")
        return values


class Cut(Later[T_co]):
    """As some rows of another column."""

    __slots__ = ("column", "rows", "size")

    def __init__(self, column: "Array[T_co]", rows: Places) -> None:
        self.column, self.rows = column, rows
        self.size = len(range(len(column))[rows] if isinstance(rows, slice) else rows)

    def values(self) -> list[T_co]:
        """IndexError for a position that is not there."""
        values = self.column.values()
        if isinstance(self.rows, slice):
            return values[self.rows]
        if len(self.rows) < 2:  # of fewer than two, itemgetter makes no tuple
            return [values[row] for row in self.rows]
        return list(itemgetter(*self.rows)(values))


class Joined(Later[T_co]):
    """As those of other columns, one after the other."""

    __slots__ = ("columns", "size")

    def __init__(self, columns: "Sequence[Column[T_co]]") -> None:
        self.columns, self.size = columns, sum(map(len, columns))

    def values(self) -> list[T_co]:
        """All of them."""
        return list(chain.from_iterable(self.columns))
