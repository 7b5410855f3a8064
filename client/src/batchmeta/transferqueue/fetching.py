"""`async_get_meta` in its three modes: insert rows, fetch rows that are ready (a claim), look at all rows."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from transfer_queue.metadata import BatchMeta as TheirBatch

from ..errors import PartitionCleared
from ..values import Claim
from ..wire.requests import Include
from .batches import made, members
from .errors import BadCall, NotEnoughData
from .reading import read_all
from .samplers import claim_sampler
from .server_info import HttpServerInfo, info_of
from .service import Service

LONGEST_WAIT_S = 60.0
_TOLD: tuple[Include, ...] = ("field_schema", "custom_meta", "backend_meta")


async def get_meta(
    client: Any,
    service: Service,
    data_fields: list[str] | None,
    batch_size: int | None,
    partition_id: str,
    mode: str = "fetch",
    task_name: str | None = None,
    sampling_config: dict[str, Any] | None = None,
) -> Any:
    """Batch meta of new rows (`insert`), of rows ready for a task (`fetch`), or of all rows (`force_fetch`).

    Raises NotEnoughData where a fetch does not poll and too few rows are ready in time.
    """
    if mode == "force_fetch":
        return await read_all(service, partition_id, data_fields)
    if batch_size is None:
        raise BadCall(f"must provide batch_size in {mode} mode")
    if mode == "insert":
        return await _insert(service, data_fields, batch_size, partition_id)
    if mode != "fetch":
        raise BadCall(f"Invalid mode: {mode}; it is fetch, force_fetch or insert")
    info = info_of(client)
    if task_name is None or info is None:
        raise BadCall("must provide task_name in fetch mode")
    fetch = Fetch(service, info, data_fields or [], batch_size, partition_id, task_name)
    return await fetch.run(sampling_config)


async def _insert(service: Service, fields: Sequence[str] | None, count: int, partition_id: str) -> Any:
    if fields is None:
        raise BadCall("Must provide data_fields for inserting new data")
    batch = await service.insert(service.partition(partition_id), count=count, include=("field_schema",))
    known = [name for name in fields if name in (batch.field_schema or {})]
    absent = [name for name in fields if name not in known]
    return made(TheirBatch, members(batch, partition_id, known, [0] * len(batch), absent))


class Fetch:
    """One fetch of rows for a task."""

    def __init__(
        self, service: Service, info: HttpServerInfo, fields: Sequence[str], size: int, partition_id: str, task: str
    ) -> None:
        self._service, self._info, self._fields, self._size = service, info, fields, size
        self._partition_id, self._task = partition_id, task

    async def run(self, config: Mapping[str, Any] | None) -> Any:
        """The batch; an empty one where a poll finds too little, or the partition was cleared."""
        try:
            claim = await self._claim(claim_sampler(self._info.sampler, config))
        except PartitionCleared:
            return TheirBatch.empty()
        if claim:
            ones = [1] * len(claim.batch)
            return made(TheirBatch, members(claim.batch, self._partition_id, claim.batch.fields, ones))
        if self._info.is_polling:
            return TheirBatch.empty()
        raise NotEnoughData(
            f"Timeout while waiting for sufficient data for task {self._task} in partition {self._partition_id}. "
            f"Required: {self._size}, available: {claim.ready}; {_reasons(claim)}. Produce more, ask for fewer, wait "
            "longer (TQ_CONTROLLER_GET_METADATA_TIMEOUT), or set controller.polling_mode"
        )

    async def _claim(self, sampler: Mapping[str, Any]) -> Claim:
        clock = asyncio.get_running_loop().time
        deadline = clock() + (0.0 if self._info.is_polling else self._service.settings.wait_s)
        while True:
            left = max(0.0, deadline - clock())
            claim = await self._claim_once(sampler, min(left, LONGEST_WAIT_S))
            if claim or claim.done or clock() >= deadline:
                return claim

    async def _claim_once(self, sampler: Mapping[str, Any], wait_s: float) -> Claim:
        return await self._service.client.claim(
            self._service.partition(self._partition_id),
            self._service.task(self._task),
            self._fields,
            self._size,
            wait_s=wait_s,
            sampler=sampler,
            include=_TOLD,
            compact=True,
        )


def _reasons(claim: Claim) -> str:
    return ", ".join(f"{each.reason}: {each.count}" for each in claim.blocking) or "nothing is there"
