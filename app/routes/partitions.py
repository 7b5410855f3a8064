"""Routes of partitions: named sets of samples of one kind."""

from collections.abc import Awaitable

from batchmeta.wire import replies
from batchmeta.wire.requests import Empty, ListPartitions, PartitionQuery, PatchPartition, PutPartition
from core.errors import Invalid
from core.names import check_prefix
from core.operations import partitions as operations

from ..contract import Routes
from ..etags import etag_of, names
from ..incoming import Incoming
from ..reply import Reply
from . import partitions_render as render

routes = Routes("partitions")
_PAGE = 1000
_GONE = ("partition-not-found", "partition-cleared")
_PATH = "/v1/partitions/{partition_id}"
_EXAMPLE = {
    "partition_id": "train@step_0",
    "revision": 3,
    "state": "open",
    "created_at": "2026-11-30T08:00:00.000Z",
    "expected_samples": 512,
    "max_samples": None,
    "max_attempts": 5,
    "num_samples": 2,
    "num_fields": 1,
    "fields": {"input_ids": {"kind": "tensor", "dtype": "int64", "ragged": True, "produced": 2}},
    "tasks": {"actor_update": {"consumed": 0, "leased": 0, "dead": 0}},
}


@routes.route(
    "PUT",
    _PATH,
    PutPartition,
    {200: replies.Partition, 201: replies.Partition},
    errors=("partition-conflict", "dtype-conflict", "kind-conflict"),
    example={"expected_samples": 512, "fields": {"input_ids": {"dtype": "int64", "ragged": True}}},
    reply_example=_EXAMPLE,
    has_etag=True,
)
def put_partition(call: Incoming, body: PutPartition) -> Awaitable[Reply]:
    """Make a partition, or give one its settings.

    201 when it is new; 200 when it exists without settings (now it has these) or with the same ones. With other
    settings: 409. Settings are optional: insert makes a partition without any.
    """
    return call.engine(
        operations.put_partition,
        render.partition(etag_of(call)),
        call.partition_id,
        body.expected_samples,
        body.max_samples,
        body.max_attempts,
        body.fields or {},
    )


@routes.route(
    "PATCH",
    _PATH,
    PatchPartition,
    {200: replies.Partition},
    errors=(*_GONE, "partition-sealed"),
    example={"max_samples": 4096},
    reply_example=_EXAMPLE | {"max_samples": 4096},
    has_etag=True,
)
def patch_partition(call: Incoming, body: PatchPartition) -> Awaitable[Reply]:
    """Change a partition's settings; what is left out stays.

    A later PUT is compared with the earlier PUT, not with this.
    """
    return call.engine(
        operations.patch_partition,
        render.partition(etag_of(call)),
        call.partition_id,
        body.expected_samples,
        body.max_samples,
        body.max_attempts,
    )


@routes.route(
    "POST",
    f"{_PATH}/seal",
    Empty,
    {200: replies.Partition},
    errors=_GONE,
    example={},
    reply_example=_EXAMPLE | {"state": "sealed", "expected_samples": 2},
    has_etag=True,
)
def seal_partition(call: Incoming, body: Empty) -> Awaitable[Reply]:
    """Seal a partition: it takes no more samples, and expects those that it has.

    A claim that waits for a full batch then gets the last rows as soon as all of them are ready, and a task is `done`
    once it has consumed every one. Sealing again changes nothing.
    """
    return call.engine(operations.seal_partition, render.partition(etag_of(call)), call.partition_id)


@routes.route(
    "GET",
    "/v1/partitions",
    ListPartitions,
    {200: replies.Partitions},
    reply_example={
        "partitions": [
            {
                "partition_id": "train@step_0",
                "state": "open",
                "num_samples": 512,
                "num_fields": 28,
                "revision": 1536,
                "created_at": "2026-11-30T08:00:00.000Z",
            }
        ],
        "next_cursor": None,
    },
)
def list_partitions(call: Incoming, query: ListPartitions) -> Awaitable[Reply]:
    """List partitions in the order they were made.

    `prefix` keeps those whose name starts with it. Pass `next_cursor` back as `cursor` for the next page.
    """
    prefix = query.prefix or ""
    check_prefix(prefix, "query.prefix")
    return call.engine(operations.list_partitions, render.partitions, prefix, query.limit or _PAGE, query.cursor)


@routes.route(
    "GET",
    _PATH,
    PartitionQuery,
    {200: replies.Partition},
    errors=(*_GONE, "too-many-waiting"),
    reply_example=_EXAMPLE,
    has_etag=True,
)
def get_partition(call: Incoming, query: PartitionQuery) -> Awaitable[Reply]:
    """A partition's settings, fields and tasks.

    `fields` says for how many rows each is produced; `tasks` lists consumers from their first hand-out. The `ETag` may
    be sent as `If-Match` when deleting. With `revision` and `wait_s` it waits for a change: the answer comes once the
    partition is past that revision, or as it is when the time is up.
    """
    if query.revision is None and query.wait_s is not None:
        raise Invalid.at("query.wait_s", "needs revision: the one that you have seen")
    shown = render.partition(etag_of(call))
    if query.revision is None or not query.wait_s:
        return call.engine(operations.get_partition, shown, call.partition_id)
    return call.waiting_engine(operations.await_partition, shown, call.partition_id, query.revision, query.wait_s)


@routes.route(
    "DELETE",
    _PATH,
    Empty,
    {200: replies.DeletedPartition},
    errors=("precondition-failed",),
    reply_example={"partition_id": "train@step_0", "revision": 1540, "cleared_samples": 512},
)
def delete_partition(call: Incoming, query: Empty) -> Awaitable[Reply]:
    """Delete a partition and all its samples.

    With `If-Match` only at a state that it names, else 412; a weak tag (`W/`) names none. Absent or deleted: 200 with
    0. Its indexes are never used again, and calls that wait on it end with 410.
    """
    header = call.header(b"if-match")
    tag = etag_of(call)
    matches = None if header is None else lambda revision: names(header, tag(revision))
    return call.engine(operations.delete_partition, render.deleted_partition, call.partition_id, matches)
