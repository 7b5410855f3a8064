"""Routes of clears: samples go only after their bytes have gone."""

from collections.abc import Awaitable

from batchmeta.wire import replies
from batchmeta.wire.requests import ClearQuery, Empty, ListClears, PlanClear
from core.names import check_prefix
from core.operations import clears
from core.operations.clears import ClearRequest
from core.state.where import some_where

from ..contract import Routes
from ..convert import selector
from ..incoming import Incoming
from ..reply import Reply
from . import clears_render as render

routes = Routes("clears")
_CLEAR = "/v1/clears/{clear_id}"
_HEAD = {"partition_id": "train@step_0", "revision": 9, "clear_id": "x9"}
_PLAN = {
    "global_indexes": [0, 1],
    "keys": ["7f_0_0", "7f_0_1"],
    "fields": {"input_ids": {"written": {"const": 1}, "backend_meta": ["1", "2"]}},
}
_LINE = {"clear_id": "x9", "partition_id": "train@step_0", "state": "pending", "count": 2, "age_s": 1.5}


@routes.route(
    "POST",
    "/v1/partitions/{partition_id}/clears",
    PlanClear,
    {201: replies.PlannedClear},
    errors=("partition-not-found", "partition-cleared"),
    example={"global_indexes": [0, 1]},
    reply_example={**_HEAD, "state": "pending", "plan": _PLAN, "skipped_clearing": []},
)
def plan_clear(call: Incoming, body: PlanClear) -> Awaitable[Reply]:
    """Plan a clear: hide samples, and learn which bytes to delete.

    A selector, or `all: true`, and of those samples only what `where` lets pass; unknown ones are skipped, and so are
    those of another clear (`skipped_clearing`). The samples are *clearing*: in no read, claim or list, and a write to
    them is refused with 409 `sample-clearing`. The plan tells per field which of them were ever written, and where.
    Delete those bytes, then commit; or abort, and the samples are back. Leases go on meanwhile. `tombstone: true`: once
    committed, the keys are never created again.
    """
    return call.engine(
        clears.plan_clear,
        render.planned_clear,
        call.partition_id,
        ClearRequest(selector(body), bool(body.all), some_where(body.where, "body.where"), bool(body.tombstone)),
        bool(body.expand),
    )


@routes.route(
    "POST",
    f"{_CLEAR}/commit",
    Empty,
    {200: replies.CommittedClear},
    errors=("clear-not-found", "clear-closed"),
    example={},
    reply_example={**_HEAD, "revision": 10, "state": "committed", "cleared": 2},
)
def commit_clear(call: Incoming, body: Empty) -> Awaitable[Reply]:
    """Commit a clear: its samples are gone for good, and so are leases on them.

    Again: the same answer. After an abort: 409 `clear-closed`.
    """
    return call.engine(clears.commit_clear, render.committed_clear, call.path_params["clear_id"])


@routes.route(
    "POST",
    f"{_CLEAR}/abort",
    Empty,
    {200: replies.AbortedClear},
    errors=("clear-not-found", "clear-closed"),
    example={},
    reply_example={**_HEAD, "revision": 10, "state": "aborted"},
)
def abort_clear(call: Incoming, body: Empty) -> Awaitable[Reply]:
    """Abort a clear: its samples are back with all they had, and with what leases made of them meanwhile.

    Again: the same answer. After a commit: 409 `clear-closed`.
    """
    return call.engine(clears.abort_clear, render.aborted_clear, call.path_params["clear_id"])


@routes.route(
    "GET",
    "/v1/clears",
    ListClears,
    {200: replies.ClearList},
    reply_example={"clears": [_LINE], "next_cursor": None},
)
def list_clears(call: Incoming, query: ListClears) -> Awaitable[Reply]:
    """List clears in the order they were planned: the pending ones and the last 10,000 closed.

    With `state` only those of that state, with `prefix` only those of partitions whose name starts with it.
    """
    prefix = query.prefix or ""
    check_prefix(prefix, "query.prefix")
    return call.engine(clears.list_clears, render.clears, query.state, prefix, query.limit or 1000, query.cursor)


@routes.route(
    "GET",
    _CLEAR,
    ClearQuery,
    {200: replies.ClearSeen},
    errors=("clear-not-found",),
    reply_example={**_HEAD, "state": "pending", "count": 2, "age_s": 1.5, "plan": _PLAN},
)
def get_clear(call: Incoming, query: ClearQuery) -> Awaitable[Reply]:
    """One clear, with its plan until it is closed."""
    return call.engine(clears.get_clear, render.clear, call.path_params["clear_id"], bool(query.expand))
