"""What a sealed partition has left for one task: whether waiting brings more rows, and how many can never go out."""

import numpy as np

from core.state.partition import Partition
from core.state.supply.supply import Supply
from core.state.tasks import Task
from core.state.transitions import FREE, HELD, LEASED


def is_last(partition: Partition, supply: Supply | None, name: str) -> bool:
    """Whether the partition is sealed and all rows left for the task are ready: waiting brings no more."""
    if supply is None or not partition.is_sealed:
        return False
    return 0 < supply.ready.count == _open_rows(partition, supply, name)


def _open_rows(partition: Partition, supply: Supply, name: str) -> int:
    """Live rows that pass `where` and are neither consumed, leased nor dead."""
    if supply.where is not None:
        return partition.supply(name, (), supply.where).ready.count
    task = partition.tasks.get(name)
    return partition.rows.live_count - (task.settled + task.leased if task else 0)


def unready(partition: Partition, supply: Supply, name: str) -> int:
    """How many rows of a sealed partition must become ready before all that are left for the task are: of those that
    pass `where`; where they are, of all.
    """
    passing = _open_rows(partition, supply, name) - supply.ready.count
    if passing or supply.where is None:
        return passing
    every = partition.supply(name, supply.fields)
    return _open_rows(partition, every, name) - every.ready.count


def stranded(partition: Partition, name: str, fields: tuple[str, ...]) -> int:
    """How many rows are left that a claim which gets none now can never get; 0 while that may change.

    `fields` are sorted, each once. It cannot change once the partition is sealed, every row left is ready, and none is
    leased or may come back from clearing. (A write that makes a row ready may also bring the custom meta that `where`
    or a sampler wants.)
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
    """Whether an abort would bring back clearing rows that the task has neither consumed nor found dead."""
    if not partition.rows.clearing_count:
        return False
    return task is None or bool(np.isin(task.state[partition.rows.clearing()], (FREE, HELD, LEASED)).any())
