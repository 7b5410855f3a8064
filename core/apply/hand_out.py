"""What handing rows out, settling them and a reset do to a partition. As all events, these decide nothing."""

import numpy as np

from core.arrays import Ints, unpack
from core.events import Allotted, Consumed, Leased, Reset, Settled
from core.state.leases import ACCEPTED, LOST, REJECTED, RELEASED, Lease
from core.state.partition import Partition
from core.state.tasks import CONSUMED, DEAD, FREE, Task


def consume(partition: Partition, event: Consumed) -> None:
    rows = partition.rows.locate(unpack(event.indexes))
    task = partition.task(event.task)
    task.fetch(event.share, rows, partition.revision)
    task.consume(rows)
    for supply in partition.supplies_of(event.task):
        supply.discard(rows)
    partition.filtered.note(rows, partition)


def lease(partition: Partition, event: Leased) -> Lease:
    """Hand out with a lease, which begins when the engine says so."""
    indexes = unpack(event.indexes)
    rows = partition.rows.locate(indexes)
    task = partition.task(event.task)
    task.fetch(event.share, rows, event.number)
    attempts = task.lease(rows, event.number)
    for supply in partition.supplies_of(event.task):
        supply.discard(rows)
    partition.filtered.note(rows, partition)
    lease = Lease(
        event.number, event.token, partition.partition_id, event.task, event.worker, event.length_s, event.group_size,
        indexes, attempts, np.zeros(len(indexes), np.uint8),
    )  # fmt: skip
    if len(indexes):
        partition.leases[event.number] = lease
    if task.memory is not None and event.share:
        task.memory.shares[event.share].lease = lease
    return lease


def allot(partition: Partition, event: Allotted) -> None:
    """Rows are held for a key of a task's sampler memory."""
    shares = [unpack(share) for share in event.shares]
    rows = partition.rows.locate(np.concatenate(shares))
    partition.task(event.task).allot(event.key, event.terms, shares, rows)
    for supply in partition.supplies_of(event.task):
        supply.discard(rows)
    partition.filtered.note(rows, partition)


def settle(partition: Partition, event: Settled) -> Lease:
    """Rows of a lease are accepted, free again, or dead."""
    lease = partition.leases[event.number]
    task = partition.tasks[lease.task]
    _settle_rows(partition, task, event.accepted, CONSUMED)
    _settle_rows(partition, task, event.dead, DEAD)
    task.reasons.update(zip(unpack(event.dead).tolist(), event.reasons, strict=True))
    rows = _settle_rows(partition, task, event.released, FREE)
    if event.takes_back:
        task.take_back(rows)
    partition.offer_again(lease.task, task.give_back(rows, partition.rows.live[rows]))
    lease.settle(unpack(event.accepted), ACCEPTED)
    lease.settle(np.concatenate([unpack(event.released), unpack(event.worn)]), LOST if event.is_lost else RELEASED)
    lease.settle(unpack(event.dead), LOST if event.is_lost else REJECTED)
    partition.drop_closed([lease])
    return lease


def _settle_rows(partition: Partition, task: Task, indexes: bytes, state: int) -> Ints:
    """One that is clearing is settled too, and nobody's meanwhile. Returns all of them."""
    rows = partition.rows.locate_held(unpack(indexes))
    task.settle(rows, state, partition.rows.live[rows])
    return rows


def reset(partition: Partition, event: Reset) -> list[Lease]:
    """The task begins anew: its leases end."""
    partition.tasks[event.task].reset()
    for key in [key for key in partition.supplies if key[0] == event.task]:
        del partition.supplies[key]
    partition.filtered.drop(task=event.task)
    return partition.lose([lease for lease in partition.leases.values() if lease.task == event.task], None)
