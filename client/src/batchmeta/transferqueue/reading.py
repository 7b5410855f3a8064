"""Calls of TransferQueue's client that look rows up: by key, or all of a partition; and the keys of indexes."""

from collections.abc import Sequence
from typing import Any

from transfer_queue.metadata import BatchMeta as TheirBatch
from transfer_queue.storage.managers.simple_storage_manager import AsyncSimpleStorageManager

from ..batch import BatchMeta
from ..errors import PartitionCleared, PartitionNotFound
from ..wire.requests import Include
from .batches import common_fields, made, members
from .intents import KV, KvClear, KvGet, KvPut
from .planning import plan_keys
from .service import EVERYTHING, PLAIN, Service

_NAMES: tuple[Include, ...] = ("custom_meta", "field_status")
GONE = (PartitionNotFound, PartitionCleared)


async def kv_retrieve_meta(
    client: Any,
    service: Service,
    keys: list[str] | str,
    partition_id: str,
    create: bool = False,
) -> Any:
    """The rows of these keys, with the fields that all of them have; `create` makes those that are not there."""
    named, intent = checked_keys(keys), KV.get()
    if create:
        put = intent if isinstance(intent, KvPut) else None
        return await _created(service, named, partition_id, put, told(client))
    if isinstance(intent, KvClear):
        return await _planned(service, named, partition_id, intent)
    fields = intent.fields if isinstance(intent, KvGet) else None
    try:
        batch = await service.client.read(
            service.partition(partition_id), fields=fields, keys=named, include=told(client), compact=True
        )
    except GONE:
        return TheirBatch.empty()
    return found(batch, partition_id, fields)


async def kv_retrieve_keys(
    client: Any,
    service: Service,
    global_indexes: list[int] | int,
    partition_id: str,
) -> list[str]:
    """The key of each index. RuntimeError if one has none."""
    asked = checked_indexes(global_indexes)
    try:
        keys = await service.client.lookup_keys(service.partition(partition_id), asked)
    except GONE as error:
        raise RuntimeError(f"partition {partition_id} has no keys: it is not there") from error
    without = [index for index, key in zip(asked, keys, strict=True) if key is None]
    if without:
        raise RuntimeError(f"Some global_indexes have no corresponding keys: {without[:20]}")
    return [key for key in keys if key is not None]


async def partition_meta(
    client: Any,
    service: Service,
    partition_id: str,
) -> Any:
    """All rows with all fields; None where there is no such partition."""
    try:
        return await read_all(service, partition_id, None)
    except GONE:
        return None


async def read_all(service: Service, partition_id: str, fields: Sequence[str] | None) -> Any:
    """All rows of a partition with the fields asked for that it knows, ready or not."""
    batch = await service.client.read(
        service.partition(partition_id),
        fields=fields,
        include=EVERYTHING[:-1],
        compact=True,
    )
    return made(TheirBatch, members(batch, partition_id, batch.fields, batch.production_status.to_list()))


def told(client: Any) -> tuple[Include, ...]:
    """The parts of batch meta that its storage manager needs: SimpleStorage records nothing."""
    return PLAIN if isinstance(getattr(client, "storage_manager", None), AsyncSimpleStorageManager) else EVERYTHING


def found(batch: BatchMeta, partition_id: str, asked: Sequence[str] | None) -> Any:
    """TransferQueue's batch of rows that were looked up: its fields are those that all rows have.

    It is ready when there is a field, and when no field that was asked for is missing.
    """
    if not len(batch):
        return TheirBatch.empty()
    fields = common_fields(batch)
    is_ready = bool(fields) and (asked is None or set(asked) <= set(fields))
    return made(TheirBatch, members(batch, partition_id, fields, [int(is_ready)] * len(batch)))


def checked_keys(keys: Any) -> list[str]:
    """A list of at least one text, with TransferQueue's own errors."""
    if isinstance(keys, str):
        return [keys]
    if not isinstance(keys, list):
        raise TypeError("Only string or list of strings are allowed as `keys`.")
    if not keys:
        raise ValueError("Received an empty list as keys.")
    if not all(isinstance(key, str) for key in keys):
        raise TypeError("Not all elements in `keys` are strings.")
    return keys


def checked_indexes(global_indexes: Any) -> list[int]:
    """A list of at least one whole number, with TransferQueue's own errors."""
    if isinstance(global_indexes, int):
        return [global_indexes]
    if not isinstance(global_indexes, list):
        raise TypeError("Only int or list of int are allowed as `global_indexes`.")
    if not global_indexes:
        raise ValueError("Received an empty list as `global_indexes`.")
    if not all(isinstance(index, int) for index in global_indexes):
        raise TypeError("Not all elements in `global_indexes` are int.")
    return global_indexes


async def _created(
    service: Service, keys: list[str], partition_id: str, intent: KvPut | None, include: tuple[Include, ...]
) -> Any:
    partition = service.partition(partition_id)
    if intent is None:
        return found(await service.insert(partition, keys=keys, include=include), partition_id, None)
    intent.check(len(keys))
    if intent.fields is None:
        batch = await service.insert(partition, keys=keys, tags=intent.column, include=_NAMES)
        intent.is_sent = True
    else:
        is_known = service.fields.knows(partition, intent.fields)
        batch = await service.insert(partition, keys=keys, include=_NAMES if is_known else PLAIN)
        if not is_known:
            service.fields.learn(partition, batch.field_schema)
    # Of this batch only indexes, names of fields and tags are looked at.
    fields = common_fields(batch)
    return made(TheirBatch, members(batch, partition_id, (), [0] * len(batch), absent=fields))


async def _planned(service: Service, keys: list[str], partition_id: str, intent: KvClear) -> Any:
    """Plans the clear at once; the batch says no more than that there is something to clear."""
    for plan in await plan_keys(service, service.partition(partition_id), keys):
        if plan.count:
            intent.plans.append(plan)
        else:  # nobody will come back to it
            await service.client.commit_clear(plan.clear_id)
    rows = [index for plan in intent.plans for index in plan.global_indexes]
    return TheirBatch(global_indexes=rows, partition_ids=[partition_id] * len(rows))
