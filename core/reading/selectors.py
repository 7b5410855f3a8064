"""Finds the rows that a call selects, one page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.arrays import Ints
from core.errors import Invalid, KeyNotFound, SampleNotFound
from core.names import check_keys
from core.slices import Sliced
from core.state.cells.json_cells import json_values
from core.state.partition import Partition
from core.state.where import Where

from .cursors import cursor_for, start_of

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
        if self._given() > 1:
            raise Invalid.at("body", f"give {SELECTORS}, not two of them")
        check_keys(self.keys or (), "body.keys")
        check_keys((self.key_prefix or "",), "body.key_prefix")

    def _given(self) -> int:
        return sum(one is not None for one in (self.indexes, self.keys, self.group_ids, self.key_prefix))

    @property
    def is_absent(self) -> bool:
        """No member is given: all rows are selected."""
        return self._given() == 0


@dataclass(frozen=True, slots=True)
class Page:
    """Rows (0 where not held) and the indexes asked for, in the caller's order; `next_cursor` where more follow."""

    rows: Ints
    indexes: Ints
    missing_keys: tuple[str, ...] = ()
    next_cursor: str | None = None


def names_of(selector: Selector) -> Sliced[list[bytes] | None]:
    """The selector's keys as JSON strings, for `select`."""
    if selector.keys is None:
        return None
    names: list[bytes] = []
    for first in range(0, len(selector.keys), NAMES):
        names += json_values(list(selector.keys[first : first + NAMES]))
        yield
    return names


def select(
    partition: Partition, selector: Selector, limit: int, cursor: str | None, names: list[bytes] | None = None
) -> Page:
    """One page of the selected rows. `names`: the selector's keys as JSON strings, where that was done before."""
    if selector.is_absent:
        return all_rows(partition, limit, cursor)
    if selector.keys is None and selector.indexes is None:
        live = partition.rows.live()
        return _page(partition, _having(partition, selector, live), limit, cursor)
    start = start_of(cursor, "p")
    named = selector.keys if selector.keys is not None else selector.indexes or ()
    more = cursor_for("p", start + limit) if len(named) > start + limit else None
    missing: tuple[str, ...] = ()
    if selector.keys is not None:
        page = slice(start, start + limit)
        found = partition.rows.find(json_values(list(selector.keys[page])) if names is None else names[page])
        if None in found:
            missing = tuple(key for key, index in zip(selector.keys[page], found, strict=True) if index is None)
            found = [index for index in found if index is not None]
        indexes = np.array(found, np.int64)
    else:
        indexes = np.array((selector.indexes or ())[start : start + limit], np.int64)
    return Page(partition.rows.locate(indexes), indexes, missing, more)


def all_rows(partition: Partition, limit: int, cursor: str | None) -> Page:
    """One page of all rows. A row that is live throughout the listing is listed exactly once."""
    rows = partition.rows.after(start_of(cursor, "i") - 1, limit + 1)
    indexes = partition.rows.global_index[rows]
    if len(rows) <= limit:
        return Page(rows, indexes)
    return Page(rows[:limit], indexes[:limit], next_cursor=cursor_for("i", int(indexes[limit])))


def _page(partition: Partition, rows: Ints, limit: int, cursor: str | None) -> Page:
    """One page of these rows, given in index order; as exact as `all_rows`."""
    indexes = partition.rows.global_index[rows]
    start = int(np.searchsorted(indexes, start_of(cursor, "i")))
    more = cursor_for("i", int(indexes[start + limit])) if len(rows) > start + limit else None
    page = slice(start, start + limit)
    return Page(rows[page], indexes[page], next_cursor=more)


def _having(partition: Partition, selector: Selector, rows: Ints) -> Ints:
    """Those of `rows` that are in one of the groups, or whose key has the prefix; in index order."""
    if selector.group_ids is not None:
        return partition.groups.rows_of(json_values(list(selector.group_ids)), rows)
    if selector.key_prefix is None:
        return rows
    start = json_values([selector.key_prefix])[0][:-1]
    return rows[[at for at, key in enumerate(partition.keys_of(rows)) if key.startswith(start)]]


def to_remove(partition: Partition, selector: Selector, where: Where | None) -> tuple[Ints, Ints]:
    """The rows that a removal selects: (live rows, indexes of rows that are clearing already), both in index order.

    Unknown rows are left out, and so are those that fail `where`.
    """
    rows = partition.rows
    if selector.indexes is not None:
        found = rows.locate_held(np.array(selector.indexes, np.int64))
    elif selector.keys is not None:
        names = json_values(list(selector.keys))
        indexes = [index for index in rows.find_held(names) if index is not None]
        found = rows.locate_held(np.array(indexes, np.int64))
    else:
        found = _having(partition, selector, rows.held())
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
