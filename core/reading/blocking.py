"""Why a claim got nothing: reasons, counts and a few example rows. Computed only for replies that show them."""

from collections.abc import Callable

import numpy as np

from core.arrays import Flags, Ints
from core.samplers import Blocking, Sampler
from core.state.cells.fields import Field
from core.state.cells.readiness import bit_column
from core.state.partition import Partition
from core.state.supply.supply import Supply
from core.state.tasks import Task
from core.state.transitions import CONSUMED, DEAD, HELD, LEASED

EXAMPLES = 10
CHUNK = 8192


def explain(
    partition: Partition, task: str, fields: tuple[str, ...], sampler: Sampler, supply: Supply | None
) -> list[Blocking]:
    """Every reason that holds rows back from `task`, those of the fields first. No supply: a field is unknown."""
    unknown = [
        Blocking("field-unknown", partition.rows.live_count, field=f) for f in fields if f not in partition.fields
    ]
    found = [*unknown, *_not_produced(partition, fields), *_held(partition, partition.tasks.get(task))]
    if supply is not None and supply.where is not None:
        found += _filtered(partition, task, supply)
    found += sampler.blocking(partition, supply) + _clearing(partition, partition.tasks.get(task))
    return found + _exhausted(partition, partition.tasks.get(task))


def _not_produced(partition: Partition, fields: tuple[str, ...]) -> list[Blocking]:
    out = []
    for field in (partition.fields[name] for name in fields if name in partition.fields):
        count = partition.rows.live_count - partition.grid.produced_live(field)
        if count:
            out.append(Blocking("not-produced", count, _first(partition, _lacks(partition, field)), field=field.name))
    return out


def _lacks(partition: Partition, field: Field) -> Callable[[Ints], Flags]:
    return lambda rows: bit_column(partition.grid.status.gather(rows), field.bit) == 0


def _first(partition: Partition, wanted: Callable[[Ints], Flags]) -> tuple[int, ...]:
    """The first few live indexes that are `wanted`, looked for in chunks."""
    found: list[int] = []
    last = -1
    while len(found) < EXAMPLES:
        rows = partition.rows.after(last, CHUNK)
        if not len(rows):
            break
        found += partition.rows.global_index[rows[wanted(rows)][:EXAMPLES]].tolist()
        last = int(partition.rows.global_index[rows[-1]])
    return tuple(found[:EXAMPLES])


def _held(partition: Partition, task: Task | None) -> list[Blocking]:
    """Rows that the task has consumed, has out on lease or set aside, or will not get again."""
    if task is None:
        return []
    counts = (
        ("consumed", (CONSUMED,), task.consumed_live),
        ("leased", (HELD, LEASED), task.leased),
        ("dead", (DEAD,), task.dead),
    )
    return [_in_states(partition, task, *one) for one in counts if one[2]]


def _in_states(partition: Partition, task: Task, reason: str, states: tuple[int, ...], count: int) -> Blocking:
    every = slice(0, partition.rows.n)
    rows = np.flatnonzero(np.isin(task.state[every], states) & partition.rows.is_live(every))[:EXAMPLES]
    return Blocking(reason, count, tuple(partition.rows.global_index[rows].tolist()))


def _clearing(partition: Partition, task: Task | None) -> list[Blocking]:
    """Rows that an abort of their clear would bring back, and that the task has not consumed."""
    if not partition.rows.clearing_count:
        return []
    rows = partition.rows.clearing()
    if task is not None:
        rows = rows[task.state[rows] != CONSUMED]
    examples = partition.rows.global_index[rows[:EXAMPLES]].tolist()
    return [Blocking("clearing", len(rows), tuple(examples))] if len(rows) else []


def _filtered(partition: Partition, task: str, supply: Supply) -> list[Blocking]:
    """Rows that the task could take, now or once they are produced, if they passed `where`."""
    rows = np.flatnonzero(supply.fails(partition.free(task, slice(0, partition.rows.n))))
    examples = tuple(partition.rows.global_index[rows[:EXAMPLES]].tolist())
    return [Blocking("filtered", len(rows), examples)] if len(rows) else []


def _exhausted(partition: Partition, task: Task | None) -> list[Blocking]:
    taken = task.settled + task.leased if task else 0
    return [Blocking("exhausted", 0)] if taken == partition.rows.live_count else []
