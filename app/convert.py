"""Turns wire Structs into what operations take: columns, selectors, views, names in a query."""

from collections.abc import Mapping
from typing import Protocol, cast

import msgspec

from batchmeta.wire.requests import Condition, Include, Where
from batchmeta.wire.types import Cells
from core.errors import Invalid
from core.limits import MAX_ROWS
from core.operations.produce import RowWrite
from core.reading.batch import View
from core.reading.selectors import Selector
from core.state import where as predicates
from core.state.cells.json_cells import Column, CustomMetaMode

from .contract import explained
from .pieces import Decoder

_INDEXES = msgspec.json.Decoder(list[int])
_WHERE: Decoder[list[Condition]] = Decoder(Where)


def columns(by_field: Mapping[str, Cells] | None) -> Mapping[str, Column]:
    """Columns by field, still to be checked: Raw is bytes-like, and the checker copies each cell as it checks it."""
    return cast("Mapping[str, Column]", by_field or {})


class RowsIn(Protocol):
    """A body that names rows for a write."""

    @property
    def keys(self) -> list[str] | None: ...
    @property
    def custom_meta(self) -> Cells | None: ...
    @property
    def custom_meta_mode(self) -> CustomMetaMode | None: ...


def row_write(body: RowsIn) -> RowWrite:
    """Which rows, and their group ids and custom meta."""
    return RowWrite(
        getattr(body, "global_indexes", None),
        body.keys,
        getattr(body, "group_ids", None),
        cast("Column | None", body.custom_meta),
        getattr(body, "ttl_s", None),
        body.custom_meta_mode or "merge",
    )


class SelectorIn(Protocol):
    """A body with a selector."""

    @property
    def global_indexes(self) -> list[int] | None: ...
    @property
    def keys(self) -> list[str] | None: ...
    @property
    def group_ids(self) -> list[str | int] | None: ...
    @property
    def key_prefix(self) -> str | None: ...


def selector(body: SelectorIn) -> Selector:
    """Which rows a call means."""
    return Selector(body.global_indexes, body.keys, body.group_ids, body.key_prefix)


def where_in_query(text: str | None) -> predicates.Where | None:
    """The conditions that a query gives as JSON."""
    if text is None:
        return None
    return predicates.where(explained(lambda: _WHERE.decode(text.encode()), "query.where", Where), "query.where")


class ViewIn(Protocol):
    """A body that says what of a batch it wants."""

    @property
    def include(self) -> list[Include] | None: ...
    @property
    def expand(self) -> bool | None: ...
    @property
    def compact(self) -> bool | None: ...
    @property
    def share_columns(self) -> bool | None: ...


def view(body: ViewIn, fields: list[str] | None) -> View:
    """What of a batch is asked for."""
    include = None if body.include is None else frozenset(body.include)
    asked = None if fields is None else tuple(fields)
    return View(asked, include, bool(body.expand), bool(body.compact), bool(body.share_columns))


def listed(text: str | None) -> list[str] | None:
    """`a,b` of a query; the empty text is the empty list."""
    if text is None:
        return None
    return text.split(",") if text else []


def listed_indexes(text: str | None) -> list[int] | None:
    """`1,2` of a query, each within int64."""
    if text is None:
        return None
    try:
        indexes = _INDEXES.decode(f"[{text}]")
    except msgspec.DecodeError as error:
        raise Invalid.at("query.global_indexes", "must be whole numbers separated by commas, as in 0,1,2") from error
    if any(not 0 <= index < 2**63 for index in indexes) or len(indexes) > MAX_ROWS:
        raise Invalid.at("query.global_indexes", f"must be 0 … 2^63-1, at most {MAX_ROWS} of them")
    return indexes
