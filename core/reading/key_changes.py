"""Which keys of a partition changed, appeared or left after a revision, in order of revision and index.

An item is a current row, at the revision of its last change, or a former one (core.state.key_history), at the revision
that ended it. A current row that fulfils `where` is listed; a former one that did, and whose key is not listed now, is
removed; all others are skipped.
"""

from dataclasses import dataclass, field

import numpy as np

from core.arrays import Bits, Cells, Flags, Ints, filled
from core.state.cells.json_cells import NULL, json_values
from core.state.partition import Partition
from core.state.where import Where

SKIPPED, LISTED, REMOVED = range(3)
LATELY = 16_384
MAX_INDEX = 2**63 - 1
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Items:
    """Columns. `is_there`: a current row, else a former one. `cell`: its custom meta.

    Where more than `most` items exist, there is one more than `most`. `fates` is a cache of them, by prefix and
    `where`: many waiting calls have the same ones.
    """

    most: int
    revision: Ints
    index: Ints
    is_there: Flags
    key: Cells
    cell: Cells
    fates: dict[tuple[str, Where | None], Bits] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.index)

    def end_before(self, at: int) -> int:
        """`at`, or an earlier position where `at` would split items of one place: a cursor cannot tell them apart."""
        while 0 < at < len(self) and self.place(at - 1) == self.place(at):
            at -= 1
        return at

    def place(self, at: int) -> Place:
        """(revision, index): where to go on after this item."""
        return int(self.revision[at]), int(self.index[at])


def lately_after(partition: Partition, place: Place, most: int) -> Items:
    """As `after`, found once for the last change: all calls that waited for it ask the same."""
    history, (revision, index) = partition.key_history, place
    if index != MAX_INDEX or not history.changed_before <= revision < history.changed_at:
        return after(partition, place, most)
    if not isinstance(history.memo, Items):
        history.memo = after(partition, (history.changed_before, MAX_INDEX), LATELY)
    return history.memo


def after(partition: Partition, place: Place, most: int) -> Items:
    """The first `most` items beyond this place, and one more if it exists. Compares the revision of every row."""
    rows, before = partition.rows, partition.key_history.since(place[0] - 1)
    held = slice(0, rows.n)
    changed = _beyond(rows.revision[held], rows.global_index[held], place) & rows.is_live(held)
    there = np.flatnonzero(changed)
    was = np.flatnonzero(_beyond(before.revision, before.index, place))
    revisions = np.concatenate([rows.revision[there], before.revision[was]])
    indexes = np.concatenate([rows.global_index[there], before.index[was]])
    at = _first(revisions, indexes, most + 1)
    is_there = at < len(there)
    there, was = there[at[is_there]], was[at[~is_there] - len(there)]
    key, cell = filled(len(at), NULL, object), filled(len(at), NULL, object)
    key[is_there], cell[is_there] = partition.keys_of(there), partition.custom_meta_of(there)
    key[~is_there], cell[~is_there] = before.texts(was)
    return Items(most, revisions[at], indexes[at], is_there, key, cell)


def _beyond(revisions: Ints, indexes: Ints, place: Place) -> Flags:
    revision, index = place
    if index == MAX_INDEX:
        return np.asarray(revisions > revision)
    return np.asarray((revisions > revision) | ((revisions == revision) & (indexes > index)))


def _first(revisions: Ints, indexes: Ints, most: int) -> Ints:
    """Positions of the first `most`, in order of revision and index."""
    at = np.arange(len(revisions))
    if len(at) > most:
        at = at[revisions <= np.partition(revisions, most - 1)[most - 1]]
    return at[np.lexsort((indexes[at], revisions[at]))][:most]


def fates(partition: Partition, items: Items, prefix: str, where: Where | None) -> Bits:
    """uint8 [items]: SKIPPED, LISTED or REMOVED."""
    known = items.fates.get((prefix, where))
    if known is None:
        known = items.fates[prefix, where] = _fates(partition, items, prefix, where)
    return known


def _fates(partition: Partition, items: Items, prefix: str, where: Where | None) -> Bits:
    out = np.zeros(len(items), np.uint8)
    start = json_values([prefix])[0][:-1]
    meant = np.fromiter((key.startswith(start) for key in items.key), np.bool_, len(out))
    meant &= _fulfil(where, items.cell.tolist())
    out[meant & items.is_there] = LISTED
    gone = np.flatnonzero(meant & ~items.is_there)
    out[gone[~_are_listed(partition, where, items.key[gone].tolist())]] = REMOVED
    return out


def _are_listed(partition: Partition, where: Where | None, keys: list[bytes]) -> Flags:
    """Which of these keys are listed now: their current row is an item of its own."""
    found = [-1 if index is None else index for index in partition.rows.find(keys)]
    rows = partition.rows.locate(np.array(found, np.int64))
    return np.asarray((rows > 0) & _fulfil(where, partition.custom_meta_of(rows)), np.bool_)


def _fulfil(where: Where | None, cells: list[bytes]) -> Flags:
    return np.ones(len(cells), np.bool_) if where is None else where.matches(cells)
