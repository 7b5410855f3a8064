"""Routes of tasks: named consumers, what they claim and what they have consumed."""

from collections.abc import Awaitable, Mapping
from typing import Any

from batchmeta.wire import replies
from batchmeta.wire.requests import Claim, ConsumptionQuery, Empty
from core import samplers
from core.errors import Invalid
from core.names import check_name
from core.operations import claim as operations
from core.operations import consumption, leases
from core.operations.claim_slices import Claiming, in_slices
from core.operations.parked import Parked
from core.state.where import where

from ..contract import Routes
from ..convert import view
from ..incoming import Incoming
from ..pieces import Repeated
from ..reply import Reply
from . import tasks_render as render
from .batch_meta import EXAMPLE

routes = Routes("tasks")
DEFAULT_LEASE_S = 600.0
_PATH = "/v1/partitions/{partition_id}"
_GONE = ("partition-not-found", "partition-cleared")
_CLAIM: Claiming[operations.Answer | Parked[operations.Answer]] = in_slices(operations.claim)
_CLAIM_NOW = in_slices(operations.claim_now)
_EXPLAIN = in_slices(operations.explain_claim)


@routes.route(
    "POST",
    f"{_PATH}/tasks/{{task}}/claims",
    Claim,
    {201: replies.Claimed, 200: replies.NotClaimed},
    errors=("partition-cleared", "sample-cleared", "sample-clearing", "too-many-waiting"),
    example={
        "fields": ["input_ids"],
        "batch_size": 16,
        "wait_s": 30,
        "sampler": {"name": "grpo_group", "n_samples_per_prompt": 8},
    },
    reply_example={
        201: {
            "partition_id": "train@step_0",
            "revision": 3,
            "claim": {"claim_id": "c3", "task": "actor_update", "ack": "on_dispatch", "worker": None},
            "batch": EXAMPLE,
        },
        200: {
            "partition_id": "train@step_0",
            "revision": 2,
            "claim": None,
            "batch": {
                "partition_id": "train@step_0",
                "revision": 2,
                "size": 0,
                "is_ready": False,
                "global_indexes": [],
                "fields": ["input_ids"],
                "missing_fields": [],
                "production_status": [],
            },
            "ready": 1,
            "wanted": 16,
            "done": False,
            "blocking": [{"reason": "not-produced", "count": 1, "global_indexes": [1], "field": "input_ids"}],
        },
    },
    reader=Repeated,
)
def claim(call: Incoming, body: Claim) -> Awaitable[Reply]:
    """Claim a batch: every requested field is produced for every row, and none was consumed by this task.

    201 with the batch; its rows are now consumed by the task. 200 with `claim: null` when there is not enough: `ready`
    of `wanted`, whether the task is `done`, and what is `blocking`. With `wait_s` the call waits, woken by the write
    that completes the batch; at the deadline it takes at least `min_batch_size`. A client that leaves takes nothing.

    Of a sealed partition the last samples go out however few they are. Where samples are left that this `sampler` and
    `where` could never hand out (of incomplete groups, without a weight, filtered), the answer is `done: true` at once,
    with their number as `stranded`.

    With `ack: explicit` the rows are leased for `lease_s` (600) seconds instead: accept, release or reject them with
    the `token`, see *Ack*. What is not accepted in time goes out again; after `max_attempts` hand-outs it is dead.

    `where` leaves only rows whose custom meta fulfils every condition: `{"path", "op", "value"}` with the ops `== != <
    <= > >= in prefix exists`; of a group every member. Rows without that path, or with another type there, fail.

    With the samplers `rank_aware` and `seqlen_balanced` the same `dp_rank` and `batch_index` get the same rows, claim
    id and token, however often they ask; other `fields`, `batch_size` or `ack` there are refused.
    """
    wanted = _wanted(call, body)
    if wanted.wait_s == 0:
        return call.engine(_CLAIM_NOW, render.claim, call.partition_id, wanted)
    return call.waiting_engine(_CLAIM, render.claim, call.partition_id, wanted)


@routes.route(
    "POST",
    f"{_PATH}/tasks/{{task}}/explain",
    Claim,
    {200: replies.Explained},
    errors=("partition-cleared", "sample-cleared", "sample-clearing"),
    example={"fields": ["input_ids"], "batch_size": 16, "sampler": {"name": "grpo_group", "n_samples_per_prompt": 8}},
    reply_example={
        "partition_id": "train@step_0",
        "revision": 2,
        "ready": 1,
        "wanted": 16,
        "total": 512,
        "consumed": 0,
        "leased": 0,
        "dead": 0,
        "done": False,
        "blocking": [{"reason": "not-produced", "count": 1, "global_indexes": [1], "field": "input_ids"}],
    },
    is_read=True,
)
def explain(call: Incoming, body: Claim) -> Awaitable[Reply]:
    """Explain: what a claim with this body would find, and why not more. Changes nothing, registers nothing.

    `ready` counts the rows this task could take now, before groups; `blocking` says what holds the others back.
    """
    return call.engine(_EXPLAIN, render.explained, call.partition_id, _wanted(call, body))


def _wanted(call: Incoming, body: Claim) -> operations.ClaimRequest:
    """What is asked for; worked out once for a body that is decoded once, which is known by being the same object."""
    known = call.edge.asked.get((id(body), call.task))
    if known is not None and known[0] is body:
        return known[1]
    wanted = _checked(call, body)
    if body.sampler is None:
        call.edge.asked.put((id(body), call.task), (body, wanted))
    return wanted


def _checked(call: Incoming, body: Claim) -> operations.ClaimRequest:
    if body.worker is not None:
        check_name(body.worker, "body.worker")
    sampler = _sampler(body.sampler, call.edge.samplers)
    return operations.ClaimRequest(
        task=call.task,
        fields=tuple(body.fields),
        batch_size=body.batch_size,
        min_batch_size=body.min_batch_size or sampler.min_batch_size(body.batch_size),
        wait_s=body.wait_s or 0.0,
        sampler=sampler,
        view=view(body, body.fields),
        lease_s=_lease_s(body),
        worker=body.worker,
        where=where(body.where, "body.where"),
    )


def _lease_s(body: Claim) -> float | None:
    if body.ack == "explicit":
        return DEFAULT_LEASE_S if body.lease_s is None else body.lease_s
    if body.lease_s is not None:
        raise Invalid.at("body.lease_s", 'needs ack: "explicit": without it rows are consumed at once')
    return None


_DEFAULT = samplers.sampler("sequential", {})


def _sampler(chosen: Mapping[str, Any] | None, own: Mapping[str, type[samplers.Sampler]]) -> samplers.Sampler:
    if chosen is None:
        return _DEFAULT
    arguments = {name: value for name, value in chosen.items() if value is not None}
    name = arguments.pop("name", None)
    if not isinstance(name, str):
        raise Invalid.at("body.sampler.name", "must be the name of a sampler")
    return samplers.sampler(name, arguments, own)


@routes.route(
    "GET",
    f"{_PATH}/tasks/{{task}}/dead",
    Empty,
    {200: replies.DeadList},
    errors=_GONE,
    reply_example={
        "partition_id": "train@step_0",
        "revision": 9,
        "dead": [{"global_index": 7, "key": "7f_0_7", "reason": "max-attempts", "attempts": 5}],
    },
)
def list_dead(call: Incoming, query: Empty) -> Awaitable[Reply]:
    """Samples that are dead for this task: rejected, or handed out `max_attempts` times without an accept.

    A reset of the task revives them.
    """
    return call.engine(leases.list_dead, render.dead, call.partition_id, call.task)


@routes.route(
    "GET",
    f"{_PATH}/tasks/{{task}}/consumption",
    ConsumptionQuery,
    {200: replies.Consumption},
    errors=_GONE,
    reply_example={
        "partition_id": "train@step_0",
        "revision": 3,
        "consumed": 2,
        "leased": 0,
        "dead": 0,
        "total": 512,
        "done": False,
        "global_indexes": [0, 1],
        "consumption_status": [1, 1],
        "next_cursor": None,
    },
)
def read_consumption(call: Incoming, query: ConsumptionQuery) -> Awaitable[Reply]:
    """What this task has consumed: counts, and 0 or 1 per sample.

    `consumed` counts cleared samples too; `total` adds those still expected. `counts_only=true` leaves the samples out.
    """
    return call.engine(
        consumption.read_consumption,
        render.consumption,
        call.partition_id,
        call.task,
        bool(query.counts_only),
        query.limit or 1000,
        query.cursor,
    )


_RESET = {"partition_id": "train@step_0", "revision": 12, "reset": 2}


@routes.route(
    "POST",
    f"{_PATH}/tasks/{{task}}/consumption/reset",
    Empty,
    {200: replies.ResetConsumption},
    errors=_GONE,
    example={},
    reply_example=_RESET,
)
def reset_task(call: Incoming, body: Empty) -> Awaitable[Reply]:
    """Reset one task: it may consume every sample again."""
    return call.engine(consumption.reset_consumption, render.reset(call.partition_id), call.partition_id, call.task)


@routes.route(
    "POST",
    f"{_PATH}/consumption/reset",
    Empty,
    {200: replies.ResetConsumption},
    errors=_GONE,
    example={},
    reply_example=_RESET,
)
def reset_all(call: Incoming, body: Empty) -> Awaitable[Reply]:
    """Reset all tasks of a partition."""
    return call.engine(consumption.reset_consumption, render.reset(call.partition_id), call.partition_id, None)
