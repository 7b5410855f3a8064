"""Removing samples at once; the two-step clears, which wait for the bytes to go first, are another operation."""

from ..arrays import pack
from ..engine import Engine
from ..errors import Invalid
from ..events import Cleared
from ..selection import SELECTORS, Selector, to_remove


def delete(engine: Engine, partition_id: str, selector: Selector) -> tuple[int, int, list[int]]:
    """(rows removed, partition revision, indexes left alone because they are clearing). Raises PartitionCleared.

    Unknown ones are skipped; an absent partition has none.
    """
    if selector.is_absent:
        raise Invalid.at("body", f"give {SELECTORS}: what to delete must be named")
    partition = engine.find(partition_id)
    if partition is None:
        return 0, 0, []
    rows, clearing = to_remove(partition, selector, None)
    if len(rows):
        engine.commit(Cleared(partition_id, pack(partition.rows.global_index[rows])))
    return len(rows), partition.revision, clearing.tolist()
