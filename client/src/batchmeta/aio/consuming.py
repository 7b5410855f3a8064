"""Calls of the consumers: claim a batch, see how far a task is, begin anew."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from msgspec import UNSET

from ..arguments import flag, maybe, real, text, whole
from ..calls import Call, change, conditions, encode, names, patience, query, route, sampler_of
from ..columns import INTS
from ..values import Claim, Consumption
from ..wire import replies, requests
from ..wire.requests import Include
from .base import Base, batch_of, decoded, ints, pages


class ConsumingCalls(Base):
    """A task is a named consumer; what it was handed out counts as consumed at once."""

    async def claim(
        self,
        partition_id: str,
        task: str,
        fields: Iterable[str],
        batch_size: int,
        *,
        min_batch_size: int | None = None,
        wait_s: float = 0.0,
        sampler: requests.Sampler | Mapping[str, Any] | None = None,
        where: Iterable[requests.Condition | Mapping[str, Any]] | None = None,
        include: Iterable[Include] | None = None,
        compact: bool = False,
        expand: bool = False,
        lease_s: float | None = None,
        worker: str | None = None,
        idempotency_key: str | None = None,
    ) -> Claim:
        """A batch of rows that have all `fields` and that `task` has not consumed; now it has.

        With `lease_s` the rows are held for so many seconds instead: `ack` says what became of them.

        Waits up to `wait_s` (0 to 60 seconds) for `batch_size` rows, on top of the timeout; then `min_batch_size`
        are enough. `sampler`: `{"name": "sequential"}`, or e.g. `{"name": "grpo_group", "n_samples_per_prompt": 8}`
        for whole groups. `where`: only rows whose custom meta fulfils every condition, e.g. `[{"path": "version",
        "op": ">=", "value": 8}]`, of a group every member. The partition need not exist yet. Raises PartitionCleared,
        InvalidRequest, TooManyWaiting.
        Sent again, it gets the batch that was handed out, or its place among those who wait. After ConnectionLost a
        batch may have been handed out to nobody: claim again with the same `idempotency_key`, if it was yours.
        """
        waited = real(wait_s, "wait_s")
        body = requests.Claim(
            fields=names(fields, "fields"),
            batch_size=whole(batch_size, "batch_size"),
            min_batch_size=maybe(whole, min_batch_size, "min_batch_size"),
            wait_s=waited or None,
            sampler=sampler_of(sampler),
            where=conditions(where),
            include=cast("list[Include] | None", names(include, "include")),
            compact=flag(compact, "compact") or None,
            expand=flag(expand, "expand") or None,
            share_columns=True,
            ack=None if lease_s is None else "explicit",
            lease_s=maybe(real, lease_s, "lease_s"),
            worker=maybe(text, worker, "worker"),
        )
        path = route("partitions", partition_id, "tasks", task, "claims")
        answer = await self._connection.send(
            change("POST", path, idempotency_key, body=encode(body), wait_s=patience(waited))
        )
        if answer.status_code == 201:
            return _claimed(decoded(answer, replies.Claimed))
        return _not_claimed(decoded(answer, replies.NotClaimed))

    async def explain(
        self,
        partition_id: str,
        task: str,
        fields: Iterable[str],
        batch_size: int,
        *,
        sampler: requests.Sampler | Mapping[str, Any] | None = None,
        where: Iterable[requests.Condition | Mapping[str, Any]] | None = None,
    ) -> replies.Explained:
        """What a claim would find and what is `blocking`; changes nothing. Raises PartitionCleared, InvalidRequest."""
        body = requests.Claim(
            fields=names(fields, "fields"),
            batch_size=whole(batch_size, "batch_size"),
            sampler=sampler_of(sampler),
            where=conditions(where),
        )
        path = route("partitions", partition_id, "tasks", task, "explain")
        return await self._answer(Call("POST", path, body=encode(body)), replies.Explained)

    async def consumption(self, partition_id: str, task: str, *, counts_only: bool = False) -> Consumption:
        """How far a task is, row by row unless `counts_only`. Pages are joined; the counts are the last page's.

        Asking registers nothing. Raises PartitionNotFound, PartitionCleared.
        """
        path = route("partitions", partition_id, "tasks", task, "consumption")
        only = flag(counts_only, "counts_only")

        async def fetch(cursor: str | None) -> replies.Consumption:
            asked = query(requests.ConsumptionQuery(counts_only=only or None, cursor=cursor))
            return await self._answer(Call("GET", path, query=asked), replies.Consumption)

        return _consumption(await pages(fetch, lambda page: page.next_cursor), only)

    async def reset(
        self, partition_id: str, task: str | None = None, *, idempotency_key: str | None = None
    ) -> replies.ResetConsumption:
        """Forget what a task (None: every task) consumed; `reset` counts the rows.

        Raises PartitionNotFound, PartitionCleared.
        """
        tasks = () if task is None else ("tasks", task)
        path = route("partitions", partition_id, *tasks, "consumption", "reset")
        call = change("POST", path, idempotency_key, body=encode(requests.Empty()))
        return await self._answer(call, replies.ResetConsumption)


def _claimed(reply: replies.Claimed) -> Claim:
    info = reply.claim
    size = reply.batch.size
    return Claim(
        reply.partition_id,
        reply.revision,
        info.claim_id,
        batch_of(reply.batch),
        token=None if info.token is UNSET else info.token,
        attempts=None if info.attempts is UNSET else INTS.column(info.attempts, size),
        expires_in_s=None if info.expires_in_s is UNSET else info.expires_in_s,
    )


def _not_claimed(reply: replies.NotClaimed) -> Claim:
    return Claim(
        partition_id=reply.partition_id,
        revision=reply.revision,
        claim_id=None,
        batch=batch_of(reply.batch),
        ready=reply.ready,
        wanted=reply.wanted,
        done=reply.done,
        blocking=tuple(reply.blocking),
        stranded=0 if reply.stranded is UNSET else reply.stranded,
    )


def _consumption(found: list[replies.Consumption], counts_only: bool) -> Consumption:
    last = found[-1]
    rows = [ints(page.global_indexes) for page in found if page.global_indexes is not UNSET]
    status = [ints(page.consumption_status) for page in found if page.consumption_status is not UNSET]
    return Consumption(
        partition_id=last.partition_id,
        revision=found[0].revision,
        consumed=last.consumed,
        leased=last.leased,
        dead=last.dead,
        total=last.total,
        done=last.done,
        global_indexes=None if counts_only else [index for page in rows for index in page],
        consumption_status=None if counts_only else [bit for page in status for bit in page],
    )
