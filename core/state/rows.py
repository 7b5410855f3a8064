"""The rows of a partition: the index, key and liveness of the sample at each row number.

Indexes only grow, so their column is always sorted and a row is found by binary search. Row 0 is the absent row;
cleared rows stay as gaps until `compact` closes them. A clearing row is not live, so no lookup finds it, but it keeps
its data.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from core.arrays import START, Bits, Cells, Columns, Flags, Ints, filled, next_capacity

from .transitions import ABSENT, CLEARING, GONE, LIVE

NULL = b"null"


class Rows(Columns):
    """Columns over row numbers 0 … n-1, with capacity to grow."""

    __slots__ = (
        "by_key", "clearing_count", "clearing_keys", "global_index", "inserted", "keys", "live_count", "n", "position",
        "positions", "revision", "state", "tombstones",
    )  # fmt: skip

    columns: ClassVar[Mapping[str, object]] = {
        "global_index": -1, "state": ABSENT, "position": -1, "revision": 0, "keys": NULL,
    }  # fmt: skip

    def __init__(self) -> None:
        self.n = 1  # row numbers in use, gaps and row 0 included
        self.live_count = 0  # rows that are live
        self.clearing_count = 0  # rows that are clearing
        self.inserted = 0  # rows ever inserted, without those that expired
        self.positions = 0  # rows ever inserted
        self.global_index: Ints = filled(START, -1, np.int64)  # of each row, ascending
        self.state: Bits = filled(START, ABSENT, np.uint8)  # one of `states.ROW`
        self.position: Ints = filled(START, -1, np.int64)  # how many rows were inserted before it
        self.revision: Ints = filled(START, 0, np.int64)  # of the row's last change
        self.keys: Cells | None = None  # JSON strings, null for rows without; None while no row has a key
        self.by_key: dict[bytes, int] = {}  # global index of each live row's key
        self.clearing_keys: dict[bytes, int] = {}  # and of each clearing row's
        self.tombstones: dict[bytes, int] = {}  # keys that may never be created again

    @property
    def held_count(self) -> int:
        """Rows that are live or clearing."""
        return self.live_count + self.clearing_count

    @property
    def capacity(self) -> int:
        """Rows there is room for."""
        return len(self.state)

    def add(self, first: int, count: int, keys: Sequence[bytes] | None) -> Ints:
        """New rows for the indexes first … first+count-1; `keys` are JSON strings. Returns their row numbers."""
        capacity = next_capacity(self.n + count, self.capacity)
        if capacity != self.capacity:
            self.resize(capacity)
        rows = slice(self.n, self.n + count)
        self.global_index[rows] = np.arange(first, first + count)
        self.state[rows] = LIVE
        self.position[rows] = np.arange(self.positions, self.positions + count)
        if keys is not None:
            self._name(rows, keys, range(first, first + count))
        self.n += count
        self.live_count += count
        self.inserted += count
        self.positions += count
        return np.arange(rows.start, rows.stop)

    def _name(self, rows: slice, keys: Sequence[bytes], indexes: range) -> None:
        if self.keys is None:
            self.keys = filled(self.capacity, NULL, object)
        self.keys[rows] = keys
        self.by_key.update(zip(keys, indexes, strict=True))

    def is_live(self, rows: slice | Ints) -> Flags:
        """bool [rows]."""
        return np.asarray(self.state[rows] == LIVE)

    def live(self) -> Ints:
        """All rows that are live, in index order."""
        return np.flatnonzero(self.state[: self.n] == LIVE)

    def clearing(self) -> Ints:
        """All rows that are clearing, in index order."""
        return np.flatnonzero(self.state[: self.n] == CLEARING)

    def locate(self, indexes: Ints) -> Ints:
        """Row numbers of these global indexes, 0 where not held."""
        known = self.global_index[: self.n]
        rows = np.searchsorted(known, indexes)
        rows[rows == self.n] = 0
        rows[(known[rows] != indexes) | (self.state[rows] != LIVE)] = 0
        return rows

    def locate_held(self, indexes: Ints) -> Ints:
        """As `locate`, and rows that are clearing are found too."""
        if not self.clearing_count:
            return self.locate(indexes)
        known = self.global_index[: self.n]
        rows = np.searchsorted(known, indexes)
        rows[rows == self.n] = 0
        rows[(known[rows] != indexes) | ~_is_held(self.state[rows])] = 0
        return rows

    def held(self) -> Ints:
        """All rows that are live or clearing, in index order."""
        return np.flatnonzero(_is_held(self.state[: self.n]))

    def find(self, keys: Sequence[bytes]) -> list[int | None]:
        """Global indexes of these keys (JSON strings), None where there is no such key."""
        return list(map(self.by_key.get, keys))

    def after(self, index: int, limit: int) -> Ints:
        """The first `limit` live rows whose global index is beyond `index`, in index order."""
        start = int(np.searchsorted(self.global_index[: self.n], index, side="right"))
        if self.live_count == self.n - 1:
            return np.arange(max(start, 1), min(self.n, max(start, 1) + limit))
        return np.flatnonzero(self.state[start : self.n] == LIVE)[:limit] + start

    def remove(self, rows: Ints) -> None:
        """Clear these live rows."""
        self.state[rows] = GONE
        self.live_count -= len(rows)
        self._unname(rows, self.by_key)

    def hide(self, rows: Ints) -> None:
        """Make these live rows clearing."""
        self._turn(rows, CLEARING)
        self._move_keys(rows, self.by_key, self.clearing_keys)

    def show(self, rows: Ints) -> None:
        """Make these clearing rows live again."""
        self._turn(rows, LIVE)
        self._move_keys(rows, self.clearing_keys, self.by_key)

    def drop(self, rows: Ints, with_tombstones: bool) -> None:
        """Remove these clearing rows; with tombstones their keys can never be created again."""
        self.state[rows] = GONE
        self.clearing_count -= len(rows)
        if with_tombstones:
            self._move_keys(rows, self.clearing_keys, self.tombstones)
        self._unname(rows, self.clearing_keys)

    def _turn(self, rows: Ints, state: int) -> None:
        self.state[rows] = state
        count = len(rows) if state == LIVE else -len(rows)
        self.live_count += count
        self.clearing_count -= count

    def _move_keys(self, rows: Ints, source: dict[bytes, int], target: dict[bytes, int]) -> None:
        if self.keys is not None:
            keys = [key for key in self.keys[rows].tolist() if key != NULL]
            target.update(zip(keys, map(source.pop, keys), strict=True))

    def _unname(self, rows: Ints, names: dict[bytes, int]) -> None:
        if self.keys is None:
            return
        for key in self.keys[rows].tolist():
            names.pop(key, None)
        self.keys[rows] = NULL
        if not self.by_key and not self.clearing_keys:
            self.keys = None

    def compact(self, rows: Ints, capacity: int) -> None:
        """Closes the gaps: only these rows (row 0 first) remain."""
        super().compact(rows, capacity)
        self.n = len(rows)


def _is_held(state: Bits) -> Flags:
    return np.asarray((state == LIVE) | (state == CLEARING))
