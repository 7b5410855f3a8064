"""Ends what has a deadline: leases, and rows inserted with a time limit. All such things are listed here."""

import numpy as np

from core.arrays import pack
from core.engine import Engine
from core.events import Expired
from core.state.partition import Partition

from . import leases

ROWS = 32_768  # with a time limit that is up, and the rest of the rows of their insert: they end at once


def next_due(engine: Engine) -> float | None:
    """The nearest deadline, in the engine clock's seconds; None without one."""
    times = (engine.leases.due(), engine.ttl_deadlines.next())
    return min((time for time in times if time is not None), default=None)


def expire(engine: Engine, now: float) -> None:
    """End what is due: one change for the leases, and one for the rows of each partition.

    What is more than leases.AT_ONCE or ROWS ends when this is called again, and is due until then.
    """
    nearest = next_due(engine)
    if nearest is None or nearest > now:
        return
    leases.expire(engine, now)
    due: dict[str, list[int]] = {}
    rows = 0
    while rows < ROWS and (batch := engine.ttl_deadlines.take(now)) is not None:
        due.setdefault(batch[0], []).append(batch[1])
        rows += engine.partitions[batch[0]].ttls.batches[batch[1]].left
    for name, numbers in due.items():
        _expire_rows(engine, engine.partitions[name], numbers, now)


def _expire_rows(engine: Engine, partition: Partition, numbers: list[int], now: float) -> None:
    rows = np.sort(np.concatenate([partition.ttls.rows_of(number, partition.rows) for number in numbers]))
    if len(rows):
        engine.commit(Expired(partition.partition_id, pack(partition.rows.global_index[rows])))
    for number in numbers:
        batch = partition.ttls.batches.get(number)
        if batch is not None:  # its other rows are clearing: if they come back, their time limit starts again
            engine.ttl_deadlines.put((partition.partition_id, number), now + batch.length_s)


def begin_anew(engine: Engine) -> None:
    """After a replay or a restore: start every lease and time limit again, with its full length."""
    now = engine.clock()
    for lease in engine.leases.open.values():
        engine.leases.extend(lease, lease.length_s, now)
    for partition in engine.partitions.values():
        for number, batch in partition.ttls.batches.items():
            engine.ttl_deadlines.put((partition.partition_id, number), now + batch.length_s)
