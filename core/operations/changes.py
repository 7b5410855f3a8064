"""Following the keys of a partition: pages of what changed after a revision, and waiting for them.

Reads only. What is told, and in which order, is in core.reading.key_changes.
"""

from dataclasses import dataclass, replace

import numpy as np

from core.arrays import Ints
from core.engine import Engine
from core.errors import Compacted
from core.reading.cursors import cursor_for, place_of
from core.reading.key_changes import LISTED, MAX_INDEX, REMOVED, Items, Place, fates, lately_after
from core.state.partition import Partition
from core.state.where import Where

from .parked import Parked
from .read import KeyLine

MAX_SEEN = 65_536
PLAIN, FILTERED = 1024, 8192


@dataclass(frozen=True, slots=True)
class ChangesRequest:
    """What is followed: keys that start with `prefix` and whose custom meta fulfils `where`, changes after `since`."""

    since: int
    prefix: str = ""
    where: Where | None = None
    limit: int = 1000
    cursor: str | None = None

    @property
    def most(self) -> int:
        """How many items are looked at for a page, or a part of it."""
        return self.limit + (FILTERED if self.where or self.prefix else PLAIN)


@dataclass(frozen=True, slots=True)
class Changes:
    """A page in revision order. `revision` is the last one of which all is told; `removed` are JSON strings."""

    partition_id: str
    revision: int
    lines: list[KeyLine]
    removed: list[bytes]
    next_cursor: str | None

    @property
    def tells(self) -> bool:
        """There is something on this page."""
        return bool(self.lines or self.removed)


def list_changes(engine: Engine, partition_id: str, asked: ChangesRequest) -> Changes:
    """What changed after `asked.since`. Raises PartitionNotFound, PartitionCleared, Compacted.

    A page that tells nothing and yet has a cursor has looked at MAX_SEEN items.
    """
    partition = engine.get(partition_id)
    if not partition.key_history.can_tell(asked.since, asked.where is not None):
        raise Compacted(
            f"what left partition {partition_id!r} after revision {asked.since} is not known any more: list all keys "
            "anew (since_revision=0), and go on from there"
        )
    place: Place | None = _place_of(asked.cursor) or (asked.since, MAX_INDEX)
    seen = 0
    while True:
        assert place is not None  # noqa: S101  (for the type checker: a page with a cursor has a place)
        items = lately_after(partition, place, asked.most)
        page = _page(partition, asked, items, place)
        seen += len(items)
        if page.tells or page.next_cursor is None or seen > MAX_SEEN:
            return page
        place = _place_of(page.next_cursor)


def _page(partition: Partition, asked: ChangesRequest, items: Items, place: Place) -> Changes:
    fate = fates(partition, items, asked.prefix, asked.where)
    told = np.flatnonzero(fate)
    if not len(told) and len(items) <= items.most:
        return Changes(partition.partition_id, partition.revision, [], [], None)
    end = items.end_before(min(int(told[asked.limit]) if len(told) > asked.limit else items.most, len(items)))
    told = told[told < end]
    lines = _lines(items, told[fate[told] == LISTED])
    removed = list(dict.fromkeys(items.key[told[fate[told] == REMOVED]].tolist()))
    if end == len(items):
        return Changes(partition.partition_id, partition.revision, lines, removed, None)
    whole = _last_whole(place[0], items.revision[:end], int(items.revision[end]))
    return Changes(partition.partition_id, whole, lines, removed, cursor_for("r", *items.place(end - 1)))


def _lines(items: Items, at: Ints) -> list[KeyLine]:
    columns = (items.key, items.index, items.cell, items.revision)
    return [KeyLine(*line) for line in zip(*(column[at].tolist() for column in columns), strict=True)]


def _last_whole(place: int, told: Ints, following: int) -> int:
    """The last revision of which nothing follows."""
    before = told[told < following]
    return int(before[-1]) if len(before) else place if place < following else following - 1


def _place_of(cursor: str | None) -> Place | None:
    """(revision, index) of the last item looked at. Raises Invalid."""
    if cursor is None:
        return None
    revision, index = place_of(cursor, "r", 2)
    return revision, index


def await_changes(engine: Engine, partition_id: str, asked: ChangesRequest, wait_s: float) -> Changes | Parked[Changes]:
    """As `list_changes`; while there is nothing to tell, up to `wait_s` seconds later."""
    return _changes_until(engine, partition_id, asked, engine.clock() + wait_s)


def _changes_until(
    engine: Engine, partition_id: str, asked: ChangesRequest, deadline: float
) -> Changes | Parked[Changes]:
    found = list_changes(engine, partition_id, asked)
    if found.tells or found.next_cursor is not None:
        return found
    later = replace(asked, since=max(asked.since, found.revision), cursor=None)  # up to here there was nothing to tell

    def is_ripe() -> bool:
        partition = engine.partitions.get(partition_id)
        return partition is None or partition.key_history.changed_at > later.since

    def retry(is_last: bool) -> Changes | Parked[Changes]:
        if is_last:
            return list_changes(engine, partition_id, later)
        return _changes_until(engine, partition_id, later, deadline)

    return Parked(partition_id, deadline, is_ripe, retry)
