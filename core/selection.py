"""Which rows a read means, and where its page begins and ends. Cursors are opaque to callers: a place, in hex."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .arrays import Ints
from .cells import json_values
from .errors import Invalid, KeyNotFound, SampleNotFound
from .intake import check_keys
from .partition import Partition

_CURSOR = re.compile(r"([a-z])([0-9a-f]{1,16})")


@dataclass(frozen=True, slots=True)
class Selector:
    """At most one of these; neither: all rows, in index order."""

    indexes: Sequence[int] | None = None
    keys: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.indexes is not None and self.keys is not None:
            raise Invalid.at("body", "give global_indexes or keys, not both")
        check_keys(self.keys or (), "body.keys")


@dataclass(frozen=True, slots=True)
class Page:
    """Rows (0 where not held) and the indexes asked for, in the caller's order; `next_cursor` where more follow."""

    rows: Ints
    indexes: Ints
    missing_keys: tuple[str, ...] = ()
    next_cursor: str | None = None


def cursor_for(kind: str, place: int) -> str:
    """The cursor after `place`; `kind` keeps cursors of one listing out of another."""
    return f"{kind}{place:x}"


def place_of(cursor: str | None, kind: str, start: int) -> int:
    """The place a cursor stands for, `start` without one. Raises Invalid."""
    if cursor is None:
        return start
    match = _CURSOR.fullmatch(cursor)
    if match is None or match[1] != kind or int(match[2], 16) >= 2**63:
        raise Invalid.at("cursor", "is not one that this listing gave: take next_cursor as it is")
    return int(match[2], 16)


def select(partition: Partition, selector: Selector, limit: int, cursor: str | None) -> Page:
    """One page of the selected rows."""
    if selector.keys is None and selector.indexes is None:
        return all_rows(partition, limit, cursor)
    start = place_of(cursor, "p", 0)
    named = selector.keys if selector.keys is not None else selector.indexes or ()
    more = cursor_for("p", start + limit) if len(named) > start + limit else None
    missing: tuple[str, ...] = ()
    if selector.keys is not None:
        keys = selector.keys[start : start + limit]
        found = partition.rows.find(json_values(list(keys)))
        missing = tuple(key for key, index in zip(keys, found, strict=True) if index is None)
        indexes = np.array([index for index in found if index is not None], np.int64)
    else:
        indexes = np.array((selector.indexes or ())[start : start + limit], np.int64)
    return Page(partition.rows.locate(indexes), indexes, missing, more)


def all_rows(partition: Partition, limit: int, cursor: str | None) -> Page:
    """One page of all rows; one that is there throughout the listing is listed exactly once."""
    rows = partition.rows.after(place_of(cursor, "i", 0) - 1, limit + 1)
    indexes = partition.rows.global_index[rows]
    if len(rows) <= limit:
        return Page(rows, indexes)
    return Page(rows[:limit], indexes[:limit], next_cursor=cursor_for("i", int(indexes[limit])))


def require_all(page: Page) -> None:
    """What `strict` asks for. Raises KeyNotFound, SampleNotFound."""
    if page.missing_keys:
        raise KeyNotFound(keys=page.missing_keys)
    if not page.rows.all():
        raise SampleNotFound(
            "some of these indexes are not held here: leave them out, or read without strict",
            global_indexes=page.indexes[page.rows == 0].tolist(),
        )
