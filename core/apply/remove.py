"""What the end of rows does to a partition: they are withdrawn, then dropped, or brought back. Decides nothing."""

import numpy as np

from core.arrays import Ints, unpack
from core.events import Cleared, Expired, Limits
from core.state.cells.json_cells import EMPTY
from core.state.leases import Lease
from core.state.partition import Partition


def expire(partition: Partition, event: Expired) -> list[Lease]:
    """Rows that got no field in time are gone, as if they had never been inserted; a seal did not count them."""
    count = len(event.indexes) // 8
    partition.rows.inserted -= count
    if partition.is_sealed:
        expected = (partition.limits.expected_samples or 0) - count
        partition.limits = Limits(expected, partition.limits.max_samples, partition.limits.max_attempts)
    return clear(partition, event)


def clear(partition: Partition, event: Cleared | Expired) -> list[Lease]:
    """Rows are gone, and with them what is leased of them."""
    indexes = unpack(event.indexes)
    rows = partition.rows.locate(indexes)
    withdraw(partition, rows)
    partition.rows.remove(rows)
    return drop(partition, rows, indexes)


def withdraw(partition: Partition, rows: Ints) -> None:
    """These live rows are on offer to nobody, in no list, and in no count."""
    partition.forget_rows()
    partition.past.leave(partition.revision, partition.rows, rows, partition.custom_meta)
    partition.past.touch(partition.revision)
    for supply in partition.supplies.values():
        supply.discard(rows)
    partition.filtered.note(rows, partition)
    numbers = partition.groups.remove(rows)
    for supply in partition.all_supplies():
        supply.resized(numbers)
    for task in partition.tasks.values():
        task.hide(rows)


def bring_back(partition: Partition, rows: Ints) -> None:
    """Withdrawn rows are on offer again, as they are now."""
    partition.forget_rows()
    partition.past.touch(partition.revision)
    numbers = partition.groups.bring_back(rows)
    for task in partition.tasks.values():
        task.hide(rows, -1)
    words = partition.grid.status.gather(rows)
    for (name, _), supply in partition.supplies.items():
        partition.offer(name, supply, rows, np.zeros_like(words), words)
    partition.filtered.note(rows, partition)
    for supply in partition.all_supplies():
        supply.resized(numbers)


def drop(partition: Partition, rows: Ints, indexes: Ints) -> list[Lease]:
    """Withdrawn rows are gone for good."""
    partition.ttls.end(rows)
    gone = partition.grid.clear(rows)
    for name, task in partition.tasks.items():
        partition.offer_again(name, task.break_up(rows, partition.rows.live))
    holders = [number for task in partition.tasks.values() for number in task.drop(rows, indexes).tolist()]
    if partition.custom_meta is not None:
        partition.custom_meta[rows] = EMPTY
    for field in partition.grid.forget(gone):
        patched = field.backend.recorded()  # without having the field
        partition.rows.revision[patched] = partition.revision
        if len(patched):
            partition.past.touch(partition.revision)
        partition.drop_supplies(field.name)
    partition.tidy()
    return partition.lose([partition.leases[number] for number in holders], indexes)
