"""Lists the key changes of a partition after a revision, page by page, and waits for the next ones.

Reads only. Which changes are listed, and in which order, is in core.reading.key_changes.
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
    """Changes after `since` of keys that start with `prefix` and whose custom meta fulfils `where`."""

    since: int
    prefix: str = ""
    where: Where | None = None
    limit: int = 1000
    cursor: str | None = None

    @property
    def most(self) -> int:
        """How many items are examined at a time; a page may need several such steps."""
        return self.limit + (FILTERED if self.where or self.prefix else PLAIN)


@dataclass(frozen=True, slots=True)
class Changes:
    """A page in revision order. All changes up to `revision` are listed; `removed` are JSON strings."""

    partition_id: str
    revision: int
    lines: list[KeyLine]
    removed: list[bytes]
    next_cursor: str | None

    @property
    def has_items(self) -> bool:
        """Whether the page lists anything."""
        return bool(self.lines or self.removed)


def list_changes(engine: Engine, partition_id: str, request: ChangesRequest) -> Changes:
    """What changed after `request.since`. Raises PartitionNotFound, PartitionCleared, Compacted.

    An empty page with a cursor: MAX_SEEN items were examined, and none is listed.
    """
    partition = engine.get(partition_id)
    if not partition.key_history.can_tell(request.since, request.where is not None):
        raise Compacted(
            f"what left partition {partition_id!r} after revision {request.since} is not known any more: list all keys "
            "anew (since_revision=0), and go on from there"
        )
    place: Place | None = _place_of(request.cursor) or (request.since, MAX_INDEX)
    seen = 0
    while True:
        assert place is not None  # noqa: S101  (for the type checker: a page with a cursor has a place)
        items = lately_after(partition, place, request.most)
        page = _page(partition, request, items, place)
        seen += len(items)
        if page.has_items or page.next_cursor is None or seen > MAX_SEEN:
            return page
        place = _place_of(page.next_cursor)


def _page(partition: Partition, request: ChangesRequest, items: Items, place: Place) -> Changes:
    fate = fates(partition, items, request.prefix, request.where)
    shown = np.flatnonzero(fate)
    if not len(shown) and len(items) <= items.most:
        return Changes(partition.partition_id, partition.revision, [], [], None)
    end = items.end_before(min(int(shown[request.limit]) if len(shown) > request.limit else items.most, len(items)))
    shown = shown[shown < end]
    lines = _lines(items, shown[fate[shown] == LISTED])
    removed = list(dict.fromkeys(items.key[shown[fate[shown] == REMOVED]].tolist()))
    if end == len(items):
        return Changes(partition.partition_id, partition.revision, lines, removed, None)
    whole = _last_whole(place[0], items.revision[:end], int(items.revision[end]))
    return Changes(partition.partition_id, whole, lines, removed, cursor_for("r", *items.place(end - 1)))


def _lines(items: Items, at: Ints) -> list[KeyLine]:
    columns = (items.key, items.index, items.cell, items.revision)
    return [KeyLine(*line) for line in zip(*(column[at].tolist() for column in columns), strict=True)]


def _last_whole(place: int, shown: Ints, following: int) -> int:
    """The last revision whose changes are all on this page or before it."""
    before = shown[shown < following]
    return int(before[-1]) if len(before) else place if place < following else following - 1


def _place_of(cursor: str | None) -> Place | None:
    """(revision, index) of the last item looked at. Raises Invalid."""
    if cursor is None:
        return None
    revision, index = place_of(cursor, "r", 2)
    return revision, index


def await_changes(
    engine: Engine, partition_id: str, request: ChangesRequest, wait_s: float
) -> Changes | Parked[Changes]:
    """As `list_changes`; waits up to `wait_s` seconds for a change to list."""
    return _changes_until(engine, partition_id, request, engine.clock() + wait_s)


def _changes_until(
    engine: Engine, partition_id: str, request: ChangesRequest, deadline: float
) -> Changes | Parked[Changes]:
    found = list_changes(engine, partition_id, request)
    if found.has_items or found.next_cursor is not None:
        return found
    later = replace(request, since=max(request.since, found.revision), cursor=None)  # nothing to list up to here

    def is_ripe() -> bool:
        partition = engine.partitions.get(partition_id)
        return partition is None or partition.key_history.changed_at > later.since

    def retry(is_last: bool) -> Changes | Parked[Changes]:
        if is_last:
            return list_changes(engine, partition_id, later)
        return _changes_until(engine, partition_id, later, deadline)

    return Parked(partition_id, deadline, is_ripe, retry)
