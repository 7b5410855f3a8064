"""Routes of samples: rows of a partition, their keys and custom meta."""

from collections.abc import Awaitable

from batchmeta.wire import replies
from batchmeta.wire.requests import DeleteSamples, Insert, ListKeys, LookupKeys, PatchCustomMeta
from core.errors import Invalid
from core.operations import changes, produce, read
from core.operations.delete import delete
from core.state.where import some_where

from ..contract import Routes
from ..convert import row_write, selector, view, where_in_query
from ..incoming import Incoming
from ..reply import Reply
from . import samples_render as render

routes = Routes("samples")
_PATH = "/v1/partitions/{partition_id}"
_GONE = ("partition-not-found", "partition-cleared")
WRITE_ERRORS = (
    *_GONE,
    "sample-not-found",
    "sample-cleared",
    "sample-clearing",
    "key-not-found",
    "duplicate-keys",
    "duplicate-indexes",
)


@routes.route(
    "POST",
    f"{_PATH}/samples",
    Insert,
    {201: replies.BatchMeta},
    errors=(
        "duplicate-keys",
        "group-conflict",
        "too-many-samples",
        "partition-sealed",
        "sample-cleared",
        "sample-clearing",
    ),
    example={"keys": ["7f_0_0", "7f_0_1"], "group_ids": {"const": "7f"}, "custom_meta": {"const": {"step": 41}}},
    reply_example={
        "partition_id": "train@step_0",
        "revision": 2,
        "size": 2,
        "is_ready": False,
        "global_indexes": [0, 1],
        "fields": [],
        "missing_fields": [],
        "production_status": [0, 0],
        "keys": ["7f_0_0", "7f_0_1"],
        "field_schema": {},
        "custom_meta": {"const": {"step": 41}},
        "backend_meta": {},
        "created": 2,
    },
)
def insert(call: Incoming, body: Insert) -> Awaitable[Reply]:
    """Insert samples: `count` new ones, or one per key.

    Makes the partition if need be. A key that exists keeps its index; meta given for it is merged, or updated as
    `custom_meta_mode` says. One that is being cleared is refused with 409, one that was cleared with a tombstone with
    410. With `ttl_s`, those of the samples that have no produced field within so many seconds disappear, as if they had
    never been inserted; inserting them again renews it.

    The reply describes the samples, new or found, as a read does: `include` says with which parts.
    """
    return call.engine(
        produce.insert, render.inserted, call.partition_id, body.count, row_write(body), view(body, None)
    )


@routes.route(
    "POST",
    f"{_PATH}/samples/delete",
    DeleteSamples,
    {200: replies.DeletedSamples},
    errors=("partition-cleared",),
    example={"global_indexes": [0, 1]},
    reply_example={"partition_id": "train@step_0", "revision": 9, "cleared": 2, "skipped_clearing": []},
)
def delete_samples(call: Incoming, body: DeleteSamples) -> Awaitable[Reply]:
    """Delete samples at once: by index, by key, by group, or by what their keys begin with.

    Unknown ones are skipped, so that sending it again is harmless; those of a pending clear are left to it. With
    `where` only those of them whose custom meta fulfils it; an empty list of conditions is refused. Whether their bytes
    are gone is the caller's matter: a clear asks for that first.
    """
    where = some_where(body.where, "body.where")
    return call.engine(delete, render.deleted_samples(call.partition_id), call.partition_id, selector(body), where)


@routes.route(
    "PATCH",
    f"{_PATH}/custom-meta",
    PatchCustomMeta,
    {200: replies.PatchedCustomMeta},
    errors=(*WRITE_ERRORS, "precondition-failed"),
    example={"global_indexes": [0, 1], "custom_meta": [{"reward": 0.5}, None]},
    reply_example={"partition_id": "train@step_0", "revision": 7},
)
def patch_custom_meta(call: Incoming, body: PatchCustomMeta) -> Awaitable[Reply]:
    """Patch custom meta, sample by sample: merge it (RFC 7396), or update it as Python's `dict.update` does.

    Writers of different members lose nothing. `null` in the column leaves a sample alone; `null` in a patch removes a
    member, and is its value with `"custom_meta_mode": "update"`. With `if_revision` only if none of the samples changed
    after that revision, else 412 naming those that did. With `ttl_s` the samples without a produced field have so many
    seconds from now to get one, as for an insert.
    """
    return call.engine(
        produce.patch_custom_meta, render.patched_custom_meta, call.partition_id, row_write(body), body.if_revision
    )


@routes.route(
    "POST",
    f"{_PATH}/keys/lookup",
    LookupKeys,
    {200: replies.FoundKeys},
    errors=_GONE,
    example={"global_indexes": [0, 99]},
    reply_example={"partition_id": "train@step_0", "revision": 7, "keys": ["7f_0_0", None]},
    is_read=True,
)
def lookup_keys(call: Incoming, body: LookupKeys) -> Awaitable[Reply]:
    """The keys of these indexes; null for samples without one and for indexes not held."""
    return call.engine(read.lookup_keys, render.found_keys, call.partition_id, body.global_indexes)


@routes.route(
    "GET",
    f"{_PATH}/keys",
    ListKeys,
    {200: replies.KeyList},
    errors=(*_GONE, "compacted", "too-many-waiting"),
    reply_example={
        "partition_id": "train@step_0",
        "revision": 7,
        "keys": [{"key": "7f_0_0", "global_index": 0, "custom_meta": {"step": 41}, "revision": 2}],
        "next_cursor": None,
    },
)
def list_keys(call: Incoming, query: ListKeys) -> Awaitable[Reply]:
    """List keyed samples in index order, those whose key starts with `prefix`.

    A sample's `revision` is that of its last change of key, group, schema, readiness, backend or custom meta. `where`,
    a JSON array of conditions, leaves those whose custom meta fulfils it; a page may then be short, or empty, and yet
    have a `next_cursor`.

    With `since_revision` only what changed after it, in the order of the changes, and `removed`: keys that were listed
    and are not any more, or whose sample does not fulfil `where` any more. `revision` is then the last one of which all
    is told: go on from there, or with the cursor; 0 tells all that is there. With `wait_s` too, the answer comes once
    there is something to tell, or when the time is up. What was long ago may not be known any more: 410 `compacted`,
    begin anew with 0.
    """
    where, prefix, limit = where_in_query(query.where), query.prefix or "", query.limit or 1000
    if query.since_revision is None:
        if query.wait_s is not None:
            raise Invalid.at("query.wait_s", "needs since_revision: the one that you have seen")
        return call.engine(read.list_keys, render.key_list, call.partition_id, prefix, limit, query.cursor, where)
    asked = changes.ChangesRequest(query.since_revision, prefix, where, limit, query.cursor)
    if not query.wait_s:
        return call.engine(changes.list_changes, render.key_changes, call.partition_id, asked)
    return call.waiting_engine(changes.await_changes, render.key_changes, call.partition_id, asked, query.wait_s)
