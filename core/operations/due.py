"""What ends by itself once its time is up: leases, and rows inserted for a time. The one place that knows them all."""

import numpy as np

from core.arrays import pack
from core.engine import Engine
from core.events import Expired
from core.state.partition import Partition

from . import leases


def next_due(engine: Engine) -> float | None:
    """When something ends, if nothing comes between; the engine clock's seconds."""
    times = (engine.leases.due(), engine.ttl_deadlines.next())
    return min((time for time in times if time is not None), default=None)


def expire(engine: Engine, now: float) -> None:
    """End what is due: each lease as a change of its own, of each partition all rows at once."""
    leases.expire(engine, now)
    due: dict[str, list[int]] = {}
    while (batch := engine.ttl_deadlines.take(now)) is not None:
        due.setdefault(batch[0], []).append(batch[1])
    for name, numbers in due.items():
        _expire_rows(engine, engine.partitions[name], numbers, now)


def _expire_rows(engine: Engine, partition: Partition, numbers: list[int], now: float) -> None:
    rows = np.sort(np.concatenate([partition.ttls.rows_of(number, partition.rows) for number in numbers]))
    if len(rows):
        engine.commit(Expired(partition.partition_id, pack(partition.rows.global_index[rows])))
    for number in numbers:
        batch = partition.ttls.batches.get(number)
        if batch is not None:  # its other rows are clearing: should they come back, they have their time anew
            engine.ttl_deadlines.put((partition.partition_id, number), now + batch.length_s)


def begin_anew(engine: Engine) -> None:
    """After a restart: all that is alive has its full length again, counted from the end of the replay."""
    now = engine.clock()
    for lease in engine.leases.open.values():
        engine.leases.extend(lease, lease.length_s, now)
    for partition in engine.partitions.values():
        for number, batch in partition.ttls.batches.items():
            engine.ttl_deadlines.put((partition.partition_id, number), now + batch.length_s)
