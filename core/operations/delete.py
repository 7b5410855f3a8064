"""Removes samples at once. Clears, which wait until the bytes are deleted, are in core/operations/clears.py."""

from core.arrays import pack
from core.engine import Engine
from core.errors import Invalid
from core.events import Cleared
from core.reading.selectors import SELECTORS, Selector, to_remove
from core.state.where import Where


def delete(
    engine: Engine, partition_id: str, selector: Selector, where: Where | None = None
) -> tuple[int, int, list[int]]:
    """Remove the selected rows that pass `where`. Unknown rows are skipped, also those of an absent partition.

    Returns (rows removed, partition revision, indexes skipped because they are clearing). Raises PartitionCleared.
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
