"""Removes samples at once. Clears, which wait until the bytes are deleted, are in core/operations/clears.py."""

from core.arrays import Ints, pack
from core.engine import Engine
from core.errors import Invalid
from core.events import Cleared
from core.reading.selectors import SELECTORS, Selector, to_remove
from core.slices import Sliced, after
from core.state.where import Where

Removed = tuple[int, int, list[int]]


def delete(
    engine: Engine, partition_id: str, selector: Selector, where: Where | None = None
) -> Removed | Sliced[Removed]:
    """Remove the selected rows that pass `where`. Unknown rows are skipped, also those of an absent partition.

    Returns (rows removed, partition revision, indexes skipped because they are clearing). Raises PartitionCleared.
    """
    if selector.is_absent:
        raise Invalid.at("body", f"give {SELECTORS}: what to delete must be named")
    if engine.find(partition_id) is None:
        return 0, 0, []
    found = to_remove(engine, partition_id, selector, where)
    return after(found, lambda found: _delete(engine, partition_id, *found))


def _delete(engine: Engine, partition_id: str, rows: Ints, clearing: Ints) -> Removed:
    partition = engine.partitions[partition_id]
    if len(rows):
        engine.commit(Cleared(partition_id, pack(partition.rows.global_index[rows])))
    return len(rows), partition.revision, clearing.tolist()
