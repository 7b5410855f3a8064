"""Applies one change: its revision, its kept reply, then its events in their order, each by the table."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar, cast

from core.events import (
    Allotted,
    BackendMetaSet,
    Begun,
    Change,
    ClearAborted,
    ClearCommitted,
    Cleared,
    ClearPlanned,
    Consumed,
    CustomMetaSet,
    Event,
    Expired,
    Extended,
    Grouped,
    Inserted,
    Leased,
    LeasesEnded,
    Limited,
    PartitionDeleted,
    PartitionMade,
    PartitionSet,
    Produced,
    Reset,
    Restored,
    Revoked,
    Sealed,
    Settled,
    Timed,
)
from core.state.service import ServiceState

from . import clear, partitions, remove, restore, tasks, write

E = TypeVar("E", bound=Event)
Function = Callable[[ServiceState, Event], None]


def apply(state: ServiceState, change: Change) -> None:
    """The state after `change`. Raises only for a bug; the state is then changed in part, and must not be used."""
    state.revision = change.revision
    if change.kept is not None:
        state.replies.put(change.kept)
    for event in change.events:
        state.changed.add(event.partition)
        EVENTS[type(event)](state, event)


def _row(kind: type[E], function: Callable[[ServiceState, E], None]) -> tuple[type[Event], Function]:
    return kind, cast("Function", function)  # it is called with events of its own kind alone


EVENTS: Mapping[type[Event], Function] = MappingProxyType(
    dict(
        (
            _row(PartitionMade, partitions.make),
            _row(PartitionSet, partitions.configure),
            _row(Limited, partitions.limit),
            _row(Sealed, partitions.seal),
            _row(PartitionDeleted, partitions.delete),
            _row(Inserted, write.insert),
            _row(Grouped, write.group),
            _row(Produced, write.produce),
            _row(CustomMetaSet, write.set_custom_meta),
            _row(BackendMetaSet, write.set_backend_meta),
            _row(Revoked, write.revoke),
            _row(Timed, write.time),
            _row(Consumed, tasks.consume),
            _row(Leased, tasks.lease),
            _row(Extended, tasks.extend),
            _row(Settled, tasks.settle),
            _row(LeasesEnded, tasks.end_leases),
            _row(Allotted, tasks.allot),
            _row(Reset, tasks.reset),
            _row(Cleared, remove.clear),
            _row(Expired, remove.expire),
            _row(ClearPlanned, clear.plan),
            _row(ClearCommitted, clear.commit),
            _row(ClearAborted, clear.abort),
            _row(Begun, restore.begin),
            _row(Restored, restore.restore),
        )
    )
)
