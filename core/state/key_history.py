"""The history of keyed rows: replaced custom metas and removed keys, for callers that follow the keys of a partition.

It is state, and bounded: the oldest revisions are dropped, each as a whole, but never the newest one, so that a waiting
call always gets the change that wakes it.
"""

from dataclasses import dataclass

import numpy as np

from core.arrays import START, Cells, Ints, filled, grown, run_of
from core.state.cells.json_cells import EMPTY

from .rows import NULL, Rows

MAX_ROWS = 65_536
MAX_BYTES = 8 * 2**20
# Most partitions never have an entry; the first one takes arrays of its own.
_NO_NUMBERS: Ints = np.zeros(0, np.int64)
_NO_CELLS: Cells = np.zeros(0, object)
_NO_SIZES = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Entries:
    """Columns, one value per entry: at this `revision` the row of this index and key changed or was removed.

    `cell`: its former custom meta.
    """

    revision: Ints
    index: Ints
    key: Cells
    cell: Cells

    def texts(self, at: Ints) -> tuple[list[bytes], list[bytes]]:
        """The key and the custom meta of each of these entries."""
        return self.key[at].tolist(), self.cell[at].tolist()

    def joined(self, other: "Entries") -> "Entries":
        """These entries, then the others."""
        if not len(other.index):
            return self
        return Entries(
            np.concatenate([self.revision, other.revision]),
            np.concatenate([self.index, other.index]),
            np.concatenate([self.key, other.key]),
            np.concatenate([self.cell, other.cell]),
        )


class Trail:
    """Entries by revision. `floor`: entries up to this revision may have been dropped.

    Keys and cells are those of the rows, not copied: to leave the listing costs a row little. `_size` int32 [entries]:
    the length of both; `_bytes`: of all.
    """

    __slots__ = ("_bytes", "_cell", "_first", "_index", "_key", "_n", "_revision", "_size", "floor")

    def __init__(self) -> None:
        self.floor = 0
        self._first = self._n = self._bytes = 0
        self._revision = self._index = _NO_NUMBERS
        self._key = self._cell = _NO_CELLS
        self._size = _NO_SIZES

    def add(self, revision: int, index: Ints, key: Cells, cell: Cells) -> None:
        """Add the rows of one event."""
        self._reserve(len(index))
        new = slice(self._n, self._n + len(index))
        self._revision[new], self._index[new] = revision, index
        self._key[new], self._cell[new] = key, cell
        self._size[new] = _sizes(key) + _sizes(cell)
        self._bytes += int(self._size[new].sum(dtype=np.int64))
        self._n = new.stop
        if self._n - self._first > MAX_ROWS * 5 // 4 or self._bytes > MAX_BYTES * 5 // 4:
            self._trim()

    def since(self, revision: int) -> Entries:
        """Entries after this revision."""
        first = self._first + int(np.searchsorted(self._revision[self._first : self._n], revision, side="right"))
        there = slice(first, self._n)
        return Entries(self._revision[there], self._index[there], self._key[there].copy(), self._cell[there].copy())

    def _reserve(self, more: int) -> None:
        if self._n + more <= len(self._revision):
            return
        there, kept = slice(self._first, self._n), self._n - self._first
        capacity = kept * 5 // 4 + more + START
        self._revision, self._index = (grown(column[there], capacity, 0) for column in (self._revision, self._index))
        self._key, self._cell = (grown(column[there], capacity, NULL) for column in (self._key, self._cell))
        self._size = grown(self._size[there], capacity, 0)
        self._first, self._n = 0, kept

    def _trim(self) -> None:
        """Drop entries down to the bounds. It runs once they are exceeded by a quarter, not for each new entry."""
        revisions = self._revision[self._first : self._n]
        left = np.cumsum(self._size[self._first : self._n][::-1], dtype=np.int64)[::-1]
        over = max(len(revisions) - MAX_ROWS, int(np.count_nonzero(left > MAX_BYTES)))
        newest = int(np.searchsorted(revisions, revisions[-1]))
        cut = min(int(np.searchsorted(revisions, revisions[over - 1], side="right")), newest)
        if cut:
            self.floor = int(revisions[cut - 1])
            self._bytes = int(left[cut])
            gone = slice(self._first, self._first + cut)
            self._key[gone] = self._cell[gone] = NULL
            self._first += cut


class KeyHistory:
    """`replaced`: former custom metas of rows that changed; `left`: keys that are not listed any more.

    `born`: the revision that made the partition, or that came after the deletion of one of its name: what was before
    that is not known. `changed_at`: the revision at which a row last changed, came or left, and `changed_before` the
    one before that. `memo`: what was worked out of the last change, for the next who asks; derived.
    """

    __slots__ = ("_newest", "born", "changed_at", "changed_before", "left", "memo", "replaced")

    def __init__(self, born: int) -> None:
        self.born = self.changed_at = self.changed_before = born
        self.replaced, self.left = Trail(), Trail()
        self._newest = (0, 0)
        self.memo: object = None

    def had_another(self, revision: int) -> None:
        """An earlier partition of this name was deleted at this revision, and none was made since."""
        self.born = revision + 1

    def start_over(self, revision: int) -> None:
        """Drop the history: at this revision any row may have changed."""
        self.replaced.floor = self.left.floor = revision
        self.changed_at = self.changed_before = revision
        self.memo = None

    def can_tell(self, revision: int, with_metas: bool) -> bool:
        """Whether every change after this revision is known; `with_metas`: the replaced custom metas too.

        Who begins at 0 has no copy, so of nothing that left need be told. Who was told something before `born` may have
        followed another partition of this name, which a deletion or a restore took away.
        """
        floor = max(self.born - 1, self.left.floor, self.replaced.floor if with_metas else 0)
        return revision >= floor or not revision

    def touch(self, revision: int) -> None:
        """A row changes, comes or leaves at this revision."""
        if revision != self.changed_at:
            self.changed_before, self.changed_at = self.changed_at, revision
            self.memo = None

    def since(self, revision: int) -> Entries:
        """The former keys and custom metas of rows that changed or left after this revision."""
        return self.left.since(revision).joined(self.replaced.since(revision))

    def begin(self, revision: int, first: int) -> None:
        """Rows from this index on are new: custom meta that the same change gives them replaces nothing."""
        self._newest = (revision, first)

    def replace(self, revision: int, held: Rows, rows: Ints, cells: Cells) -> None:
        """Record the custom meta of these rows before it is replaced; `cells` is the column of it."""
        if self._newest[0] == revision:
            rows = rows[held.global_index[rows] < self._newest[1]]
        _add(self.replaced, revision, held, rows, cells)

    def leave(self, revision: int, held: Rows, rows: Ints, cells: Cells | None) -> None:
        """Record the keys of these rows before they leave the listing."""
        _add(self.left, revision, held, rows, cells)


def _add(trail: Trail, revision: int, held: Rows, rows: Ints, cells: Cells | None) -> None:
    if held.keys is None or not len(rows):
        return
    if not held.are_all_named:
        rows = rows[np.asarray(held.keys[rows] != NULL, np.bool_)]
    if len(rows):
        at = run_of(rows)
        there = filled(len(rows), EMPTY, object) if cells is None else cells[at]
        trail.add(revision, held.global_index[at], held.keys[at], there)


def _sizes(cells: Cells) -> Ints:
    return np.fromiter(map(len, cells.tolist()), np.int64, len(cells))
