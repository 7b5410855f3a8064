"""The consumption status of a task, and its reset."""

from dataclasses import dataclass

import numpy as np

from core.arrays import Bits, Ints
from core.engine import Engine
from core.events import AnyEvent, Reset
from core.reading.selectors import Page, all_rows
from core.state.partition import Partition
from core.state.transitions import CONSUMED


@dataclass(frozen=True, slots=True)
class Counts:
    """A task's account. `total` = live + consumed and cleared since + samples still expected."""

    consumed: int
    leased: int
    dead: int
    total: int
    done: bool


@dataclass(frozen=True, slots=True)
class Consumption:
    """`page` and `status` (uint8 [rows]) are None where only counts were asked for."""

    partition_id: str
    revision: int
    counts: Counts
    page: Page | None
    status: Bits | None


def counts_of(partition: Partition, name: str) -> Counts:
    """The account of a task; one that never took anything has consumed nothing."""
    task = partition.tasks.get(name)
    expected = partition.limits.expected_samples or 0
    missing = max(0, expected - partition.rows.inserted)
    cleared = task.consumed_cleared if task else 0
    total = partition.rows.live_count + cleared + missing
    consumed, leased, dead = (task.consumed, task.leased, task.dead) if task else (0, 0, 0)
    return Counts(consumed, leased, dead, total, partition.is_done(task))


def read_consumption(
    engine: Engine, partition_id: str, task: str, counts_only: bool, limit: int, cursor: str | None
) -> Consumption:
    """The status of a task, which need not exist yet. Raises PartitionNotFound, PartitionCleared."""
    partition = engine.get(partition_id)
    counts = counts_of(partition, task)
    if counts_only:
        return Consumption(partition_id, partition.revision, counts, None, None)
    page = all_rows(partition, limit, cursor)
    status = _status(partition, task, page.rows)
    return Consumption(partition_id, partition.revision, counts, page, status)


def _status(partition: Partition, name: str, rows: Ints) -> Bits:
    task = partition.tasks.get(name)
    return np.zeros(len(rows), np.uint8) if task is None else (task.state[rows] == CONSUMED).view(np.uint8)


def reset_consumption(engine: Engine, partition_id: str, task: str | None) -> tuple[int, int]:
    """(rows that were consumed, leased or dead, partition revision) of one task, or all. Raises PartitionNotFound."""
    partition = engine.get(partition_id)
    names = list(partition.tasks) if task is None else [task]
    tasks = {name: partition.tasks[name] for name in names if name in partition.tasks}
    counts = {name: task.consumed + task.leased + task.dead for name, task in tasks.items()}
    used = [name for name, task in tasks.items() if counts[name] or task.has_history]
    events: list[AnyEvent] = [Reset(partition_id, name) for name in used]
    if events:
        engine.commit(*events)
    return sum(counts.values()), partition.revision
