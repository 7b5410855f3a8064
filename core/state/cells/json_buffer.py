"""A column of JSON cells side by side in one buffer, so that a run of rows is read as one slice.

A comma follows each cell, so cells that were written in order, as in most batches, already form a JSON column.
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import ClassVar

import numpy as np

from core.arrays import Columns, Ints

from .json_cells import NULL

_NOTHING = NULL + b","
SLACK = 65_536


class JsonBuffer(Columns):
    """`start` int64 and `size` int32 [rows]: where each cell is in `text`; start 0 is null.

    Replaced cells stay in `text` until they are more than half of it.
    """

    __slots__ = ("_dead", "size", "start", "text")

    columns: ClassVar[Mapping[str, object]] = {"start": 0, "size": len(NULL)}

    def __init__(self, rows: int) -> None:
        self.text = bytearray(_NOTHING)
        self.start: Ints = np.zeros(rows, np.int64)
        self.size = np.full(rows, len(NULL), np.int32)
        self._dead = 0

    def put(self, rows: Ints, value: bytes | list[bytes]) -> None:
        """Set the cells of `rows`: one for all, or one each."""
        self._drop(rows)
        base = len(self.text)
        if isinstance(value, bytes):
            self._append(value + b",")
            self.start[rows], self.size[rows] = base, len(value)
        else:
            sizes = np.fromiter(map(len, value), np.int64, len(value))
            ends = np.cumsum(sizes + 1)
            self._append(b",".join(value) + b",")
            self.start[rows], self.size[rows] = base + ends - sizes - 1, sizes
        self._mark_nulls(rows)
        self._tidy()

    def clear(self, rows: Ints) -> None:
        """Remove the cells of these rows."""
        self._drop(rows)
        self.start[rows], self.size[rows] = 0, len(NULL)
        self._tidy()

    def recorded(self) -> Ints:
        """Rows with a cell that is not null."""
        return np.flatnonzero(self.start)

    def joined(self, rows: slice | Ints) -> tuple[bytes | memoryview, bool]:
        """(the cells of `rows` with commas between, whether all have one length); a view where they are adjacent."""
        start, size = self.start[rows], self.size[rows]
        if not len(start):
            return b"", False
        return self._joined(start, size), np.count_nonzero(size == size[0]) == len(size)

    def _joined(self, start: Ints, size: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> bytes | memoryview:
        ends = start + size
        follows = start[1:] - ends[:-1] == 1
        if np.count_nonzero(follows) == len(follows):
            return memoryview(self.text)[int(start[0]) : int(ends[-1])]
        breaks = np.flatnonzero(~follows) + 1
        if len(breaks) * 4 > len(start):
            return self._scattered(start, size)
        first = np.concatenate([start[:1], start[breaks]]).tolist()
        last = np.concatenate([ends[breaks - 1], ends[-1:]]).tolist()
        with memoryview(self.text) as text:
            return b",".join([text[a:b] for a, b in zip(first, last, strict=True)])

    def _scattered(self, start: Ints, size: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> bytes:
        """As `_joined`, by one gather of bytes instead of a Python step for each cell."""
        length = size.astype(np.int64) + 1
        ends = np.cumsum(length)
        places = np.arange(ends[-1]) + np.repeat(start - ends + length, length)
        text = np.frombuffer(self.text, np.uint8)
        joined = bytes(text[places[:-1]])
        del text  # else the buffer could not grow
        return joined

    def cells(self, rows: slice | Ints) -> list[bytes]:
        """One cell per row."""
        ends = (self.start[rows] + self.size[rows]).tolist()
        with memoryview(self.text) as text:
            return [bytes(text[a:b]) for a, b in zip(self.start[rows].tolist(), ends, strict=True)]

    def picked(self, rows: Ints) -> "JsonBuffer":
        """A column of these rows alone, which stays as it is now: `text` only grows until it is replaced."""
        out = JsonBuffer(0)
        out.text, out.start, out.size = self.text, self.start.take(rows), self.size.take(rows)
        return out

    def gather(self, rows: slice | Ints) -> None:
        """Bring the cells of these rows, which take the place of all, into a buffer of its own. No start is 0 then."""
        self.start, self.size = self.start[rows], self.size[rows]
        joined, _ = self.joined(slice(None))
        text = bytearray(joined)
        text += b","
        del joined  # else the old buffer could not grow
        ends = np.cumsum(self.size.astype(np.int64) + 1)
        self.text, self.start = text, ends - self.size - 1

    def compact(self, rows: Ints, capacity: int) -> None:
        """Only these rows remain, and only their cells stay in the buffer."""
        super().compact(rows, capacity)
        self._rewrite()

    def _append(self, text: bytes) -> None:
        """Append to the buffer. While a view of it exists it cannot grow, and is replaced by a new one."""
        try:
            self.text += text
        except BufferError:
            self.text = self.text + text

    def _drop(self, rows: Ints) -> None:
        self._dead += int(self.size[rows].sum())

    def _mark_nulls(self, rows: Ints) -> None:
        """Cells that were written as `null` count as absent."""
        four = rows[self.size[rows] == len(NULL)]
        if len(four):
            null = [cell == NULL for cell in self.cells(four)]
            self.start[four[null]] = 0

    def _tidy(self) -> None:
        if self._dead > SLACK and self._dead * 2 > len(self.text):
            self._rewrite()

    def _rewrite(self) -> None:
        """Copy the cells in use to a new buffer, each shared cell once, in their old order."""
        used, place = np.unique(self.start, return_index=True)
        ends = (used + self.size[place]).tolist()
        with memoryview(self.text) as text:
            pieces = [text[a : b + 1].tobytes() for a, b in zip(used.tolist(), ends, strict=True) if a]
        starts = [0, *accumulate(map(len, pieces), initial=len(_NOTHING))][: len(pieces) + 1]
        known = used if used[0] == 0 else np.concatenate([[0], used])
        self.start = np.array(starts, np.int64)[np.searchsorted(known, self.start)]
        self.text = bytearray(_NOTHING + b"".join(pieces))
        self._dead = 0
