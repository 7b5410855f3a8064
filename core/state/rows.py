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
RUN = 256  # indexes from which on a look whether they are a run pays


class Rows(Columns):
    """Columns over row numbers 0 … n-1, with capacity to grow."""

    __slots__ = (
        "by_key", "clearing_count", "clearing_names", "global_index", "inserted", "keys", "live_count", "n", "position",
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
        self.by_key: dict[bytes, int] = {}  # global index of each key of a live or clearing row
        self.clearing_names = 0  # clearing rows that have a key
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
        rows = self._places(indexes)
        rows[self.state[rows] != LIVE] = 0
        return rows

    def locate_held(self, indexes: Ints) -> Ints:
        """As `locate`, and rows that are clearing are found too."""
        if not self.clearing_count:
            return self.locate(indexes)
        rows = self._places(indexes)
        rows[~_is_held(self.state[rows])] = 0
        return rows

    def _places(self, indexes: Ints) -> Ints:
        """The rows of these global indexes, whatever became of them; 0 for none. A run is compared, not sought."""
        known = self.global_index[: self.n]
        if len(indexes) > RUN:
            first = int(np.searchsorted(known, indexes[0]))
            if np.array_equal(known[first : first + len(indexes)], indexes):
                return np.arange(first, first + len(indexes))
            order = np.argsort(indexes)  # a search in order stays in the processor's cache
            rows = np.empty(len(indexes), np.int64)
            rows[order] = np.searchsorted(known, indexes[order])
        else:
            rows = np.searchsorted(known, indexes)
        rows[rows == self.n] = 0
        rows[known[rows] != indexes] = 0
        return rows

    def held(self) -> Ints:
        """All rows that are live or clearing, in index order."""
        return np.flatnonzero(_is_held(self.state[: self.n]))

    @property
    def has_keys(self) -> bool:
        """A live row has a key."""
        return len(self.by_key) > self.clearing_names

    @property
    def are_all_named(self) -> bool:
        """Every live or clearing row has a key."""
        return len(self.by_key) == self.held_count

    def find(self, keys: Sequence[bytes]) -> list[int | None]:
        """Global indexes of these keys (JSON strings), None where no live row has the key."""
        clearing = self.clearing_of(keys)
        return [None if key in clearing else self.by_key.get(key) for key in keys] if clearing else self.find_held(keys)

    def find_held(self, keys: Sequence[bytes]) -> list[int | None]:
        """As `find`, and keys of rows that are clearing are found too."""
        return list(map(self.by_key.get, keys))

    def clearing_of(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of these keys whose rows are clearing."""
        if not self.clearing_names:
            return set()
        known = [key for key in keys if key in self.by_key]
        rows = self.locate_held(np.array([self.by_key[key] for key in known], np.int64))
        return {known[at] for at in np.flatnonzero(self.state[rows] == CLEARING).tolist()}

    def after(self, index: int, limit: int) -> Ints:
        """The first `limit` live rows whose global index is beyond `index`, in index order."""
        start = 1 if index < 0 else int(np.searchsorted(self.global_index[: self.n], index, side="right"))
        if self.live_count == self.n - 1:
            return np.arange(max(start, 1), min(self.n, max(start, 1) + limit))
        return np.flatnonzero(self.state[start : self.n] == LIVE)[:limit] + start

    def held_after(self, index: int, limit: int) -> Ints:
        """As `after`, and rows that are clearing are among them."""
        if not self.clearing_count:
            return self.after(index, limit)
        start = int(np.searchsorted(self.global_index[: self.n], index, side="right"))
        return np.flatnonzero(_is_held(self.state[start : self.n]))[:limit] + start

    def remove(self, rows: Ints) -> None:
        """Clear these live rows."""
        self.state[rows] = GONE
        self.live_count -= len(rows)
        self._unname(rows)

    def hide(self, rows: Ints) -> None:
        """Make these live rows clearing."""
        self._turn(rows, CLEARING)
        self.clearing_names += self._count_named(rows)

    def show(self, rows: Ints) -> None:
        """Make these clearing rows live again."""
        self._turn(rows, LIVE)
        self.clearing_names -= self._count_named(rows)

    def drop(self, rows: Ints, with_tombstones: bool) -> None:
        """Remove these clearing rows; with tombstones their keys can never be created again."""
        self.clearing_names -= self._count_named(rows)
        self.state[rows] = GONE
        self.clearing_count -= len(rows)
        if with_tombstones and self.keys is not None:
            keys = [key for key in self.keys[rows].tolist() if key != NULL]
            self.tombstones.update(zip(keys, map(self.by_key.__getitem__, keys), strict=True))
        self._unname(rows)

    def _turn(self, rows: Ints, state: int) -> None:
        self.state[rows] = state
        count = len(rows) if state == LIVE else -len(rows)
        self.live_count += count
        self.clearing_count -= count

    def _count_named(self, rows: Ints) -> int:
        """How many of these held rows have a key."""
        if self.keys is None:
            return 0
        if self.are_all_named:
            return len(rows)
        return int(np.count_nonzero(self.keys[rows] != NULL))

    def _unname(self, rows: Ints) -> None:
        if self.keys is None:
            return
        for key in self.keys[rows].tolist():
            self.by_key.pop(key, None)
        self.keys[rows] = NULL
        if not self.by_key:
            self.keys, self.by_key = None, {}  # an emptied dict keeps what it took

    def compact(self, rows: Ints, capacity: int) -> None:
        """Closes the gaps: only these rows (row 0 first) remain."""
        super().compact(rows, capacity)
        self.n = len(rows)


def _is_held(state: Bits) -> Flags:
    return np.asarray((state == LIVE) | (state == CLEARING))
