"""The rows of a partition: which sample stands where. A sample is a row number, found by binary search.

Indexes only grow, so the vector of them is sorted as it is. Row 0 is the absent row; cleared rows stay as gaps until
`keep` closes them.
"""

from collections.abc import Sequence

import numpy as np

from .arrays import START, Bits, Cells, Ints, filled, grown, next_capacity

NULL = b"null"


class Rows:
    """Columns over row numbers 0 … n-1 (row 0 absent), with capacity to grow."""

    __slots__ = ("by_key", "global_index", "inserted", "keys", "live", "live_count", "n", "position", "revision")

    def __init__(self) -> None:
        self.n = 1
        self.live_count = 0
        self.inserted = 0
        self.global_index: Ints = filled(START, -1, np.int64)
        self.live: Bits = filled(START, 0, np.uint8)
        self.position: Ints = filled(START, -1, np.int64)
        self.revision: Ints = filled(START, 0, np.int64)
        self.keys: Cells | None = None
        self.by_key: dict[bytes, int] = {}

    @property
    def capacity(self) -> int:
        """Rows there is room for."""
        return len(self.live)

    def add(self, first: int, count: int, keys: Sequence[bytes] | None) -> Ints:
        """New rows for the indexes first … first+count-1; `keys` are JSON strings. Returns their row numbers."""
        self._reserve(next_capacity(self.n + count, self.capacity))
        rows = slice(self.n, self.n + count)
        self.global_index[rows] = np.arange(first, first + count)
        self.live[rows] = 1
        self.position[rows] = np.arange(self.inserted, self.inserted + count)
        if keys is not None:
            self._name(rows, keys, range(first, first + count))
        self.n += count
        self.live_count += count
        self.inserted += count
        return np.arange(rows.start, rows.stop)

    def _name(self, rows: slice, keys: Sequence[bytes], indexes: range) -> None:
        if self.keys is None:
            self.keys = filled(self.capacity, NULL, object)
        self.keys[rows] = keys
        self.by_key.update(zip(keys, indexes, strict=True))

    def _reserve(self, capacity: int) -> None:
        if capacity == self.capacity:
            return
        self.global_index = grown(self.global_index, capacity, -1)
        self.live = grown(self.live, capacity, 0)
        self.position = grown(self.position, capacity, -1)
        self.revision = grown(self.revision, capacity, 0)
        if self.keys is not None:
            self.keys = grown(self.keys, capacity, NULL)

    def locate(self, indexes: Ints) -> Ints:
        """Row numbers of these global indexes, 0 where not held."""
        known = self.global_index[: self.n]
        rows = np.searchsorted(known, indexes)
        rows[rows == self.n] = 0
        rows[(known[rows] != indexes) | (self.live[rows] == 0)] = 0
        return rows

    def find(self, keys: Sequence[bytes]) -> list[int | None]:
        """Global indexes of these keys (JSON strings), None where there is no such key."""
        return list(map(self.by_key.get, keys))

    def after(self, index: int, limit: int) -> Ints:
        """The first `limit` live rows whose global index is beyond `index`, in index order."""
        start = int(np.searchsorted(self.global_index[: self.n], index, side="right"))
        if self.live_count == self.n - 1:
            return np.arange(max(start, 1), min(self.n, max(start, 1) + limit))
        return np.flatnonzero(self.live[start : self.n])[:limit] + start

    def remove(self, rows: Ints) -> None:
        """These live rows are cleared."""
        self.live[rows] = 0
        self.live_count -= len(rows)
        if self.keys is not None:
            for key in self.keys[rows].tolist():
                self.by_key.pop(key, None)
            self.keys[rows] = NULL
            if not self.by_key:
                self.keys = None

    def keep(self, rows: Ints, capacity: int) -> None:
        """Close the gaps: only these rows (row 0 first) remain."""
        self.global_index = grown(self.global_index[rows], capacity, -1)
        self.live = grown(self.live[rows], capacity, 0)
        self.position = grown(self.position[rows], capacity, -1)
        self.revision = grown(self.revision[rows], capacity, 0)
        if self.keys is not None:
            self.keys = grown(self.keys[rows], capacity, NULL)
        self.n = len(rows)
