"""Calls of TransferQueue that write: reports of data, tags, and what surrounds a put.

A put reports data, schema, what the storage backend recorded and the tags in one call, so that nobody sees a ready row
without its tags.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ..columns import Column, Const
from ..errors import PartitionCleared, SampleClearing
from ..schema import FieldSchema
from .clearing import by_partition, delete_bytes
from .errors import FieldConflict, LateWrite
from .intents import DATA, KV, DataPut, KvPut, putting, tag_column
from .names import check_fields
from .schemas import conflicts, is_known, own_schema, part, wire_schema
from .service import UPDATE, Service

Meta = Mapping[int, Mapping[str, Any]]


async def put(
    theirs: Callable[..., Awaitable[Any]],
    client: Any,
    service: Service,
    data: Any,
    metadata: Any = None,
    partition_id: str | None = None,
    data_parser: Any = None,
) -> Any:
    """TransferQueue's own `async_put`, with the tags at hand for the report that the storage manager makes.

    What the service would refuse once the bytes are written is refused before, as far as it is known here: names of
    fields, tags that are no JSON, another dtype, rank or kind (FieldConflict).
    """
    check_fields(data.keys())
    await _check_schemas(service, data, metadata)
    with putting(_data_put(metadata)):
        return await theirs(client, data, metadata, partition_id, data_parser=data_parser)


async def notify_data_update(
    manager: Any,
    service: Service,
    partition_id: str,
    global_indexes: list[int],
    field_schema: dict[str, dict[str, Any]],
    custom_backend_meta: dict[int, dict[str, Any]] | None = None,
) -> None:
    """The bytes of these fields are with the backend. LateWrite if rows are gone; their bytes are deleted again."""
    report = Report(manager, service, global_indexes, field_schema, custom_backend_meta)
    for partition, rows in report.partitions(partition_id).items():
        await report.send(partition, rows)


async def set_custom_meta(
    client: Any,
    service: Service,
    metadata: Any,
) -> None:
    """The tags of a batch, those aside that went with the put that this is a part of."""
    data, intent = DATA.get(), KV.get()
    if isinstance(intent, KvPut) and (intent.is_sent or not intent.tags):
        return
    told = set() if data is None else data.reported
    tags = dict(zip(metadata.global_indexes, metadata.custom_meta, strict=True))
    for partition, rows in by_partition(metadata).items():
        there = [row for row in rows if tags[row] and row not in told]
        if there:
            await service.update_tags(service.partition(partition), there, [tags[row] for row in there])


class Report:
    """What one report says, for all or some of its rows."""

    def __init__(
        self,
        manager: Any,
        service: Service,
        global_indexes: Sequence[int],
        schema: Mapping[str, Mapping[str, Any]],
        backend: Meta | None,
    ) -> None:
        self._manager, self._service, self._data = manager, service, DATA.get() or DataPut()
        self._indexes, self._schema, self._backend = global_indexes, schema, backend

    def partitions(self, partition_id: str) -> dict[str, list[int]]:
        """The rows by their own partitions, where the put names several."""
        own = self._data.partitions
        if own is None:
            return {partition_id: list(self._indexes)}
        grouped: dict[str, list[int]] = {}
        for row in self._indexes:
            grouped.setdefault(own.get(row, partition_id), []).append(row)
        return grouped

    async def send(self, partition: str, rows: list[int]) -> None:
        """Report rows of one partition. LateWrite for those that are gone; the others are reported."""
        try:
            gone = await self._produced(partition, rows)
        except PartitionCleared:
            gone = rows
        except SampleClearing as problem:
            gone = [row for row in rows if row in set(problem.global_indexes)] or rows
            left = [row for row in rows if row not in set(gone)]
            if left:  # the service refused all of them
                await self.send(partition, left)
        if gone:
            await delete_bytes(self._manager, partition, gone, list(self._schema), self._backend)
            raise LateWrite(_late(partition, gone, rows), tuple(gone))
        self._data.reported.update(rows)

    async def _produced(self, partition: str, rows: list[int]) -> list[int]:
        produced = await self._service.client.produce(
            self._service.partition(partition),
            {name: wire_schema(part(theirs, self._indexes, rows), rows) for name, theirs in self._schema.items()},
            global_indexes=rows,
            backend_meta=_backend_columns(self._backend, list(self._schema), rows),
            custom_meta=self._data.tags_of(rows),
            custom_meta_mode=UPDATE,
            on_cleared="skip",
        )
        return [int(row) for row in produced.skipped]


async def _check_schemas(service: Service, data: Any, metadata: Any) -> None:
    if metadata is None or not metadata.size:
        return
    partition = service.partition(metadata.partition_ids[0])
    if conflicts(data, {**service.fields.of(partition), **_known(metadata)}) is None:
        return
    # What is known here may be old: fields are forgotten with their last row, and come back different.
    batch = await service.client.read(partition, keys=(), include=("field_schema",))
    service.fields.learn(partition, batch.field_schema)
    said = conflicts(data, service.fields.of(partition))
    if said is not None:
        raise FieldConflict(f"{said}: write it under another name, or convert it. Nothing was written")


def _known(metadata: Any) -> dict[str, FieldSchema]:
    """What a batch of TransferQueue's tells of its fields; one that nobody has written yet tells nothing."""
    theirs = {} if metadata is None else metadata.field_schema
    return {name: own_schema(schema) for name, schema in theirs.items() if is_known(schema)}


def _data_put(metadata: Any) -> DataPut:
    if metadata is None:
        return DataPut()
    intent = KV.get()
    tags = intent.column if isinstance(intent, KvPut) else _changed_tags(metadata)
    several = len(set(metadata.partition_ids)) > 1
    return DataPut(
        global_indexes=metadata.global_indexes,
        tags=tags,
        partitions=dict(zip(metadata.global_indexes, metadata.partition_ids, strict=True)) if several else None,
    )


def _changed_tags(metadata: Any) -> Column[Any] | None:
    return tag_column(metadata.custom_meta) if any(metadata.custom_meta) else None


def _backend_columns(
    backend: Meta | None, fields: Sequence[str], rows: Sequence[int]
) -> dict[str, Sequence[Any]] | None:
    """Per field a column of what the backend recorded. A text or nothing that all rows have becomes one constant."""
    if not backend:
        return None
    found = [backend.get(row, {}) for row in rows]
    columns: dict[str, Sequence[Any]] = {}
    for name in fields:
        cells = [cells.get(name) for cells in found]
        first = cells[0]
        is_same = (first is None or type(first) is str) and cells.count(first) == len(cells)
        columns[name] = Const(first, len(cells)) if is_same else cells
    return columns


def _late(partition: str, gone: Sequence[int], rows: Sequence[int]) -> str:
    others = "" if len(gone) == len(rows) else f"; the other {len(rows) - len(gone)} are written"
    return (
        f"{len(gone)} of {len(rows)} samples of {partition} were cleared before their data was written: "
        f"{list(gone[:20])}. Their bytes are deleted again{others}"
    )
