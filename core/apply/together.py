"""Applies changes that are alike as one: new rows of one partition, a change each, as those of a single write.

Only the rows' revisions and the history of keys tell them from one write, and are set as one after the other would.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.events import AnyEvent, Change, CustomMetaSet, Grouped, Inserted, Produced
from core.state.service import ServiceState

from .table import apply


def apply_alike(state: ServiceState, changes: Sequence[Change]) -> None:
    """The state after these changes, in their order: each of the same kinds of events, with an `Inserted` of one key.

    They are of one partition, and what they produce has one signature, the cells that all rows have, and leaves all
    schemas as they are (core.writing.runs).
    """
    if len(changes) == 1:
        apply(state, changes[0])
        return
    last, revisions = changes[-1], [change.revision for change in changes]
    partition = state.partitions[last.events[0].partition]
    partition.key_history.touch(revisions[-2])
    apply(state, Change(last.revision, [_joined(parts) for parts in zip(*(c.events for c in changes), strict=True)]))
    rows = partition.rows
    rows.revision[rows.n - len(changes) : rows.n] = revisions
    partition.key_history.begin(last.revision, last.events[0].first)  # type: ignore[union-attr]  # an Inserted


def _joined(parts: Sequence[AnyEvent]) -> AnyEvent:
    return _JOINED[type(parts[0])](parts)


def _indexes(parts: Sequence[Any]) -> bytes:
    return b"".join([part.indexes for part in parts])


def _inserted(parts: Sequence[Any]) -> Inserted:
    first = parts[0]
    return Inserted(first.partition, first.first, len(parts), [part.keys[0] for part in parts])


def _grouped(parts: Sequence[Any]) -> Grouped:
    return Grouped(parts[0].partition, _indexes(parts), [part.group_ids[0] for part in parts])


def _set(parts: Sequence[Any]) -> CustomMetaSet:
    return CustomMetaSet(parts[0].partition, _indexes(parts), [part.cells[0] for part in parts])


def _produced(parts: Sequence[Any]) -> Produced:
    first, sizes = parts[0], b"".join([part.sizes for part in parts])
    return Produced(first.partition, _indexes(parts), first.signature, sizes, first.backend)


_JOINED: Mapping[type, Callable[[Sequence[Any]], AnyEvent]] = {
    Inserted: _inserted, Grouped: _grouped, CustomMetaSet: _set, Produced: _produced,
}  # fmt: skip
