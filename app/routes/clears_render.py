"""Renders replies about clears: plans, commits, aborts, and lists of clears."""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import UNSET, Raw

from batchmeta.wire import replies
from core.operations.clears import ClearPlan, SeenClear
from core.reading.sliced_batch import AT_ONCE
from core.slices import Sliced
from core.state.cells import encode
from core.state.clears import Clear

from ..reply import APART, Reply, large_reply, reply


def _head(found: SeenClear) -> dict[str, Any]:
    clear = found.clear
    return {
        "partition_id": clear.partition_id,
        "revision": found.revision,
        "clear_id": clear.clear_id,
        "state": clear.state,
    }


def _plan(plan: ClearPlan) -> replies.ClearPlan:
    """Its fields stand apart."""
    return replies.ClearPlan(global_indexes=Raw(encode.array(plan.global_indexes)), keys=Raw(plan.keys), fields=APART)


def _made(plan: ClearPlan) -> Callable[..., Reply | Sliced[Reply]]:
    return partial(large_reply if len(plan.global_indexes) > AT_ONCE else reply, apart=[plan.fields])


def planned_clear(found: SeenClear) -> Reply | Sliced[Reply]:
    """The clear and its plan, 201."""
    assert found.plan is not None  # noqa: S101  (it is pending: this call planned it)
    body = replies.PlannedClear(**_head(found), plan=_plan(found.plan), skipped_clearing=list(found.skipped))
    return _made(found.plan)(body, 201)


def committed_clear(found: SeenClear) -> Reply:
    """The clear, and how many samples are gone."""
    return reply(replies.CommittedClear(**_head(found), cleared=found.clear.count))


def aborted_clear(found: SeenClear) -> Reply:
    """The clear: its samples are back."""
    return reply(replies.AbortedClear(**_head(found)))


def clear(found: SeenClear) -> Reply | Sliced[Reply]:
    """One clear, with its plan while it is pending."""
    count, age_s = found.clear.count, found.age_s
    if found.plan is None:
        return reply(replies.ClearSeen(**_head(found), count=count, age_s=age_s, plan=UNSET))
    return _made(found.plan)(replies.ClearSeen(**_head(found), count=count, age_s=age_s, plan=_plan(found.plan)))


def clears(found: tuple[list[tuple[Clear, float]], str | None]) -> Reply:
    """A page of clears."""
    lines = [
        replies.ClearLine(
            clear_id=one.clear_id, partition_id=one.partition_id, state=one.state, count=one.count, age_s=age_s
        )
        for one, age_s in found[0]
    ]
    return reply(replies.ClearList(clears=lines, next_cursor=found[1]))
