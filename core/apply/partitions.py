"""Events of whole partitions: made, configured, limited, sealed, deleted."""

from core.events import Limited, Limits, PartitionDeleted, PartitionMade, PartitionSet, Sealed
from core.state import bounded_dict
from core.state.freeing import AT_ONCE
from core.state.partition import Partition, limits_of
from core.state.service import ServiceState
from core.state.transitions import COMMITTED

MAX_DELETED = 10_000


def make(state: ServiceState, event: PartitionMade) -> None:
    """A new partition, which may have the name of one that was deleted."""
    partition = Partition(event.partition, event.created_at, state.revision, state.words)
    deleted_at = state.deleted.pop(event.partition, None)
    if deleted_at is not None:
        partition.key_history.had_another(deleted_at)
    state.partitions[event.partition] = partition


def configure(state: ServiceState, event: PartitionSet) -> None:
    """The settings of a PUT. What a seal settled stays."""
    partition = state.changing(event.partition)
    partition.settings = event.settings
    limits = limits_of(event.settings)
    if partition.is_sealed:
        limits = Limits(partition.limits.expected_samples, limits.max_samples, limits.max_attempts)
    partition.limits = limits
    width = partition.grid.status.width
    for declared in event.settings.fields:
        partition.grid.declare(declared)
    partition.drop_supplies_of_width(width)
    partition.supplies.tell_all()


def limit(state: ServiceState, event: Limited) -> None:
    """The limits of a PATCH."""
    partition = state.changing(event.partition)
    partition.limits = event.limits
    partition.supplies.tell_all()


def seal(state: ServiceState, event: Sealed) -> None:
    """No more samples: those there are expected."""
    partition = state.changing(event.partition)
    partition.is_sealed = True
    partition.limits = Limits(event.samples, partition.limits.max_samples, partition.limits.max_attempts)
    partition.supplies.tell_all()


def delete(state: ServiceState, event: PartitionDeleted) -> None:
    """The partition is gone with all it holds: its leases end, its pending clears are committed."""
    partition = state.partitions.pop(event.partition)
    state.close_leases(partition.lose_all())
    for number in partition.clears:
        state.clears.close(number, COMMITTED)
    state.ttl_deadlines.discard((event.partition, number) for number in partition.ttls.batches)
    bounded_dict.put(state.deleted, event.partition, state.revision, MAX_DELETED)
    if state.gone is not None and partition.rows.n > AT_ONCE:
        state.gone.append(partition)
