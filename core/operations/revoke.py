"""Revokes production: cells whose bytes the backend lost are not ready until they are produced again."""

from core.arrays import Ints, pack
from core.engine import Engine
from core.errors import FieldNotFound, Invalid
from core.events import Revoked
from core.names import check_fields
from core.reading.selectors import SELECTORS, Selector, to_remove
from core.slices import Sliced, after
from core.state.cells.fields import Field
from core.state.cells.readiness import count_bits
from core.state.partition import Partition, known

Lost = tuple[int, int]


def revoke(engine: Engine, partition_id: str, selector: Selector, names: tuple[str, ...]) -> Lost | Sliced[Lost]:
    """(cells that were ready and are revoked now, partition revision). Rows that are not held are skipped.

    Raises PartitionNotFound, PartitionCleared, FieldNotFound.
    """
    check_fields(names, "body.fields")
    if selector.is_absent:
        raise Invalid.at("body", f"give {SELECTORS}: which samples lost their bytes must be named")
    _fields(engine.get(partition_id), names)
    return after(
        to_remove(engine, partition_id, selector, None), lambda found: _revoke(engine, partition_id, found[0], names)
    )


def _fields(partition: Partition, names: tuple[str, ...]) -> list[Field]:
    fields, missing = known(partition, names)
    if missing:
        raise FieldNotFound(fields=missing)
    return fields


def _revoke(engine: Engine, partition_id: str, rows: Ints, names: tuple[str, ...]) -> Lost:
    partition = engine.partitions[partition_id]
    fields = _fields(partition, names)
    cells = partition.grid.status.gather(rows) & partition.mask(fields)
    lost = rows[cells.any(1)]
    if len(lost):
        indexes = pack(partition.rows.global_index[lost])
        engine.commit(Revoked(partition_id, indexes, [field.name for field in fields]))
    return int(count_bits(cells).sum()), partition.revision
