"""Finds the rows that a call selects, one page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.arrays import Ints
from core.engine import Engine
from core.errors import Invalid, KeyNotFound, SampleNotFound
from core.names import check_keys
from core.slices import Sliced, after, begun
from core.state.cells.json_cells import json_values
from core.state.partition import Partition
from core.state.where import Where

from .cursors import cursor_for, start_of
from .key_prefix import with_prefix

NAMES = 32_768  # keys that are made JSON strings in one step
SELECTORS = "one of global_indexes, keys, group_ids and key_prefix"


@dataclass(frozen=True, slots=True)
class Selector:
    """At most one of these; none: all rows. Rows that are not named one by one come in index order."""

    indexes: Sequence[int] | None = None
    keys: Sequence[str] | None = None
    group_ids: Sequence[str | int] | None = None
    key_prefix: str | None = None

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.indexes, self.keys, self.group_ids, self.key_prefix)) > 1:
            raise Invalid.at("body", f"give {SELECTORS}, not two of them")
        check_keys(self.keys or (), "body.keys")
        check_keys((self.key_prefix or "",), "body.key_prefix")

    @property
    def is_absent(self) -> bool:
        """No member is given: all rows are selected."""
        return self.indexes is None and self.keys is None and self.group_ids is None and self.key_prefix is None


@dataclass(frozen=True, slots=True)
class Page:
    """Rows (0 where not held) and the indexes asked for, in the caller's order; `next_cursor` where more follow."""

    rows: Ints
    indexes: Ints
    missing_keys: tuple[str, ...] = ()
    next_cursor: str | None = None


Found = tuple[Partition, Page]


def select(
    engine: Engine, partition_id: str, selector: Selector, limit: int, cursor: str | None
) -> Found | Sliced[Found]:
    """The partition and one page of the selected rows; in slices where many keys are looked at.

    Raises PartitionNotFound, PartitionCleared.
    """
    partition = engine.get(partition_id)
    if selector.key_prefix is not None:
        beyond = start_of(cursor, "i") - 1
        found = begun(with_prefix(engine, partition_id, selector.key_prefix, beyond, limit + 1))
        return after(found, lambda found: (found[0], _page(found[0], found[1], limit)))
    if selector.keys is not None and len(selector.keys) > NAMES:
        return _of_keys(engine, partition_id, selector.keys, limit, start_of(cursor, "p"))
    return partition, _select(partition, selector, limit, cursor)


def _select(partition: Partition, selector: Selector, limit: int, cursor: str | None) -> Page:
    if selector.is_absent:
        return all_rows(partition, limit, cursor)
    if selector.group_ids is not None:
        rows = partition.groups.rows_of(json_values(list(selector.group_ids)), partition.rows.live())
        indexes = partition.rows.global_index[rows]
        return _page(partition, indexes[indexes >= start_of(cursor, "i")], limit)
    start = start_of(cursor, "p")
    if selector.keys is not None:
        page = selector.keys[start : start + limit]
        return _named(partition, page, json_values(list(page)), _more(selector.keys, start + limit))
    indexes = np.array((selector.indexes or ())[start : start + limit], np.int64)
    return Page(partition.rows.locate(indexes), indexes, (), _more(selector.indexes or (), start + limit))


def _of_keys(engine: Engine, partition_id: str, keys: Sequence[str], limit: int, start: int) -> Sliced[Found]:
    """They are made JSON strings in steps, and looked up in the last."""
    page, names = keys[start : start + limit], list[bytes]()
    for first in range(0, len(page), NAMES):
        names += json_values(list(page[first : first + NAMES]))
        yield
    partition = engine.get(partition_id)
    return partition, _named(partition, page, names, _more(keys, start + limit))


def _named(partition: Partition, keys: Sequence[str], names: list[bytes], more: str | None) -> Page:
    missing: tuple[str, ...] = ()
    found = partition.rows.find(names)
    if None in found:
        missing = tuple(key for key, index in zip(keys, found, strict=True) if index is None)
        found = [index for index in found if index is not None]
    indexes = np.array(found, np.int64)
    return Page(partition.rows.locate(indexes), indexes, missing, more)


def _more(named: Sequence[object], end: int) -> str | None:
    return cursor_for("p", end) if len(named) > end else None


def all_rows(partition: Partition, limit: int, cursor: str | None) -> Page:
    """One page of all rows. A row that is live throughout the listing is listed exactly once."""
    rows = partition.rows.after(start_of(cursor, "i") - 1, limit + 1)
    indexes = partition.rows.global_index[rows]
    if len(rows) <= limit:
        return Page(rows, indexes)
    return Page(rows[:limit], indexes[:limit], next_cursor=cursor_for("i", int(indexes[limit])))


def _page(partition: Partition, indexes: Ints, limit: int) -> Page:
    """The live ones of these indexes, which are in order, from the cursor on; as exact as `all_rows`."""
    rows = partition.rows.locate(indexes)
    indexes, rows = indexes[rows > 0], rows[rows > 0]
    more = cursor_for("i", int(indexes[limit])) if len(rows) > limit else None
    return Page(rows[:limit], indexes[:limit], next_cursor=more)


def to_remove(
    engine: Engine, partition_id: str, selector: Selector, where: Where | None
) -> tuple[Ints, Ints] | Sliced[tuple[Ints, Ints]]:
    """The rows that a removal selects: (live rows, indexes of rows that are clearing already), both in index order.

    Unknown rows are left out, and so are those that fail `where`. Raises PartitionNotFound, PartitionCleared.
    """
    partition = engine.get(partition_id)
    if selector.key_prefix is not None:
        found = begun(with_prefix(engine, partition_id, selector.key_prefix))
        return after(found, lambda found: _to_remove(found[0], found[0].rows.locate_held(found[1]), where))
    return _to_remove(partition, _held(partition, selector), where)


def _held(partition: Partition, selector: Selector) -> Ints:
    rows = partition.rows
    if selector.indexes is not None:
        return rows.locate_held(np.array(selector.indexes, np.int64))
    if selector.keys is not None:
        found = rows.find_held(json_values(list(selector.keys)))
        return rows.locate_held(np.array([index for index in found if index is not None], np.int64))
    if selector.group_ids is not None:
        return partition.groups.rows_of(json_values(list(selector.group_ids)), rows.held())
    return rows.held()


def _to_remove(partition: Partition, found: Ints, where: Where | None) -> tuple[Ints, Ints]:
    rows = partition.rows
    is_selected = np.zeros(rows.n, np.bool_)
    is_selected[found] = True
    found = np.flatnonzero(is_selected[1:]) + 1
    if where is not None:
        found = found[where.matches(partition.custom_meta_of(found))]
    live = rows.is_live(found)
    return found[live], rows.global_index[found[~live]]


def require_all(page: Page) -> None:
    """Check a page for `strict`. Raises KeyNotFound, SampleNotFound."""
    if page.missing_keys:
        raise KeyNotFound(keys=page.missing_keys)
    if not page.rows.all():
        raise SampleNotFound(
            "some of these indexes are not held here: leave them out, or read without strict",
            global_indexes=page.indexes[page.rows == 0].tolist(),
        )
