"""Plans of clears: rows are hidden, and the plan tells which bytes are to be deleted."""

from collections.abc import Sequence

from ..errors import InvalidRequest, PartitionCleared, PartitionNotFound
from ..values import Clear
from ..wire.types import MAX_ROWS
from .service import Service


async def plan_keys(service: Service, partition: str, keys: Sequence[str]) -> list[Clear]:
    """Clears of the rows with these keys; unknown ones are left out, and so is a partition that is not there."""
    plans = []
    for begin in range(0, len(keys), MAX_ROWS):
        try:
            plans.append(await service.client.plan_clear(partition, keys=keys[begin : begin + MAX_ROWS]))
        except (PartitionNotFound, PartitionCleared):
            break
    return plans


async def plan_rows(service: Service, partition: str, global_indexes: Sequence[int]) -> list[Clear]:
    """Clears of these rows; unknown ones are left out, and so is a partition that is not there."""
    plans = []
    for begin in range(0, len(global_indexes), MAX_ROWS):
        rows = global_indexes[begin : begin + MAX_ROWS]
        try:
            plans.append(await service.client.plan_clear(partition, global_indexes=rows))
        except (PartitionNotFound, PartitionCleared):
            break
    return plans


async def plan_all(service: Service, partition: str) -> list[Clear]:
    """Clears of all rows of a partition. Raises PartitionNotFound, PartitionCleared."""
    try:
        return [await service.client.plan_clear(partition, all_rows=True)]
    except InvalidRequest:  # more rows than one clear takes
        batch = await service.client.read(partition, fields=[], include=[])
        return await plan_rows(service, partition, batch.global_indexes.to_list())
