"""What a process of the crew works with: its client, its storage, its tallies, and the bars it moves.

It has what all roles do: write (bytes first, then the service), and take batches and then their bytes.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from batchmeta import AsyncClient, BatchMeta, Const
from batchmeta.wire.requests import Include

from .account import Tally, note
from .storage import Storage, cell_name
from .values import Columns, DamagedValue, Row, Value, pack, storage_class, unpack

WAIT_S = 10
INCLUDE: tuple[Include, ...] = ("keys", "group_ids", "field_schema", "custom_meta", "backend_meta")


@dataclass(frozen=True, slots=True)
class Sample:
    """One row to write: its key, its group, the value of each field and its custom meta."""

    key: str
    group_id: str
    values: Row
    custom_meta: Row


@dataclass(slots=True)
class Desk:
    """One per process. `advance(bar, n)` tells the driver that a bar moved by n. `fixed_shape`: see Place."""

    client: AsyncClient
    storage: Storage
    advance: Callable[[str, int], None]
    fixed_shape: frozenset[str] = frozenset()
    tallies: dict[str, Tally] = field(default_factory=dict)

    def tally(self, task: str) -> Tally:
        return self.tallies.setdefault(task, Tally(task))


@dataclass(frozen=True, slots=True)
class Want:
    """What a consumer asks for: between `least` and `most` rows for which all `fields` are produced, and `where`."""

    partition: str
    fields: tuple[str, ...]
    least: int
    most: int
    sampler: dict[str, Any] | None = None
    where: tuple[dict[str, Any], ...] | None = None


def field_schema(columns: Columns, fixed_shape: frozenset[str]) -> dict[str, dict[str, Any]]:
    """The field schema of `columns`: for each field one value per row."""
    return {name: _schema(values, name in fixed_shape) for name, values in columns.items()}


def _schema(values: list[Value], has_fixed_shape: bool) -> dict[str, Any]:
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if not arrays:
        return {"kind": "object"}
    dtype = arrays[0].dtype.name
    if has_fixed_shape:
        return {"dtype": dtype, "shape": list(arrays[0].shape)}
    return {"dtype": dtype, "lengths": [len(array) for array in arrays]}


def store(desk: Desk, tally: Tally, indexes: Sequence[int], columns: Columns) -> dict[str, Const[str]]:
    """Put the bytes of `columns` into storage. The backend meta of the cells: per field one constant."""
    cells = {
        cell_name(index, name): pack(value)
        for name, values in columns.items()
        for index, value in zip(indexes, values, strict=True)
    }
    desk.storage.put(cells)
    tally.stored.extend(cells)
    tally.bytes_moved += sum(map(len, cells.values()))
    return {name: Const(storage_class(values[0])) for name, values in columns.items()}


async def write(desk: Desk, tally: Tally, partition: str, samples: Sequence[Sample]) -> list[int]:
    """Insert the keys to learn their indexes, store the bytes under them, then produce. The indexes, in order."""
    keys = [sample.key for sample in samples]
    group_ids = [sample.group_id for sample in samples]
    inserted = await tally.call(desk.client.insert(partition, keys=keys, group_ids=group_ids))
    indexes = list(inserted.global_indexes)
    columns = {name: [sample.values[name] for sample in samples] for name in samples[0].values}
    await tally.call(
        desk.client.produce(
            partition,
            field_schema(columns, desk.fixed_shape),
            keys=keys,
            create=True,
            backend_meta=store(desk, tally, indexes, columns),
            custom_meta=[sample.custom_meta for sample in samples],
            group_ids=group_ids,
        )
    )
    note(tally.put, partition, indexes)
    return indexes


async def add(desk: Desk, tally: Tally, batch: BatchMeta, columns: Columns) -> None:
    """Store and produce more fields for the rows of a batch."""
    indexes = list(batch.global_indexes)
    cells = store(desk, tally, indexes, columns)
    schema = field_schema(columns, desk.fixed_shape)
    await tally.call(desk.client.produce(batch.partition_id, schema, global_indexes=indexes, backend_meta=cells))


async def batches(desk: Desk, tally: Tally, want: Want) -> AsyncIterator[BatchMeta]:
    """Claim batch after batch for the tally's task, until the service says that there is no more to come.

    A row that comes again ends it too: that might go on for ever, and the account will name the row.
    """
    seen: set[int] = set()
    while True:
        claimed = await tally.call(
            desk.client.claim(
                want.partition,
                tally.task,
                want.fields,
                want.most,
                min_batch_size=want.least,
                wait_s=WAIT_S,
                sampler=want.sampler,
                where=want.where,
                include=INCLUDE,
            )
        )
        if claimed:
            indexes = claimed.batch.global_indexes
            note(tally.consumed, want.partition, indexes)
            if not seen.isdisjoint(indexes):
                return
            seen.update(indexes)
            yield claimed.batch
        elif claimed.done:
            return


def fetch(desk: Desk, tally: Tally, batch: BatchMeta, fields: Sequence[str]) -> Columns:
    """The values of `fields` for every row, found through the batch meta alone. Raises DamagedValue, MissingBytes."""
    names = [cell_name(index, name) for name in fields for index in batch.global_indexes]
    cells = [cell for name in fields for cell in (batch.backend_meta or {})[name]]
    blobs = desk.storage.get(names)
    tally.checked += len(blobs)
    tally.bytes_moved += sum(map(len, blobs))
    values = [unpack(blob, cell) for blob, cell in zip(blobs, cells, strict=True)]
    columns = {name: values[at * len(batch) : (at + 1) * len(batch)] for at, name in enumerate(fields)}
    for name, column in columns.items():
        _check_schema(batch, name, column)
    return columns


def _check_schema(batch: BatchMeta, name: str, values: list[Value]) -> None:
    told = (batch.field_schema or {})[name]
    for row, value in enumerate(values):
        held = (value.dtype.name, value.shape) if isinstance(value, np.ndarray) else (None, None)
        if held != (told.dtype, told.shape_of(row)):
            raise DamagedValue(f"{name} of sample {batch.global_indexes[row]}: schema {told}, bytes {held}")
