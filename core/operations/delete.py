"""Removing samples at once; the two-step clears, which wait for the bytes to go first, are another operation."""

import numpy as np

from ..arrays import pack
from ..cells import json_values
from ..engine import Engine
from ..errors import Invalid
from ..events import Cleared
from ..selection import Selector


def delete(engine: Engine, partition_id: str, selector: Selector) -> tuple[int, int]:
    """(rows removed, partition revision). Unknown ones are skipped; an absent partition has none. PartitionCleared."""
    if selector.indexes is None and selector.keys is None:
        raise Invalid.at("body", "give global_indexes or keys: what to delete must be named")
    partition = engine.find(partition_id)
    if partition is None:
        return 0, 0
    if selector.keys is not None:
        found = partition.rows.find(json_values(list(selector.keys)))
        indexes = np.array([index for index in found if index is not None], np.int64)
    else:
        indexes = np.array(selector.indexes or (), np.int64)
    rows = np.unique(partition.rows.locate(indexes))
    rows = rows[rows > 0]
    if len(rows):
        engine.commit(Cleared(partition_id, pack(partition.rows.global_index[rows])))
    return len(rows), partition.revision
