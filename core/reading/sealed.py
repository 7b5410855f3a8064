"""What a sealed partition still has for one task: whether to wait brings more rows, and whether none can go out."""

import numpy as np

from core.state.partition import Partition
from core.state.states import FREE, HELD, LEASED
from core.state.supply.supply import Supply
from core.state.tasks import Task


def is_last(partition: Partition, supply: Supply | None, name: str) -> bool:
    """Sealed, and all that is left for the task is ready: there are no more rows to wait for."""
    if supply is None or not partition.is_sealed:
        return False
    return 0 < supply.ready.count == _open_rows(partition, supply, name)


def _open_rows(partition: Partition, supply: Supply, name: str) -> int:
    """Live rows that pass `where` and are neither consumed, leased nor dead."""
    if supply.sieve is not None:
        return supply.sieve.open.count
    task = partition.tasks.get(name)
    return partition.rows.live_count - (task.settled + task.leased if task else 0)


def stranded(partition: Partition, name: str, fields: tuple[str, ...]) -> int:
    """Rows left for the task of which none goes out to a claim that gets none now; 0 while some may yet.

    `fields` are sorted, each once.

    That is in a sealed partition where all that is left is ready, and nothing leased or clearing may come back. (What
    is not ready may get, with its fields, what `where` or a sampler asks for.)
    """
    if not partition.is_sealed or not all(field in partition.fields for field in fields):
        return 0
    task = partition.tasks.get(name)
    if task is not None and task.leased:
        return 0
    left = partition.rows.live_count - (task.settled if task else 0)
    ready = partition.supply(name, fields).ready.count
    return left if ready == left and not _may_come_back(partition, task) else 0


def _may_come_back(partition: Partition, task: Task | None) -> bool:
    """Rows are clearing that an abort would bring back, and of which nothing has become."""
    if not partition.rows.clearing_count:
        return False
    return task is None or bool(np.isin(task.state[partition.rows.clearing()], (FREE, HELD, LEASED)).any())
