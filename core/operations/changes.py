"""Following the keys of a partition: what changed after a revision, and what left. Nothing here changes anything.

What is looked at, in revision order: rows at their last change, and what rows were before, at the revision at which
that ended (core.past). A row that fulfils `where` is listed; a key that did, and is not listed now, is removed. What
never did is not told of, and wakes no one.
"""

import re
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Bits, Cells, Flags, Ints, filled
from ..cells import NULL, json_values
from ..engine import Engine
from ..errors import Compacted, Invalid
from ..parked import Parked
from ..partition import Partition
from ..where import Where
from .read import KeyLine

MAX_SEEN = 65_536
MAX_INDEX = 2**63 - 1
_CURSOR = re.compile(r"r([0-9a-f]{1,16})\.([0-9a-f]{1,16})")
SKIPPED, LISTED, REMOVED = range(3)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is followed: keys that start with `prefix` and whose custom meta fulfils `where`, changes after `since`."""

    since: int
    prefix: str = ""
    where: Where | None = None
    limit: int = 1000
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """A page in revision order. `revision` is the last one of which all is told; `removed` are JSON strings."""

    partition_id: str
    revision: int
    lines: list[KeyLine]
    removed: list[bytes]
    next_cursor: str | None

    @property
    def is_empty(self) -> bool:
        """Nothing to tell, here or on later pages."""
        return not (self.lines or self.removed or self.next_cursor)


@dataclass(frozen=True, slots=True)
class _Items:
    """Columns over what may have to be told. `is_there`: a row that changed; else what a row was before.

    `cell`: the custom meta that the row has, or had until then.
    """

    revision: Ints
    index: Ints
    is_there: Flags
    key: Cells
    cell: Cells

    def end_before(self, at: int) -> int:
        """`at`, or before it where items at one place would be parted: a cursor cannot tell them from each other."""
        while self.revision[at - 1] == self.revision[at] and self.index[at - 1] == self.index[at]:
            at -= 1
        return at


def list_changes(engine: Engine, partition_id: str, asked: Asked) -> Changes:
    """What changed after `asked.since`. Raises PartitionNotFound, PartitionCleared, Compacted."""
    partition = engine.get(partition_id)
    if not partition.past.can_tell(asked.since, asked.where is not None):
        raise Compacted(
            f"what left partition {partition_id!r} after revision {asked.since} is not known any more: list all keys "
            "anew (since_revision=0), and go on from there"
        )
    place = _place_of(asked.cursor) or (asked.since, MAX_INDEX)
    items = _after_lately(partition, *place)
    fates = _fates(partition, items, asked)
    told = np.flatnonzero(fates)
    end = min(int(told[asked.limit]) if len(told) > asked.limit else MAX_SEEN, len(fates))
    if end < len(fates):
        end = items.end_before(end)
    told = told[told < end]
    listed = told[fates[told] == LISTED]
    lines = [KeyLine(*line) for line in zip(*_line_columns(items, listed), strict=True)]
    removed = list(dict.fromkeys(items.key[told[fates[told] == REMOVED]].tolist()))
    if end == len(fates):
        return Changes(partition_id, partition.revision, lines, removed, None)
    whole = _last_whole(place[0], items.revision[:end], int(items.revision[end]))
    cursor = f"r{items.revision[end - 1]:x}.{items.index[end - 1]:x}"
    return Changes(partition_id, whole, lines, removed, cursor)


def _line_columns(items: _Items, at: Ints) -> tuple[list[object], ...]:
    columns = (items.key, items.index, items.cell, items.revision)
    return tuple(column[at].tolist() for column in columns)


def _last_whole(place: int, told: Ints, following: int) -> int:
    """The last revision of which nothing follows."""
    before = told[told < following]
    return int(before[-1]) if len(before) else place if place < following else following - 1


def _place_of(cursor: str | None) -> tuple[int, int] | None:
    """(revision, index) of the last item looked at. Raises Invalid."""
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None or max(int(match[1], 16), int(match[2], 16)) >= 2**63:
        raise Invalid.at("cursor", "is not one that this listing gave: take next_cursor as it is")
    return int(match[1], 16), int(match[2], 16)


def _after_lately(partition: Partition, revision: int, index: int) -> _Items:
    """As `_after`. All who waited for the last change ask for the same: it is looked for once."""
    past = partition.past
    if index != MAX_INDEX or not past.changed_before <= revision < past.changed_at:
        return _after(partition, revision, index)
    if not isinstance(past.memo, _Items):
        past.memo = _after(partition, past.changed_before, MAX_INDEX)
    return past.memo


def _after(partition: Partition, revision: int, index: int) -> _Items:
    """The first MAX_SEEN items (and one more, if there is) beyond this place, in order of revision and index.

    Looks at every row's revision: one compare for all.
    """
    rows, before = partition.rows, partition.past.since(revision - 1)
    revisions = np.concatenate([rows.revision[: rows.n], before.revision])
    indexes = np.concatenate([rows.global_index[: rows.n], before.index])
    beyond = (revisions > revision) | ((revisions == revision) & (indexes > index))
    beyond[: rows.n] &= rows.live[: rows.n] == 1
    at = np.flatnonzero(beyond)
    if len(at) > MAX_SEEN:
        last = np.partition(revisions[at], MAX_SEEN)[MAX_SEEN]
        at = at[revisions[at] <= last]
    at = at[np.lexsort((indexes[at], revisions[at]))][: MAX_SEEN + 1]
    is_there = at < rows.n
    there, was = at[is_there], at[~is_there] - rows.n
    key, cell = filled(len(at), NULL, object), filled(len(at), NULL, object)
    key[is_there], cell[is_there] = partition.keys_of(there), partition.custom_meta_of(there)
    key[~is_there], cell[~is_there] = before.key[was], before.cell[was]
    return _Items(revisions[at], indexes[at], is_there, key, cell)


def _fates(partition: Partition, items: _Items, asked: Asked) -> Bits:
    """uint8 [items]: SKIPPED, LISTED or REMOVED."""
    fates = np.zeros(len(items.index), np.uint8)
    start = json_values([asked.prefix])[0][:-1]
    meant = np.fromiter((key.startswith(start) for key in items.key), np.bool_, len(fates))
    meant &= _fulfil(asked.where, items.cell.tolist())
    fates[meant & items.is_there] = LISTED
    gone = np.flatnonzero(meant & ~items.is_there)
    fates[gone[~_are_listed(partition, asked.where, items.key[gone].tolist())]] = REMOVED
    return fates


def _are_listed(partition: Partition, where: Where | None, keys: list[bytes]) -> Flags:
    """Which of these keys stand in the listing as it is now: they come at their own last change."""
    found = [-1 if index is None else index for index in partition.rows.find(keys)]
    rows = partition.rows.locate(np.array(found, np.int64))
    return (rows > 0) & _fulfil(where, partition.custom_meta_of(rows))


def _fulfil(where: Where | None, cells: list[bytes]) -> Flags:
    return np.ones(len(cells), np.bool_) if where is None else where.matches(cells)


def await_changes(engine: Engine, partition_id: str, asked: Asked, wait_s: float) -> Changes | Parked[Changes]:
    """As `list_changes`; while there is nothing to tell, up to `wait_s` seconds later."""
    return _changes_until(engine, partition_id, asked, engine.clock() + wait_s)


def _changes_until(engine: Engine, partition_id: str, asked: Asked, deadline: float) -> Changes | Parked[Changes]:
    found = list_changes(engine, partition_id, asked)
    if not found.is_empty:
        return found
    later = replace(asked, since=max(asked.since, found.revision), cursor=None)  # up to here there was nothing to tell

    def is_ripe() -> bool:
        partition = engine.partitions.get(partition_id)
        return partition is None or partition.past.changed_at > later.since

    def retry(is_last: bool) -> Changes | Parked[Changes]:
        if is_last:
            return list_changes(engine, partition_id, later)
        return _changes_until(engine, partition_id, later, deadline)

    return Parked(partition_id, deadline, is_ripe, retry)
