"""Columns: one value per row, either an `Array` of them or a `Const` that all rows share (contract#columns).

An `Array` from the wire stays JSON bytes until its first use and is then decoded whole, never cell by cell. One that is
cut out of others, or joined of them, is cut or joined at its first use too, and holds them until then.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from .arguments import items, positions, whole
from .json_values import HasJson, encoded
from .lazy_columns import Cut, Encoded, Joined, Later, Places
from .lazy_fields import Received, no_column

T = TypeVar("T")
U = TypeVar("U")
T_co = TypeVar("T_co", covariant=True)
Rows = slice | Iterable[int]  # or a mask, one bool per row
_LONGEST = 2**32
_UNCHANGING = frozenset({str, int, float, bool, type(None)})


class Column(Sequence[T_co], HasJson):
    """One value per row, in row order. Cells that are JSON objects are shared, not copied: do not change them."""

    __slots__ = ()

    def take(self, rows: Rows) -> "Column[T_co]":
        """Some rows of the column, in the order given: a slice, a mask of one bool per row, or positions.

        Positions are 0 to len - 1, repetitions allowed.
        """
        return self.at(rows if isinstance(rows, slice) else positions(rows, len(self)))

    @abstractmethod
    def at(self, rows: Places) -> "Column[T_co]":
        """As `take`, for positions that are Python's own numbers, and there: they may be looked at later."""

    @abstractmethod
    def to_raw(self, where: str = "column") -> Raw:
        """The column's JSON, as it stands on the wire. TypeError or ValueError names the cell that has none."""

    def to_list(self) -> list[T_co]:
        """One value per row, as a new list."""
        return list(self)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> "Column[T_co]": ...
    def __getitem__(self, index: int | slice) -> "T_co | Column[T_co]":
        return self.take(index) if isinstance(index, slice) else self._cell(index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Column | list | tuple):
            return NotImplemented
        return len(self) == len(other) and self.to_list() == list(other)

    __hash__ = None  # type: ignore[assignment]  # cells may be dicts

    @abstractmethod
    def _cell(self, index: int) -> T_co: ...


class Const(Column[T_co]):
    """`size` rows with the same value. In a request the size does not matter: every named row gets the value."""

    # No dataclass: msgspec would encode that by its members, and never ask how a column is to be written.
    __slots__ = ("_raw", "_size", "_value")

    def __init__(self, value: T_co, size: int = 0) -> None:
        self._value = value
        self._raw: Raw | None = None
        self._size = size if type(size) is int and 0 <= size < _LONGEST else whole(size, "size")

    @property
    def value(self) -> T_co:
        """The value of every row."""
        return self._value

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"Const({self._value!r}, {self._size})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Const, (self._value, self._size))

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.to_list())

    def to_list(self) -> list[T_co]:
        return [self._value] * self._size

    def at(self, rows: Places) -> "Const[T_co]":
        return Const(self._value, len(range(self._size)[rows] if isinstance(rows, slice) else rows))

    def to_raw(self, where: str = "column") -> Raw:
        if self._raw is not None:
            return self._raw
        raw = Raw(b'{"const":' + encoded(self._value, where) + b"}")
        if type(self._value) in _UNCHANGING:
            self._raw = raw  # a worker writes the same few again and again
        return raw

    def _cell(self, index: int) -> T_co:
        if not -self._size <= index < self._size:
            raise IndexError(f"row {index} of a column of {self._size}")
        return self._value


class Array(Column[T_co]):
    """A value of its own for every row."""

    __slots__ = ("_cells", "_later")

    def __init__(self, values: Iterable[T_co] | Later[T_co]) -> None:
        self._later: Later[T_co] | None = None
        self._cells: list[T_co] | None = None
        if isinstance(values, Later):
            self._later = values
        else:
            self._cells = items(values, "values", "one value per row")

    def __len__(self) -> int:
        cells, later = self._cells, self._later
        return len(self.values()) if cells is not None or later is None else later.size

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.values())

    def __repr__(self) -> str:
        return f"Array({self.values()!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Array, (self.values(),))

    def to_list(self) -> list[T_co]:
        return self.values().copy()

    def take(self, rows: Rows) -> "Column[T_co]":
        taken = super().take(rows)
        len(taken) and taken[0]  # a position that is not there is told now
        return taken

    def at(self, rows: Places) -> "Array[T_co]":
        return Array(Cut(self, rows))

    def to_raw(self, where: str = "column") -> Raw:
        later = self._later
        return later.raw if isinstance(later, Encoded) else Raw(encoded(self.values(), where))

    def values(self) -> list[T_co]:
        """One value per row, in the list that the column keeps: not to be changed."""
        # Two threads may both make it: the results are equal, so no lock is needed.
        if self._cells is None:
            assert self._later is not None  # noqa: S101 - an Array has one or the other, from its constructor on
            self._cells = self._later.values()
            if not isinstance(self._later, Encoded):
                self._later = None  # what it was cut out of need not be held any more
        return self._cells

    def _cell(self, index: int) -> T_co:
        return self.values()[index]


class Short(Struct, Generic[T]):
    """`{"const": v}` or `{"same_as": field}`, as it stands on the wire."""

    const: T | UnsetType = UNSET
    same_as: str | None = None


_BRACE = ord("{")
_reference = msgspec.json.Decoder(Short[Any])


@dataclass(frozen=True, slots=True)
class Cells(Generic[T]):
    """How the cells of one kind of column are decoded."""

    array: "msgspec.json.Decoder[list[T]]"
    short: "msgspec.json.Decoder[Short[T]]"

    def column(self, raw: Raw, size: int, same_as: Callable[[str], Column[T] | None] | None = None) -> Column[T]:
        """The column of `size` rows with this JSON. A constant is decoded at once, it is one cell.

        `same_as`: the column of a field, where this one may be told as that of another.
        """
        if memoryview(raw)[0] != _BRACE:
            return Array(Encoded(raw, size, self.array))
        short = self.short.decode(raw)
        if short.const is not UNSET:
            return Const(short.const, size)
        name = short.same_as
        found = None if same_as is None or name is None else same_as(name)
        if found is None:
            raise no_column(str(name))
        return found

    def of(self, size: int, raw: Raw, others: Received[Column[T]]) -> Column[T]:
        """As `column`, for one of several."""
        return self.column(raw, size, others.referred)


def full(raw: Raw, column_of: Callable[[str], Raw | UnsetType]) -> Raw:
    """The JSON of a column; where it is told by reference, of the one it names. ValueError if there is none such."""
    source = _named_in(raw)
    if source is None:
        return raw
    found = column_of(source)
    if found is UNSET or _named_in(found) is not None:
        raise no_column(source)
    return found


def full_cells(columns: Mapping[str, Raw], name: str) -> Raw:
    """As `full`, of columns by field."""
    return full(columns[name], lambda other: columns.get(other, UNSET))


def _named_in(raw: Raw) -> str | None:
    return _reference.decode(raw).same_as if memoryview(raw)[0] == _BRACE else None


INTS: Cells[int] = Cells(msgspec.json.Decoder(list[int]), msgspec.json.Decoder(Short[int]))
KEYS: Cells[str | None] = Cells(
    msgspec.json.Decoder(list[str | None]),
    msgspec.json.Decoder(Short[str | None]),
)
GROUPS: Cells[str | int | None] = Cells(
    msgspec.json.Decoder(list[str | int | None]),
    msgspec.json.Decoder(Short[str | int | None]),
)
METAS: Cells[dict[str, Any] | None] = Cells(
    msgspec.json.Decoder(list[dict[str, Any] | None]),
    msgspec.json.Decoder(Short[dict[str, Any] | None]),
)
VALUES: Cells[Any] = Cells(msgspec.json.Decoder(list[Any]), msgspec.json.Decoder(Short[Any]))
LENGTHS: Cells[int | None] = Cells(
    msgspec.json.Decoder(list[int | None]),
    msgspec.json.Decoder(Short[int | None]),
)
SHAPES: Cells[list[int] | None] = Cells(
    msgspec.json.Decoder(list[list[int] | None]),
    msgspec.json.Decoder(Short[list[int] | None]),
)


def joined(columns: Sequence[Column[T]]) -> Column[T]:
    """The columns one after the other: a `Const` where all that have rows are one and the same, else an `Array`."""
    parts = [column for column in columns if len(column)] or list(columns[:1])
    if len(parts) == 1:
        return parts[0]
    # Compared as JSON: to Python 1 == 1.0 == True, to a reader of the column they differ.
    if all(isinstance(part, Const) for part in parts) and len({bytes(part.to_raw()) for part in parts}) == 1:
        return Const(parts[0][0], sum(map(len, parts)))
    return Array(Joined(parts))
