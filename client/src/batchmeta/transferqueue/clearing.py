"""Clears: the service hides the rows, the storage backend deletes their bytes, and the rows are gone for good.

What is deleted is what the service knows was written, whatever the caller's batch says. Where the backend fails, the
rows stay hidden and the clear pending: it is finished with a later clear, when the client closes, or by
`finish_clears`.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from transfer_queue.metadata import BatchMeta as TheirBatch
from transfer_queue.storage.managers.simple_storage_manager import AsyncSimpleStorageManager

from ..columns import Column, Const
from ..errors import ClearClosed, ClearNotFound, PartitionCleared, PartitionNotFound
from ..values import Clear
from .batches import backend_rows
from .intents import KV, KvClear
from .names import theirs_of
from .planning import plan_all, plan_rows
from .schemas import placeholder
from .service import Service

_log = logging.getLogger("batchmeta.transferqueue")


async def clear_samples(client: Any, service: Service, metadata: Any) -> None:
    """Clear these rows and their bytes. Rows that are not there are left out."""
    manager = manager_of(client)
    intent = KV.get()
    if isinstance(intent, KvClear):
        plans = intent.plans
    else:
        plans = []
        for partition, rows in by_partition(metadata).items():
            plans += await plan_rows(service, service.partition(partition), rows)
    await finish(service, manager, plans)


async def clear_partition(client: Any, service: Service, partition_id: str) -> None:
    """Clear all rows and their bytes, and delete the partition, which stays where bytes could not be deleted.

    Nothing where there is no such partition.
    """
    manager, partition = manager_of(client), service.partition(partition_id)
    try:
        plans = await plan_all(service, partition)
    except (PartitionNotFound, PartitionCleared):
        _log.warning("there is no partition %s to clear", partition_id)
        return
    if await finish(service, manager, plans):
        await service.client.delete_partition(partition)
        service.forget(partition)


async def finish(service: Service, manager: Any, plans: Iterable[Clear]) -> bool:
    """Delete the bytes of these clears, and of those left over from before, and commit them. True if all are."""
    await _finish_left(service, manager)
    done = [await _finished(service, manager, plan) for plan in plans]
    return all(done)


async def finish_job(service: Service, manager: Any) -> int:
    """Finish every pending clear of the job, whoever planned it; how many were finished."""
    pending = await service.pending_clears()
    done = [await _finished(service, manager, await service.client.seen_clear(line.clear_id)) for line in pending]
    return sum(done)


async def delete_bytes(manager: Any, partition: str, rows: Sequence[int], fields: Sequence[str], meta: Any) -> None:
    """Delete bytes that no row of the service has. `meta`: per index and field, what the backend recorded."""
    if isinstance(manager, AsyncSimpleStorageManager):
        await _delete_in_units(manager, list(rows))
        return
    backend = [{name: (meta or {}).get(row, {}).get(name) for name in fields} for row in rows]
    await _delete_batches(manager, [_their_batch(partition, list(rows), fields, backend)])


def by_partition(metadata: Any) -> dict[str, list[int]]:
    """Indexes of a batch of TransferQueue's by its partitions."""
    grouped: dict[str, list[int]] = {}
    for partition, row in zip(metadata.partition_ids, metadata.global_indexes, strict=True):
        grouped.setdefault(partition, []).append(row)
    return grouped


def manager_of(client: Any) -> Any:
    """The client's storage manager, with TransferQueue's own error where there is none."""
    manager = getattr(client, "storage_manager", None)
    if manager is None:
        raise RuntimeError(
            f"[{client.client_id}]: Storage manager not initialized. Call initialize_storage_manager() before "
            "performing storage operations."
        )
    return manager


async def _finished(service: Service, manager: Any, plan: Clear) -> bool:
    try:
        await _delete(manager, plan)
    except Exception as error:  # noqa: BLE001  # a storage backend may raise anything, and the clear must stay pending
        service.unfinished[plan.clear_id] = None
        _log.warning(
            "clear %s stays pending, its %d rows stay hidden: their bytes could not be deleted (%s: %s)",
            plan.clear_id, plan.count, type(error).__name__, error,
        )  # fmt: skip
        return False
    service.unfinished[plan.clear_id] = None  # until the commit is known to be made
    await _committed(service, plan.clear_id)
    service.unfinished.pop(plan.clear_id, None)
    return True


async def _finish_left(service: Service, manager: Any) -> None:
    for clear_id in list(service.unfinished):
        try:
            plan = await service.client.seen_clear(clear_id)
        except ClearNotFound:
            plan = None
        if plan is None or plan.state != "pending":
            service.unfinished.pop(clear_id, None)
        else:
            await _finished(service, manager, plan)


async def _committed(service: Service, clear_id: str) -> None:
    try:
        await service.client.commit_clear(clear_id)
    except (ClearNotFound, ClearClosed):  # its partition was deleted, or somebody else ended it
        _log.info("clear %s was ended by somebody else", clear_id)


async def _delete(manager: Any, plan: Clear) -> None:
    if isinstance(manager, AsyncSimpleStorageManager):
        await _delete_in_units(manager, plan.global_indexes)
    else:
        await _delete_batches(manager, batches_of(plan))


async def _delete_batches(manager: Any, batches: Sequence[Any]) -> None:
    for batch in batches:
        if batch.size and batch.field_names:
            await manager.clear_data(batch)


async def _delete_in_units(manager: Any, rows: list[int]) -> None:
    """As its `clear_data`, which keeps the errors of its units to itself."""
    groups = manager._group_by_hash(rows)  # noqa: SLF001  # the only way to see which unit failed
    calls = [
        manager._clear_single_storage_unit(group.global_indexes, target_storage_unit=unit)  # noqa: SLF001
        for unit, group in groups.items()
    ]
    results = await asyncio.gather(*calls, return_exceptions=True)
    failed = [result for result in results if isinstance(result, BaseException)]
    if failed:
        raise failed[0]


def batches_of(plan: Clear) -> list[Any]:
    """The rows of a plan as batches of TransferQueue's; the rows of one batch have the same fields."""
    partition = theirs_of(plan.partition_id)
    names = list(plan.fields)
    written = [plan.fields[name].written for name in names]
    if all(isinstance(column, Const) and column.value for column in written):
        groups = {tuple(names): list(range(len(plan.global_indexes)))}
    else:
        groups = _groups(names, written, len(plan.global_indexes))
    return [_part(plan, partition, fields, places) for fields, places in groups.items()]


def _groups(names: list[str], written: list[Column[int]], size: int) -> dict[tuple[str, ...], list[int]]:
    groups: dict[tuple[str, ...], list[int]] = {}
    cells = list(zip(*(column.to_list() for column in written), strict=True)) if names else [()] * size
    for place, row in enumerate(cells):
        there = tuple(name for name, cell in zip(names, row, strict=True) if cell)
        groups.setdefault(there, []).append(place)
    return groups


def _part(plan: Clear, partition: str, fields: Sequence[str], places: list[int]) -> Any:
    rows = [plan.global_indexes[place] for place in places]
    columns = {name: plan.fields[name].backend_meta for name in fields}
    backend = backend_rows(columns, fields, len(plan.global_indexes))
    return _their_batch(partition, rows, fields, [backend[place] for place in places])


def _their_batch(partition: str, rows: list[int], fields: Sequence[str], backend: list[dict[str, Any]]) -> Any:
    return TheirBatch(
        global_indexes=rows,
        partition_ids=[partition] * len(rows),
        field_schema={name: placeholder() for name in fields},
        _custom_backend_meta=backend,
    )
