"""What keyed rows of a partition were before: custom metas that were replaced, and keys that left.

Kept so that who follows the keys can be told of what is no longer there. It is state, and bounded: the oldest goes
first, whole revisions at a time, but never the newest, so that who waits always hears of it.
"""

from dataclasses import dataclass

import numpy as np

from .arrays import START, Cells, Ints, filled, grown
from .cells import EMPTY
from .rows import NULL, Rows

MAX_ROWS = 65_536
MAX_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Entries:
    """Columns, one value per entry: from this `revision` on the row of this index and key was not what it had been.

    `cell`: its custom meta until then.
    """

    revision: Ints
    index: Ints
    key: Cells
    cell: Cells


class Trail:
    """Entries by revision. `floor`: what happened up to this revision is not wholly here."""

    __slots__ = ("_bytes", "_cell", "_first", "_index", "_key", "_n", "_revision", "_size", "floor")

    def __init__(self) -> None:
        self.floor = 0
        self._first = self._n = self._bytes = 0
        self._revision, self._index, self._size = np.zeros((3, START), np.int64)
        self._key, self._cell = filled(START, NULL, object), filled(START, NULL, object)

    def add(self, revision: int, index: Ints, key: Cells, cell: Cells) -> None:
        """Rows of one event."""
        self._reserve(len(index))
        new = slice(self._n, self._n + len(index))
        self._revision[new], self._index[new] = revision, index
        self._key[new], self._cell[new] = key, cell
        self._size[new] = _sizes(key) + _sizes(cell)
        self._n = new.stop
        self._bytes += int(self._size[new].sum())
        if self._n - self._first > MAX_ROWS * 5 // 4 or self._bytes > MAX_BYTES * 5 // 4:
            self._trim()

    def since(self, revision: int) -> Entries:
        """Entries after this revision."""
        first = self._first + int(np.searchsorted(self._revision[self._first : self._n], revision, side="right"))
        there = slice(first, self._n)
        return Entries(self._revision[there], self._index[there], self._key[there], self._cell[there])

    def _reserve(self, more: int) -> None:
        if self._n + more <= len(self._revision):
            return
        there, kept = slice(self._first, self._n), self._n - self._first
        capacity = kept * 3 // 2 + more + START
        numbers = (self._revision, self._index, self._size)
        self._revision, self._index, self._size = (grown(column[there], capacity, 0) for column in numbers)
        self._key, self._cell = (grown(column[there], capacity, NULL) for column in (self._key, self._cell))
        self._first, self._n = 0, kept

    def _trim(self) -> None:
        """Down to the bounds, well below what brings it here: not once for each entry that comes."""
        revisions = self._revision[self._first : self._n]
        left = np.cumsum(self._size[self._first : self._n][::-1])[::-1]
        over = max(len(revisions) - MAX_ROWS, int(np.count_nonzero(left > MAX_BYTES)))
        newest = int(np.searchsorted(revisions, revisions[-1]))
        cut = min(int(np.searchsorted(revisions, revisions[over - 1], side="right")), newest)
        if cut:
            self.floor = int(revisions[cut - 1])
            self._bytes = int(left[cut])
            gone = slice(self._first, self._first + cut)
            self._key[gone] = self._cell[gone] = NULL
            self._first = gone.stop


class Past:
    """`replaced`: custom metas of rows that were there before; `left`: keys that are not listed any more.

    `born`: the revision that made the partition, before which there was nothing to be told of; 0 if there was another
    of its name. `changed_at`: the revision at which a row last changed, came or left, and `changed_before` the one
    before that. `memo`: what was worked out of the last change, for the next who asks; derived.
    """

    __slots__ = ("_newest", "born", "changed_at", "changed_before", "left", "memo", "replaced")

    def __init__(self, born: int) -> None:
        self.born = self.changed_at = self.changed_before = born
        self.replaced, self.left = Trail(), Trail()
        self._newest = (0, 0)
        self.memo: object = None

    def had_another(self, revision: int) -> None:
        """There was a partition of this name, deleted at this revision."""
        self.born = 0
        self.replaced.floor = self.left.floor = revision

    def can_tell(self, revision: int, with_metas: bool) -> bool:
        """Whether all that happened after this revision is known; `with_metas`: the replaced metas too."""
        floor = max(self.left.floor, self.replaced.floor if with_metas else 0)
        return revision >= floor or revision < self.born

    def touch(self, revision: int) -> None:
        """A row changes, comes or leaves at this revision."""
        if revision != self.changed_at:
            self.changed_before, self.changed_at = self.changed_at, revision
            self.memo = None

    def since(self, revision: int) -> Entries:
        """What rows were before, and are not since after this revision."""
        left, replaced = self.left.since(revision), self.replaced.since(revision)
        return Entries(
            np.concatenate([left.revision, replaced.revision]),
            np.concatenate([left.index, replaced.index]),
            np.concatenate([left.key, replaced.key]),
            np.concatenate([left.cell, replaced.cell]),
        )

    def begin(self, revision: int, first: int) -> None:
        """Rows from this index on are new: what is said of them in the same change replaces nothing."""
        self._newest = (revision, first)

    def replace(self, revision: int, held: Rows, rows: Ints, cells: Cells) -> None:
        """The custom meta of these rows is about to be another; `cells` is the column of what is there."""
        if self._newest[0] == revision:
            rows = rows[held.global_index[rows] < self._newest[1]]
        _add(self.replaced, revision, held, rows, cells)

    def leave(self, revision: int, held: Rows, rows: Ints, cells: Cells | None) -> None:
        """The keys of these rows are about not to be listed any more."""
        _add(self.left, revision, held, rows, cells)


def _add(trail: Trail, revision: int, held: Rows, rows: Ints, cells: Cells | None) -> None:
    if held.keys is None or not len(rows):
        return
    keys = held.keys[rows]
    named = np.asarray(keys != NULL, np.bool_)
    if not named.all():
        rows, keys = rows[named], keys[named]
    if len(rows):
        there = filled(len(rows), EMPTY, object) if cells is None else cells[rows]
        trail.add(revision, held.global_index[rows], keys, there)


def _sizes(cells: Cells) -> Ints:
    return np.fromiter(map(len, cells), np.int64, len(cells))
