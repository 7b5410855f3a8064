"""Removing samples at once; the two-step clears, which wait for the bytes to go first, are another operation."""

from ..arrays import pack
from ..engine import Engine
from ..errors import Invalid
from ..events import Cleared
from ..selection import SELECTORS, Selector, to_remove
from ..where import Where


def delete(
    engine: Engine, partition_id: str, selector: Selector, where: Where | None = None
) -> tuple[int, int, list[int]]:
    """(rows removed, partition revision, indexes left alone because they are clearing), of rows that pass `where`.

    Unknown ones are skipped; an absent partition has none. Raises PartitionCleared.
    """
    if selector.is_absent:
        raise Invalid.at("body", f"give {SELECTORS}: what to delete must be named")
    partition = engine.find(partition_id)
    if partition is None:
        return 0, 0, []
    rows, clearing = to_remove(partition, selector, where)
    if len(rows):
        engine.commit(Cleared(partition_id, pack(partition.rows.global_index[rows])))
    return len(rows), partition.revision, clearing.tolist()
