"""How far a partition is: consumption and production status as tensors, resets, the list of partitions and of keys."""

import asyncio
from contextlib import suppress
from typing import Any

import torch

from .reading import GONE
from .service import Service
from .views import View

ABSENT = -1  # the index of a sample that a partition expects and does not have yet
Statuses = tuple[torch.Tensor | None, torch.Tensor | None]


async def get_consumption_status(
    client: Any,
    service: Service,
    task_name: str,
    partition_id: str,
) -> Statuses:
    """Indexes int64 [rows] and status int8 [rows]; both None where there is no such partition.

    Samples that are expected and not there yet have the index -1.
    """
    try:
        found = await service.client.consumption(service.partition(partition_id), service.task(task_name))
    except GONE:
        return None, None
    rows, status = found.global_indexes or [], found.consumption_status or []
    missing = found.total - len(rows) - (found.consumed - sum(status))
    rows, status = [*rows, *[ABSENT] * missing], [*status, *[0] * missing]
    return torch.tensor(rows, dtype=torch.int64), torch.tensor(status, dtype=torch.int8)


async def check_consumption_status(client: Any, service: Service, task_name: str, partition_id: str) -> bool:
    """All samples that the partition has or expects are consumed by the task; False where there is none."""
    partition, task = service.partition(partition_id), service.task(task_name)
    try:
        found = await service.client.consumption(partition, task, counts_only=True)
    except GONE:
        return False
    return found.total > 0 and found.consumed == found.total


async def get_production_status(
    client: Any,
    service: Service,
    data_fields: list[str],
    partition_id: str,
) -> Statuses:
    """Indexes int64 [rows] and status int8 [rows, fields] in the order asked; both None for what is not known.

    Samples that are expected and not there yet have the index -1.
    """
    if not data_fields:
        return None, None
    names = list(dict.fromkeys(data_fields))
    try:
        batch = await service.client.read(service.partition(partition_id), fields=names, include=("field_status",))
    except GONE:
        return None, None
    if batch.missing_fields or batch.field_status is None:
        return None, None
    missing = await _missing(service, partition_id, len(batch))
    rows = [*batch.global_indexes.to_list(), *[ABSENT] * missing]
    columns = [[*batch.field_status[name].to_list(), *[0] * missing] for name in names]
    return torch.tensor(rows, dtype=torch.int64), torch.tensor(columns, dtype=torch.int8).T.contiguous()


async def check_production_status(client: Any, service: Service, data_fields: list[str], partition_id: str) -> bool:
    """All samples that the partition has or expects have these fields."""
    if not data_fields:
        return False
    try:
        batch = await service.client.read(service.partition(partition_id), fields=data_fields, include=())
    except GONE:
        return False
    return batch.is_ready and not batch.missing_fields and not await _missing(service, partition_id, len(batch))


async def reset_consumption(
    client: Any,
    service: Service,
    partition_id: str,
    task_name: str | None = None,
) -> bool:
    """What the task (None: every task) consumed is as it was before. True also where there is no such partition."""
    task = None if task_name is None else service.task(task_name)
    with suppress(*GONE):
        await service.client.reset(service.partition(partition_id), task)
    return True


async def get_partition_list(
    client: Any,
    service: Service,
) -> list[str]:
    """The job's partitions in the order they were made."""
    return [name for name, _, _ in await service.partitions()]


async def kv_list(
    client: Any,
    service: Service,
    partition_id: str | None = None,
) -> dict[str, dict[str, Any]]:
    """Tags by key by partition, of one partition or of all. One that is not there is left out."""
    if partition_id is not None:
        view = await _view(service, service.partition(partition_id))
        return {} if view is None else {partition_id: view.tags()}
    listed = await service.partitions()
    service.views.keep_only({partition for _, partition, _ in listed})
    views = await asyncio.gather(*(_view(service, partition, at) for _, partition, at in listed))
    named = zip(listed, views, strict=True)
    return {name: view.tags() for (name, _, _), view in named if view is not None}


async def _view(service: Service, partition: str, revision: int | None = None) -> View | None:
    kept = None if revision is None else service.views.kept(partition, revision)
    if kept is not None:
        return kept
    try:
        return await service.views.read(service.client, partition)
    except GONE:
        service.views.forget(partition)
        return None


async def _missing(service: Service, partition_id: str, rows: int) -> int:
    """Samples that are expected and not there yet. To ask about a task that is nobody's registers nothing."""
    if service.settings.expected_samples is None:
        return 0
    found = await service.client.consumption(service.partition(partition_id), "-", counts_only=True)
    return max(0, found.total - found.consumed - rows)
