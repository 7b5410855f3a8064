"""Grows, gathers and packs arrays: the numpy functions that every column of a partition needs."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Cells = npt.NDArray[np.object_]
T = TypeVar("T", bound=np.generic)

START = 16


def grown(array: npt.NDArray[Any], capacity: int, fill: object) -> npt.NDArray[Any]:
    """`array` with its first dimension made `capacity`, new entries set to `fill`."""
    out = np.empty((capacity, *array.shape[1:]), array.dtype)
    kept = min(len(array), capacity)
    out[:kept] = array[:kept]
    out[kept:] = fill
    return out


def filled(capacity: int, fill: object, dtype: Any) -> npt.NDArray[Any]:
    """A new array of `capacity` entries, all `fill`."""
    out = np.empty(capacity, dtype)
    out[:] = fill
    return out


class Columns:
    """Base of classes with one entry per row in several arrays, which grow and lose rows together.

    `columns` names the arrays, each with the value of a new entry. An array that is None is not needed yet; it stays.
    """

    __slots__ = ()
    columns: ClassVar[Mapping[str, object]] = {}

    def resize(self, rows: int) -> None:
        """Room for this many rows."""
        for name, fill in self.columns.items():
            array = getattr(self, name)
            if array is not None:
                setattr(self, name, grown(array, rows, fill))

    def compact(self, rows: Ints, capacity: int) -> None:
        """Only these rows remain, in this order, with room for `capacity`."""
        for name, fill in self.columns.items():
            array = getattr(self, name)
            if array is not None:
                setattr(self, name, grown(array[rows], capacity, fill))


def pack(indexes: Ints) -> bytes:
    """int64 vector as little-endian bytes, the form events carry."""
    return indexes.astype("<i8", copy=False).tobytes()


def unpack(data: bytes) -> Ints:
    """The inverse of `pack`; the result is read-only."""
    return np.frombuffer(data, "<i8")


def joined(columns: Iterable[npt.NDArray[T]], dtype: type[T]) -> npt.NDArray[T]:
    """One array of these, which have this type and follow each other; read-only. For thousands of short ones this takes
    a third of the time of `np.concatenate`.
    """
    return np.frombuffer(b"".join(cast("Iterable[bytes]", columns)), dtype)  # an array is a buffer


def run_of(rows: Ints) -> slice | Ints:
    """Rows as the fastest way to index them: a slice where they follow each other, as in most batches."""
    steps = len(rows) - 1
    if not steps:
        first = int(rows[0])
        return slice(first, first + 1)
    if steps > 0 and rows[-1] - rows[0] == steps and np.count_nonzero(rows[1:] - rows[:-1] == 1) == steps:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def next_capacity(needed: int, capacity: int) -> int:
    """Room for `needed` rows: a quarter more each time, so that slack stays small beside a sample's 450 bytes."""
    while capacity < needed:
        capacity += max(START, capacity // 4)
    return capacity
