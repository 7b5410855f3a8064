"""Writing: insert rows, produce fields, patch custom and backend meta. Each call is one change, or none."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.arrays import Ints, pack
from core.engine import Engine
from core.errors import FieldNotFound, Invalid, PartitionNotFound
from core.events import BackendMetaSet
from core.reading.batch import Batch, View
from core.reading.sliced_batch import described
from core.slices import Sliced, after
from core.state.cells.json_cells import Cells, Column, CustomMetaMode, to_list
from core.state.partition import Partition
from core.writing import runs
from core.writing.draft import Draft
from core.writing.forms import OneRow, fields_of
from core.writing.runs import Put
from core.writing.schemas import GroupIds, SchemaIn, backend_columns, group_cells


@dataclass(frozen=True, slots=True)
class Written:
    """The rows of a write, in the caller's order, and how many of them are new.

    `skipped`: the cleared ones, as the caller named them; None unless it asked to skip them.
    """

    partition_id: str
    revision: int
    global_indexes: Ints
    created: int
    skipped: list[int | str] | None = None


@dataclass(frozen=True, slots=True)
class RowWrite:
    """The rows that a write names, and what it sets besides fields. `ttl_s`: seconds until a field must be produced."""

    indexes: list[int] | None = None
    keys: list[str] | None = None
    group_ids: GroupIds | None = None
    custom_meta: Column | None = None
    ttl_s: float | None = None
    custom_meta_mode: CustomMetaMode = "merge"


def _row_parts(draft: Draft, write: RowWrite) -> None:
    if write.group_ids is not None:
        draft.group(to_list(draft.of_written(group_cells(write.group_ids, draft.named)), len(draft.rows)))
    if write.custom_meta is not None:
        cells = draft.engine.cells.column(write.custom_meta, draft.named, "body.custom_meta", 2, patch=True)
        draft.patch(draft.of_written(cells), write.custom_meta_mode)
    if write.ttl_s is not None:
        draft.time(write.ttl_s)


def insert(
    engine: Engine, partition_id: str, count: int | None, write: RowWrite, view: View
) -> tuple[Batch, int] | Sliced[tuple[Batch, int]]:
    """New rows, `count` of them or one per key; a key that exists keeps its index. (batch meta, rows created).

    Makes the partition if it is absent or deleted. Of many rows the batch meta is made in slices. Raises DuplicateKeys,
    GroupConflict, TooManySamples.
    """
    if (count is None) == (write.keys is None):
        raise Invalid.at("body", "give count or keys, one of them")
    draft = Draft(engine, partition_id, engine.partitions.get(partition_id))
    if write.keys is not None:
        draft.name(write.keys, create=True)
    elif count is not None:
        draft.add(count)
    _row_parts(draft, write)
    draft.commit()
    partition = engine.partitions[partition_id]
    made = described(partition, partition.rows.locate(draft.indexes), draft.indexes, view)
    return after(made, lambda batch: (batch, draft.created))


def produce(
    engine: Engine,
    partition_id: str,
    write: RowWrite,
    create: bool,
    field_schema: Mapping[str, SchemaIn] | OneRow,
    backend_meta: Mapping[str, Column],
    skip_cleared: bool = False,
) -> Written:
    """Rows, schema, ready bits, backend meta and custom meta in one step: no reader sees a ready row without its meta.

    Raises SampleNotFound, SampleCleared (unless those are skipped), SampleClearing, KeyNotFound, DuplicateKeys,
    DuplicateIndexes, GroupConflict, DtypeConflict, KindConflict, TooManySamples, PartitionNotFound, PartitionCleared.
    """
    put = _put(partition_id, write, field_schema) if create else None
    follows = None if put is None else runs.follow(engine, put)
    if follows is not None:
        revision, index = follows
        return Written(partition_id, revision, np.array([index], np.int64), 1, [] if skip_cleared else None)
    draft = Draft(engine, partition_id, _target(engine, partition_id, create and write.keys is not None))
    draft.choose(write.indexes, write.keys, create=create, skip=skip_cleared)
    fields = fields_of(engine, field_schema, backend_meta, draft.named)
    _row_parts(draft, write)
    if field_schema:
        draft.produce(fields)
    skipped = draft.skipped if skip_cleared else None
    written = Written(partition_id, draft.commit(), draft.indexes, draft.created, skipped)
    if put is not None and draft.is_all_new:
        runs.begin(engine, put.row.form, draft.events)
    return written


def _put(partition_id: str, write: RowWrite, schemas: Mapping[str, SchemaIn] | OneRow) -> Put | None:
    """The write as one that can be of a run; None where it cannot."""
    if not isinstance(schemas, OneRow) or write.keys is None or write.indexes is not None or write.ttl_s is not None:
        return None
    return Put(partition_id, write.keys, schemas, write.group_ids, write.custom_meta, write.custom_meta_mode)


def _target(engine: Engine, partition_id: str, create: bool) -> Partition | None:
    partition = engine.find(partition_id)
    if partition is None and not create:
        raise PartitionNotFound(
            f"there is no partition {partition_id!r}: make it with PUT or insert, or produce keys with create: true"
        )
    return partition


def patch_custom_meta(engine: Engine, partition_id: str, write: RowWrite, if_revision: int | None = None) -> Written:
    """Patch custom meta, only if no row changed after `if_revision`. Raises as `produce` does, PreconditionFailed."""
    draft = Draft(engine, partition_id, engine.get(partition_id))
    draft.choose(write.indexes, write.keys)
    if if_revision is not None:
        draft.require(if_revision)
    _row_parts(draft, write)
    return Written(partition_id, draft.commit(), draft.indexes, 0)


def patch_backend_meta(engine: Engine, partition_id: str, write: RowWrite, columns: Mapping[str, Column]) -> Written:
    """Set backend meta after the backend moved bytes; makes nothing ready. Raises FieldNotFound, or as `produce`."""
    partition = engine.get(partition_id)
    draft = Draft(engine, partition_id, partition)
    draft.choose(write.indexes, write.keys)
    unknown = [name for name in columns if name not in partition.fields]
    if unknown:
        raise FieldNotFound(fields=unknown)
    checked = backend_columns(engine.cells, columns, columns, len(draft.rows))
    stored = {name: partition.grid.cells_of(partition.fields[name], draft.rows) for name in checked}
    moved = {name: _moved(stored[name], cells) for name, cells in checked.items()}
    at = sorted(set().union(*moved.values()))
    if at:
        cells = {name: _cells_at(checked[name], at) for name, places in moved.items() if places}
        draft.events.append(BackendMetaSet(partition_id, pack(draft.indexes[at]), cells))
    return Written(partition_id, draft.commit(), draft.indexes, 0)


def _moved(stored: list[bytes], given: Cells) -> list[int]:
    """Positions of the rows whose cell would change."""
    return [i for i, (old, new) in enumerate(zip(stored, to_list(given, len(stored)), strict=True)) if old != new]


def _cells_at(cells: Cells, at: list[int]) -> Cells:
    return cells if isinstance(cells, bytes) else [cells[i] for i in at]
