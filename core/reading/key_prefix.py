"""Finds rows by the prefix of their keys, in slices: rows are looked at in index order, a part of them in each step.

A row keeps its key, and new rows come after all others. So what was found in earlier steps is right at the last one,
but for rows that left: the answer is that of one moment, the last step.
"""

import numpy as np

from core.arrays import Ints
from core.engine import Engine
from core.slices import Sliced
from core.state.cells.json_cells import json_values
from core.state.partition import Partition

ROWS = 32_768  # that are looked at in one step
NONE: Ints = np.empty(0, np.int64)


def with_prefix(
    engine: Engine, partition_id: str, prefix: str, beyond: int = -1, most: int | None = None
) -> Sliced[tuple[Partition, Ints]]:
    """The partition, and the indexes of rows beyond `beyond`, live or clearing, whose key has the prefix, in order.

    `most`: no more are looked for once so many of them are live. Raises PartitionNotFound, PartitionCleared.
    """
    start = json_values([prefix])[0][:-1]
    partition, found, last = engine.get(partition_id), NONE, beyond
    while True:
        rows = partition.rows.held_after(last, ROWS)
        found = np.concatenate([found, _having(partition, rows, start)])
        if len(rows) < ROWS or (most is not None and np.count_nonzero(partition.rows.locate(found)) >= most):
            return partition, found
        last = int(partition.rows.global_index[rows[-1]])
        yield
        if engine.get(partition_id) is not partition:  # another one of the name
            partition, found, last = engine.get(partition_id), NONE, beyond


def _having(partition: Partition, rows: Ints, start: bytes) -> Ints:
    keys = partition.keys_of(rows)
    return np.asarray(partition.rows.global_index[rows[[at for at, key in enumerate(keys) if key.startswith(start)]]])
