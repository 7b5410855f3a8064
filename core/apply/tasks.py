"""Events of consumers: rows are handed out, held, settled, set aside for a rank, or forgotten by a reset."""

import numpy as np

from core.arrays import Ints, unpack
from core.events import Allotted, Consumed, Extended, Leased, LeasesEnded, Reset, Settled
from core.state.leases import Lease, end
from core.state.partition import Partition
from core.state.service import ServiceState
from core.state.tasks import Task
from core.state.transitions import ACCEPTED, CONSUMED, DEAD, FREE, LOST, REJECTED, RELEASED


def consume(state: ServiceState, event: Consumed) -> None:
    """Rows are handed out, and count as consumed at once."""
    partition = state.changing(event.partition)
    rows = partition.rows.locate(unpack(event.indexes))
    task = partition.task(event.task)
    task.fetch(event.share, rows, partition.revision)
    task.consume(rows)
    partition.supplies.took(event.task, rows, is_of_share=bool(event.share))


def lease(state: ServiceState, event: Leased) -> None:
    """Rows are handed out with a lease, which begins now."""
    partition = state.changing(event.partition)
    indexes = unpack(event.indexes)
    rows = partition.rows.locate(indexes)
    task = partition.task(event.task)
    task.fetch(event.share, rows, event.number)
    attempts = task.lease(rows, event.number)
    partition.supplies.took(event.task, rows, is_of_share=bool(event.share))
    lease = Lease(
        event.number, event.token, partition.partition_id, event.task, event.worker, event.length_s, event.group_size,
        indexes, attempts, np.zeros(len(indexes), np.uint8),
    )  # fmt: skip
    if len(indexes):
        partition.leases[event.number] = lease
    if task.memory is not None and event.share:
        task.memory.shares[event.share].lease = lease
    state.leases.begin(lease, state.clock())


def extend(state: ServiceState, event: Extended) -> None:
    """The lease has its new length from now."""
    state.changing(event.partition)
    state.leases.extend(state.leases.open[event.number], event.length_s, state.clock())


def allot(state: ServiceState, event: Allotted) -> None:
    """Rows are held for a key of a task's sampler memory."""
    partition = state.changing(event.partition)
    shares = [unpack(share) for share in event.shares]
    rows = partition.rows.locate(np.concatenate(shares))
    partition.task(event.task).allot(event.key, event.terms, shares, rows)
    partition.supplies.took(event.task, rows, is_of_share=True)


def settle(state: ServiceState, event: Settled) -> None:
    """Rows of a lease are accepted, free again, or dead."""
    partition = state.changing(event.partition)
    lease = partition.leases[event.number]
    task = partition.tasks[lease.task]
    _settle_rows(partition, task, event.accepted, CONSUMED)
    _settle_rows(partition, task, event.dead, DEAD)
    task.reasons.update(zip(unpack(event.dead).tolist(), event.reasons, strict=True))
    rows = _settle_rows(partition, task, event.released, FREE)
    if event.takes_back:
        task.take_back(rows)
    partition.supplies.gave(lease.task, task.give_back(rows, partition.rows.is_live(rows)))
    lease.settle(unpack(event.accepted), ACCEPTED)
    lease.settle(np.concatenate([unpack(event.released), unpack(event.worn)]), LOST if event.is_lost else RELEASED)
    lease.settle(unpack(event.dead), LOST if event.is_lost else REJECTED)
    partition.drop_closed([lease])
    state.leases.settle([lease])


def end_leases(state: ServiceState, event: LeasesEnded) -> None:
    """What these leases still held is free again, or dead, and they are over."""
    partition = state.changing(event.partition)
    task = partition.tasks[event.task]
    _settle_rows(partition, task, event.worn, DEAD)
    task.reasons.update(dict.fromkeys(unpack(event.worn).tolist(), event.reason))
    rows = _settle_rows(partition, task, event.released, FREE)
    partition.supplies.gave(event.task, task.give_back(rows, partition.rows.is_live(rows)))
    leases = list(map(partition.leases.pop, unpack(event.numbers).tolist()))
    end(leases)
    state.close_leases(leases)


def _settle_rows(partition: Partition, task: Task, indexes: bytes, state: int) -> Ints:
    """One that is clearing is settled too, and nobody's meanwhile. Returns all of them."""
    rows = partition.rows.locate_held(unpack(indexes))
    task.settle(rows, state, partition.rows.is_live(rows))
    return rows


def reset(state: ServiceState, event: Reset) -> None:
    """The task begins anew: its leases end."""
    partition = state.changing(event.partition)
    partition.tasks[event.task].reset()
    partition.supplies.gave(event.task, np.arange(partition.rows.n))
    of_task = [lease for lease in partition.leases.values() if lease.task == event.task]
    state.close_leases(partition.lose(of_task, None))
