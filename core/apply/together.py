"""Applies several changes of one kind at once: puts of one new row each, or claims, of one partition.

Only the rows' revisions and the history of keys tell writes from one, and are set as one after the other would.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.events import AnyEvent, Change, Consumed, CustomMetaSet, Grouped, Inserted, Produced
from core.state.partition import Partition
from core.state.service import ServiceState

from .table import apply


def apply_alike(state: ServiceState, changes: Sequence[Change]) -> None:
    """The state after these changes, in their order: each of the same kinds of events, of one partition.

    Rows are consumed by one task; or each has an `Inserted` of one key, and what is produced has one signature, the
    cells that all rows have, and leaves all schemas as they are.
    """
    if len(changes) == 1:
        apply(state, changes[0])
        return
    joined = [_joined(parts) for parts in zip(*(change.events for change in changes), strict=True)]
    begins_with = changes[-1].events[0]
    if isinstance(begins_with, Inserted):
        state.partitions[begins_with.partition].key_history.touch(changes[-2].revision)
    apply(state, Change(changes[-1].revision, joined))
    if isinstance(begins_with, Inserted):
        _tell_apart(state.partitions[begins_with.partition], begins_with.first, [one.revision for one in changes])


def _tell_apart(partition: Partition, first: int, revisions: list[int]) -> None:
    """The newest rows each have a revision of their own; `first` is the index of the last of them."""
    rows = partition.rows
    rows.revision[rows.n - len(revisions) : rows.n] = revisions
    partition.key_history.begin(revisions[-1], first)


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


def _consumed(parts: Sequence[Any]) -> Consumed:
    return Consumed(parts[0].partition, parts[0].task, _indexes(parts))


_JOINED: Mapping[type, Callable[[Sequence[Any]], AnyEvent]] = {
    Inserted: _inserted, Grouped: _grouped, CustomMetaSet: _set, Produced: _produced, Consumed: _consumed,
}  # fmt: skip
