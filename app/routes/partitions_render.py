"""Renders replies about partitions: one, a page of them, a deleted one."""

from collections.abc import Callable

from msgspec import UNSET

from batchmeta.wire import replies
from core.operations.partitions import Deleted, Line, Summary
from core.state.cells.fields import Field

from ..reply import EtagOf, Reply, reply, rfc3339


def _field_summary(field: Field, count: int) -> replies.FieldSummary:
    if field.kind != "tensor":
        return replies.FieldSummary(kind="object", produced=count)
    shape = UNSET if field.ragged else (None if field.shape is None else list(field.shape))
    return replies.FieldSummary(
        kind="tensor", dtype=field.dtype or UNSET, ragged=field.ragged, shape=shape, produced=count
    )


def partition(etag_of: EtagOf) -> Callable[[Summary], Reply]:
    """A partition as GET and PUT answer it; 201 where it was just made."""

    def render(found: Summary) -> Reply:
        body = replies.Partition(
            partition_id=found.partition_id,
            revision=found.revision,
            state="sealed" if found.is_sealed else "open",
            created_at=rfc3339(found.created_at),
            expected_samples=found.limits.expected_samples,
            max_samples=found.limits.max_samples,
            max_attempts=found.limits.max_attempts,
            num_samples=found.num_samples,
            num_fields=len(found.fields),
            fields={field.name: _field_summary(field, count) for field, count in found.fields},
            tasks={
                name: replies.TaskSummary(consumed=consumed, leased=leased, dead=dead)
                for name, (consumed, leased, dead) in found.tasks.items()
            },
        )
        return reply(body, 201 if found.made else 200, etag_of(found.revision))

    return render


def partitions(found: tuple[list[Line], str | None]) -> Reply:
    """A page of partitions."""
    lines = [
        replies.PartitionLine(
            partition_id=line.partition_id,
            state="sealed" if line.is_sealed else "open",
            num_samples=line.num_samples,
            num_fields=line.num_fields,
            revision=line.revision,
            created_at=rfc3339(line.created_at),
        )
        for line in found[0]
    ]
    return reply(replies.Partitions(partitions=lines, next_cursor=found[1]))


def deleted_partition(result: Deleted) -> Reply:
    """How many samples went with it."""
    body = replies.DeletedPartition(
        partition_id=result.partition_id, revision=result.revision, cleared_samples=result.cleared
    )
    return reply(body)
