"""Calls about clears: hide rows, delete their bytes, then let them go."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET

from ..arguments import flag, maybe, text
from ..calls import Call, change, conditions, encode, group_list, indexes, names, query, route
from ..columns import INTS, KEYS, VALUES, Array
from ..values import Clear, ClearField
from ..wire import replies, requests
from .base import Base, ints, pages, readable


class ClearCalls(Base):
    """A clear is planned, then committed or aborted. Its rows are hidden meanwhile: writes to them: SampleClearing."""

    async def plan_clear(
        self,
        partition_id: str,
        *,
        global_indexes: Iterable[int] | None = None,
        keys: Iterable[str] | None = None,
        group_ids: Iterable[str | int] | None = None,
        key_prefix: str | None = None,
        all_rows: bool = False,
        where: Iterable[requests.Condition | Mapping[str, Any]] | None = None,
        tombstone: bool = False,
        idempotency_key: str | None = None,
    ) -> Clear:
        """Hide the selected rows (one of the selectors, or `all_rows`), and learn what was written of them, and where.

        Delete those bytes, then `commit_clear`; or `abort_clear`, and the rows are back. Unknown rows are skipped, and
        so are those of another clear (`skipped_clearing`). `where`: only rows whose custom meta fulfils all of these,
        e.g. `[{"path": "weight_version", "op": "<", "value": 8}]`. `tombstone`: once committed, creating one of the
        keys again raises SampleCleared. At most 65,536 rows.
        Raises PartitionNotFound, PartitionCleared, InvalidRequest.
        """
        body = requests.PlanClear(
            global_indexes=indexes(global_indexes, "global_indexes"),
            keys=names(keys, "keys"),
            group_ids=group_list(group_ids),
            key_prefix=maybe(text, key_prefix, "key_prefix"),
            all=flag(all_rows, "all_rows") or None,
            where=conditions(where),
            tombstone=flag(tombstone, "tombstone") or None,
        )
        call = change("POST", route("partitions", partition_id, "clears"), idempotency_key, body=encode(body))
        reply = await self._answer(call, replies.PlannedClear)
        return _clear(reply, reply.plan, tuple(reply.skipped_clearing))

    async def commit_clear(self, clear_id: str, *, idempotency_key: str | None = None) -> replies.CommittedClear:
        """The bytes are deleted: the rows are gone for good. Again: the same answer.

        Raises ClearNotFound, and ClearClosed after an abort.
        """
        call = change("POST", route("clears", clear_id, "commit"), idempotency_key, body=encode(requests.Empty()))
        return await self._answer(call, replies.CommittedClear)

    async def abort_clear(self, clear_id: str, *, idempotency_key: str | None = None) -> replies.AbortedClear:
        """The rows are back with all they had. Again: the same answer.

        Raises ClearNotFound, and ClearClosed after a commit.
        """
        call = change("POST", route("clears", clear_id, "abort"), idempotency_key, body=encode(requests.Empty()))
        return await self._answer(call, replies.AbortedClear)

    async def clears(
        self,
        state: replies.ClearState | None = None,
        *,
        prefix: str | None = None,
    ) -> list[replies.ClearLine]:
        """Clears in the order they were planned: the pending ones, and the last closed. Pages are joined.

        `prefix`: only those of partitions whose name begins with it.
        """
        listed = requests.ListClears(
            state=cast("replies.ClearState | None", maybe(text, state, "state")),
            prefix=maybe(text, prefix, "prefix"),
        )

        async def fetch(cursor: str | None) -> replies.ClearList:
            asked = query(msgspec.structs.replace(listed, cursor=cursor))
            return await self._answer(Call("GET", route("clears"), query=asked), replies.ClearList)

        return [line for page in await pages(fetch, lambda page: page.next_cursor) for line in page.clears]

    async def seen_clear(self, clear_id: str) -> Clear:
        """One clear, with its rows while it is pending: for whoever finishes what another began.

        Raises ClearNotFound.
        """
        reply = await self._answer(Call("GET", route("clears", clear_id)), replies.ClearSeen)
        return _clear(reply, None if reply.plan is UNSET else reply.plan, (), reply.count)


def _clear(
    reply: replies.PlannedClear | replies.ClearSeen,
    plan: replies.ClearPlan | None,
    skipped: tuple[int, ...],
    count: int | None = None,
) -> Clear:
    rows = [] if plan is None else ints(plan.global_indexes)
    with readable("clear"):
        keys = Array[str | None](()) if plan is None else KEYS.column(plan.keys, len(rows))
        fields = {} if plan is None else {name: _field(field, len(rows)) for name, field in plan.fields.items()}
    return Clear(
        reply.clear_id, reply.partition_id, reply.revision, reply.state, len(rows) if count is None else count, rows,
        keys, fields, skipped,
    )  # fmt: skip


def _field(field: replies.ClearField, rows: int) -> ClearField:
    return ClearField(INTS.column(field.written, rows), VALUES.column(field.backend_meta, rows))
