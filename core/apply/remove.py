"""Events that end rows: cleared, or expired. What clears in two steps share with them: withdraw, bring back, drop."""

from core.arrays import Ints, unpack
from core.events import Cleared, Expired, Limits
from core.state.cells.json_cells import EMPTY
from core.state.partition import Partition
from core.state.service import ServiceState

from .write import end_times


def clear(state: ServiceState, event: Cleared) -> None:
    """Rows are gone, and with them what is leased of them."""
    _remove(state, state.changing(event.partition), unpack(event.indexes))


def expire(state: ServiceState, event: Expired) -> None:
    """Rows that got no field in time are gone, as if they had never been inserted; a seal did not count them."""
    partition = state.changing(event.partition)
    indexes = unpack(event.indexes)
    partition.rows.inserted -= len(indexes)
    if partition.is_sealed:
        expected = (partition.limits.expected_samples or 0) - len(indexes)
        partition.limits = Limits(expected, partition.limits.max_samples, partition.limits.max_attempts)
    _remove(state, partition, indexes)


def _remove(state: ServiceState, partition: Partition, indexes: Ints) -> None:
    rows = partition.rows.locate(indexes)
    withdraw(partition, rows)
    partition.rows.remove(rows)
    drop(state, partition, rows, indexes)


def withdraw(partition: Partition, rows: Ints) -> None:
    """These live rows are on offer to nobody, in no list, and in no count."""
    partition.forget_rows()
    partition.key_history.leave(partition.revision, partition.rows, rows, partition.custom_meta)
    partition.key_history.touch(partition.revision)
    partition.supplies.moved(rows, partition.groups.remove(rows))
    for task in partition.tasks.values():
        task.hide(rows)


def bring_back(partition: Partition, rows: Ints) -> None:
    """Withdrawn rows are on offer again, as they are now."""
    partition.forget_rows()
    partition.key_history.touch(partition.revision)
    partition.supplies.moved(rows, partition.groups.bring_back(rows))
    for task in partition.tasks.values():
        task.hide(rows, -1)


def drop(state: ServiceState, partition: Partition, rows: Ints, indexes: Ints) -> None:
    """Withdrawn rows are gone for good; their leases lose them."""
    end_times(state, partition, rows)
    partition.supplies.tell_all()
    gone = partition.grid.clear(rows)
    for name, task in partition.tasks.items():
        partition.supplies.gave(name, task.break_up(rows, partition.rows.is_live))
    holders = [number for task in partition.tasks.values() for number in task.drop(rows, indexes).tolist()]
    if partition.custom_meta is not None:
        partition.custom_meta[rows] = EMPTY
    for field in partition.grid.forget(gone):
        patched = field.backend.recorded()  # without having the field
        partition.rows.revision[patched] = partition.revision
        if len(patched):
            partition.key_history.touch(partition.revision)
        partition.supplies.drop(field.name)
    partition.tidy()
    state.close_leases(partition.lose([partition.leases[number] for number in holders], indexes))
