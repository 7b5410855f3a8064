"""From what an operation gives to a reply's status and bytes. Pure; called in the engine's thread, before the commit.

Columns come as JSON bytes and are passed through; only the small parts are encoded here.
"""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from batchmeta.wire import replies
from core import encode
from core.batch import Batch, FieldView
from core.fields import Field
from core.operations.claim import Answer, Claimed, NotClaimed
from core.operations.consumption import Consumption
from core.operations.partitions import Deleted, Line, Summary
from core.operations.produce import Written
from core.operations.read import BackendMeta, KeyLine, Production
from core.partition import Partition
from core.samplers import Blocking

from .incoming import Reply

_encode = msgspec.json.Encoder().encode
EtagOf = Callable[[int], str]


def _reply(body: object, status: int = 200, etag: str | None = None) -> Reply:
    return Reply(status, _encode(body), etag)


def rfc3339(seconds: float) -> str:
    """Unix seconds as RFC 3339 in UTC, milliseconds kept."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _maybe(column: bytes | None) -> Raw | UnsetType:
    return UNSET if column is None else Raw(column)


def _raws(columns: dict[str, bytes] | None) -> dict[str, Raw] | UnsetType:
    return UNSET if columns is None else {name: Raw(column) for name, column in columns.items()}


def _field_out(view: FieldView) -> replies.FieldOut:
    if view.kind == "object":
        return replies.FieldOut(kind="object")
    shape = (None if view.shape is None else list(view.shape)) if not view.ragged else UNSET
    return replies.FieldOut(
        kind="tensor",
        dtype=view.dtype or UNSET,
        ragged=view.ragged,
        shape=shape,
        shapes=_maybe(view.shapes),
        lengths=_maybe(view.lengths),
    )


def _batch(batch: Batch) -> replies.BatchMeta:
    schema = batch.field_schema
    return replies.BatchMeta(
        partition_id=batch.partition_id,
        revision=batch.revision,
        size=len(batch.global_indexes),
        is_ready=bool(len(batch.status) and batch.status.all()),
        global_indexes=Raw(encode.array(batch.global_indexes)),
        fields=list(batch.fields),
        missing_fields=list(batch.missing_fields),
        production_status=Raw(encode.array(batch.status)),
        keys=_maybe(batch.keys),
        group_ids=_maybe(batch.group_ids),
        field_schema=UNSET if schema is None else {name: _field_out(view) for name, view in schema.items()},
        custom_meta=_maybe(batch.custom_meta),
        backend_meta=_raws(batch.backend_meta),
        field_status=_raws(batch.field_status),
    )


def inserted(result: tuple[Batch, int]) -> Reply:
    """201: batch meta of the rows, and how many are new."""
    body = _batch(result[0])
    body.created = result[1]
    return _reply(body, 201)


def page(etag: str | None = None) -> Callable[[Batch], Reply]:
    """Batch meta as a read gives it, with what was not found and where to go on."""

    def render(batch: Batch) -> Reply:
        body = _batch(batch)
        body.missing_keys = list(batch.missing_keys)
        body.next_cursor = batch.next_cursor
        return _reply(body, etag=etag)

    return render


def tagged_page(etag_of: EtagOf) -> Callable[[Batch | int], Reply]:
    """As `page` with an ETag; a bare revision means that the caller has it already: 304."""
    return lambda found: (
        Reply(304, b"", etag_of(found)) if isinstance(found, int) else page(etag_of(found.revision))(found)
    )


def backend_meta(found: BackendMeta) -> Reply:
    """Columns of cells by field."""
    return _reply(
        replies.BackendMeta(
            partition_id=found.partition_id,
            revision=found.revision,
            global_indexes=Raw(encode.array(found.global_indexes)),
            backend_meta={name: Raw(column) for name, column in found.columns.items()},
            missing_keys=list(found.missing_keys),
            missing_fields=list(found.missing_fields),
            next_cursor=found.next_cursor,
        )
    )


def production(found: Production) -> Reply:
    """The 0/1 matrix."""
    return _reply(
        replies.ProductionStatus(
            partition_id=found.partition_id,
            revision=found.revision,
            global_indexes=Raw(encode.array(found.global_indexes)),
            fields=list(found.fields),
            production_status=Raw(encode.array(found.matrix)),
            next_cursor=found.next_cursor,
        )
    )


def produced(result: Written) -> Reply:
    """The rows written."""
    indexes = Raw(encode.array(result.global_indexes))
    body = replies.Produced(
        partition_id=result.partition_id, revision=result.revision, global_indexes=indexes, created=result.created
    )
    return _reply(body)


def patched_custom_meta(result: Written) -> Reply:
    """Only where and when."""
    return _reply(replies.PatchedCustomMeta(partition_id=result.partition_id, revision=result.revision))


def patched_backend_meta(result: Written) -> Reply:
    """The rows patched."""
    indexes = Raw(encode.array(result.global_indexes))
    return _reply(
        replies.PatchedBackendMeta(
            partition_id=result.partition_id, revision=result.revision, global_indexes=indexes
        )
    )  # fmt: skip


def found_keys(found: tuple[Partition, list[bytes]]) -> Reply:
    """Keys in the order of the indexes asked for."""
    partition, keys = found
    body = replies.FoundKeys(
        partition_id=partition.partition_id,
        revision=partition.revision,
        keys=msgspec.json.decode(encode.column(keys, True)),
    )
    return _reply(body)


def key_list(found: tuple[Partition, list[KeyLine], str | None]) -> Reply:
    """Keyed rows."""
    partition, lines, cursor = found
    keys = [
        replies.KeyLine(
            key=msgspec.json.decode(line.key),
            global_index=line.global_index,
            custom_meta=Raw(line.custom_meta),
            revision=line.revision,
        )
        for line in lines
    ]
    return _reply(
        replies.KeyList(
            partition_id=partition.partition_id, revision=partition.revision, keys=keys, next_cursor=cursor
        )
    )  # fmt: skip


def _field_summary(field: Field, count: int) -> replies.FieldSummary:
    if field.kind != "tensor":
        return replies.FieldSummary(kind="object", produced=count)
    shape = UNSET if field.ragged else (None if field.shape is None else list(field.shape))
    return replies.FieldSummary(
        kind="tensor", dtype=field.dtype or UNSET, ragged=field.ragged, shape=shape, produced=count
    )  # fmt: skip


def partition(etag_of: EtagOf) -> Callable[[Summary], Reply]:
    """A partition as GET and PUT answer it; 201 where it was just made."""

    def render(found: Summary) -> Reply:
        body = replies.Partition(
            partition_id=found.partition_id,
            revision=found.revision,
            state="open",
            created_at=rfc3339(found.created_at),
            expected_samples=found.settings.expected_samples,
            max_samples=found.settings.max_samples,
            max_attempts=found.settings.max_attempts,
            num_samples=found.num_samples,
            num_fields=len(found.fields),
            fields={field.name: _field_summary(field, count) for field, count in found.fields},
            tasks={
                name: replies.TaskSummary(consumed=consumed, leased=leased, dead=dead)
                for name, (consumed, leased, dead) in found.tasks.items()
            },
        )
        return _reply(body, 201 if found.made else 200, etag_of(found.revision))

    return render


def partitions(found: tuple[list[Line], str | None]) -> Reply:
    """A page of partitions."""
    lines = [
        replies.PartitionLine(
            partition_id=line.partition_id,
            state="open",
            num_samples=line.num_samples,
            num_fields=line.num_fields,
            revision=line.revision,
            created_at=rfc3339(line.created_at),
        )
        for line in found[0]
    ]
    return _reply(replies.Partitions(partitions=lines, next_cursor=found[1]))


def deleted_partition(result: Deleted) -> Reply:
    """How many samples went with it."""
    body = replies.DeletedPartition(
        partition_id=result.partition_id, revision=result.revision, cleared_samples=result.cleared
    )
    return _reply(body)


def deleted_samples(partition_id: str) -> Callable[[tuple[int, int]], Reply]:
    """How many rows are gone."""
    return lambda result: _reply(
        replies.DeletedSamples(
            partition_id=partition_id, revision=result[1], cleared=result[0], skipped_clearing=[]
        )
    )  # fmt: skip


def _blocking(blocking: Blocking) -> replies.Blocking:
    groups = blocking.group_ids
    return replies.Blocking(
        reason=blocking.reason,
        count=blocking.count,
        global_indexes=list(blocking.global_indexes),
        field=blocking.field if blocking.field is not None else UNSET,
        group_ids=UNSET if groups is None else [msgspec.json.decode(group) for group in groups],
    )


def claim(result: Answer) -> Reply:
    """201 with a claim and its batch, or 200 that says what is missing."""
    if isinstance(result, Claimed):
        info = replies.ClaimInfo(claim_id=result.claim_id, task=result.task, ack="on_dispatch", worker=None)
        batch = _batch(result.batch)
        return _reply(
            replies.Claimed(
                partition_id=batch.partition_id, revision=batch.revision, claim=info, batch=batch
            ),
            201,
        )  # fmt: skip
    assert isinstance(result, NotClaimed)  # noqa: S101  (there is no third)
    empty = replies.BatchMeta(
        partition_id=result.partition_id, revision=result.revision, size=0, is_ready=False, global_indexes=Raw(b"[]"),
        fields=[], missing_fields=list(dict.fromkeys(result.fields)), production_status=Raw(b"[]"),
    )  # fmt: skip
    return _reply(
        replies.NotClaimed(
            partition_id=result.partition_id,
            revision=result.revision,
            claim=None,
            batch=empty if result.batch is None else _batch(result.batch),
            ready=result.ready,
            wanted=result.wanted,
            done=result.done,
            blocking=[_blocking(reason) for reason in result.blocking],
        )
    )


def consumption(found: Consumption) -> Reply:
    """Counts, and the status of a page of rows unless only counts were asked for."""
    body = replies.Consumption(
        partition_id=found.partition_id, revision=found.revision, consumed=found.counts.consumed, leased=0, dead=0,
        total=found.counts.total, done=found.counts.done,
    )  # fmt: skip
    if found.page is not None and found.status is not None:
        body.global_indexes = Raw(encode.array(found.page.indexes))
        body.consumption_status = Raw(encode.array(found.status))
        body.next_cursor = found.page.next_cursor
    return _reply(body)


def reset(partition_id: str) -> Callable[[tuple[int, int]], Reply]:
    """How many rows were consumed before."""
    return lambda result: _reply(
        replies.ResetConsumption(partition_id=partition_id, revision=result[1], reset=result[0])
    )  # fmt: skip
