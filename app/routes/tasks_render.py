"""Renders replies about tasks: claims, what blocks them, dead rows, consumption and its reset."""

from collections.abc import Callable

import msgspec
from msgspec import UNSET, Raw

from batchmeta.wire import replies
from core.operations.claim import Answer, Claimed, Explained, NotClaimed
from core.operations.consumption import Consumption
from core.operations.leases import Dead
from core.reading.sliced_batch import AT_ONCE
from core.samplers import Blocking
from core.slices import Sliced
from core.state.cells import encode
from core.state.partition import Partition

from ..reply import Reply, large_reply, reply
from .batch_meta_render import batch_meta, columns


def _blocking(blocking: Blocking) -> replies.Blocking:
    groups = blocking.group_ids
    return replies.Blocking(
        reason=blocking.reason,
        count=blocking.count,
        global_indexes=list(blocking.global_indexes),
        field=blocking.field if blocking.field is not None else UNSET,
        group_ids=UNSET if groups is None else [msgspec.json.decode(group) for group in groups],
    )


def _info(claimed: Claimed) -> replies.ClaimInfo:
    lease = claimed.lease
    if lease is None:
        return replies.ClaimInfo(claim_id=claimed.claim_id, task=claimed.task, ack="on_dispatch", worker=claimed.worker)
    return replies.ClaimInfo(
        claim_id=claimed.claim_id,
        task=claimed.task,
        ack="explicit",
        worker=claimed.worker,
        token=lease.token,
        attempt=int(lease.attempts.max(initial=0)),
        attempts=Raw(encode.integers(lease.attempts, claimed.expand)),
        expires_in_s=claimed.left_s,
    )


def claim(result: Answer) -> Reply | Sliced[Reply]:
    """201 with a claim and its batch, or 200 that says what is missing."""
    if isinstance(result, Claimed):
        info = _info(result)
        batch = batch_meta(result.batch)
        make = large_reply if batch.size > AT_ONCE else reply
        return make(
            replies.Claimed(partition_id=batch.partition_id, revision=batch.revision, claim=info, batch=batch),
            201,
            apart=columns(result.batch),
        )
    assert isinstance(result, NotClaimed)  # noqa: S101  (there is no third)
    empty = replies.BatchMeta(
        partition_id=result.partition_id,
        revision=result.revision,
        size=0,
        is_ready=False,
        global_indexes=Raw(b"[]"),
        fields=[],
        missing_fields=list(dict.fromkeys(result.fields)),
        production_status=Raw(b"[]"),
    )
    return reply(
        replies.NotClaimed(
            partition_id=result.partition_id,
            revision=result.revision,
            claim=None,
            batch=empty if result.batch is None else batch_meta(result.batch),
            ready=result.ready,
            wanted=result.wanted,
            done=result.done,
            blocking=[_blocking(reason) for reason in result.blocking],
            stranded=result.stranded or UNSET,
        ),
        is_kept=False,
        apart=() if result.batch is None else columns(result.batch),
    )


def explained(found: Explained) -> Reply:
    """What a claim would find."""
    return reply(
        replies.Explained(
            partition_id=found.partition_id,
            revision=found.revision,
            ready=found.ready,
            wanted=found.wanted,
            total=found.counts.total,
            consumed=found.counts.consumed,
            leased=found.counts.leased,
            dead=found.counts.dead,
            done=found.counts.done,
            blocking=[_blocking(reason) for reason in found.blocking],
        )
    )


def dead(found: tuple[Partition, list[Dead]]) -> Reply:
    """Dead rows with their reasons."""
    partition, lines = found
    return reply(
        replies.DeadList(
            partition_id=partition.partition_id,
            revision=partition.revision,
            dead=[
                replies.DeadSample(
                    global_index=line.global_index,
                    key=msgspec.json.decode(line.key),
                    reason=line.reason,
                    attempts=line.attempts,
                )
                for line in lines
            ],
        )
    )


def consumption(found: Consumption) -> Reply:
    """Counts, and the status of a page of rows unless only counts were asked for."""
    body = replies.Consumption(
        partition_id=found.partition_id,
        revision=found.revision,
        consumed=found.counts.consumed,
        leased=found.counts.leased,
        dead=found.counts.dead,
        total=found.counts.total,
        done=found.counts.done,
    )
    if found.page is not None and found.status is not None:
        body.global_indexes = Raw(encode.array(found.page.indexes))
        body.consumption_status = Raw(encode.array(found.status))
        body.next_cursor = found.page.next_cursor
    return reply(body)


def reset(partition_id: str) -> Callable[[tuple[int, int]], Reply]:
    """How many rows were consumed before."""
    return lambda result: reply(
        replies.ResetConsumption(partition_id=partition_id, revision=result[1], reset=result[0])
    )
