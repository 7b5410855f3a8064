"""Routes of production: which fields are written to the storage backend, and where the bytes lie."""

from collections.abc import Awaitable

from batchmeta.wire import replies
from batchmeta.wire.requests import (
    BackendMetaQuery,
    PatchBackendMeta,
    Produce,
    ProductionQuery,
    ReadBackendMeta,
    Revoke,
)
from core.limits import MAX_ROWS
from core.operations import produce as operations
from core.operations import read
from core.operations.produce import RowWrite
from core.operations.revoke import revoke as revoke_cells
from core.reading.batch import View
from core.reading.selectors import Selector

from ..contract import Routes
from ..convert import columns, listed, listed_indexes, row_write, selector
from ..incoming import Incoming
from ..one_row_body import ProduceReader
from ..reply import Reply
from . import production_render as render
from .samples import WRITE_ERRORS

routes = Routes("production")
_PATH = "/v1/partitions/{partition_id}"
_GONE = ("partition-not-found", "partition-cleared")
_BACKEND_META = {
    "partition_id": "train@step_0",
    "revision": 3,
    "global_indexes": [0, 1],
    "backend_meta": {"input_ids": {"const": "1"}},
    "missing_keys": [],
    "missing_fields": [],
    "next_cursor": None,
}


@routes.route(
    "POST",
    f"{_PATH}/production",
    Produce,
    {200: replies.Produced},
    errors=(*WRITE_ERRORS, "dtype-conflict", "kind-conflict", "group-conflict", "too-many-samples", "partition-sealed"),
    example={
        "keys": ["7f_0_0", "7f_0_1"],
        "create": True,
        "group_ids": {"const": "7f"},
        "field_schema": {"input_ids": {"dtype": "int64", "lengths": [812, 5310]}, "uid": {"kind": "object"}},
        "backend_meta": {"input_ids": {"const": "1"}, "uid": {"const": "2"}},
        "custom_meta": [{"status": "success", "seq_len": 812}, {"status": "success", "seq_len": 5310}],
    },
    reply_example={"partition_id": "train@step_0", "revision": 3, "global_indexes": [0, 1], "created": 2},
    reader=ProduceReader,
)
def produce(call: Incoming, body: Produce) -> Awaitable[Reply]:
    """Produce: the data of these fields is in the storage backend.

    One atomic step: rows (`create: true` with keys), schema, ready bits, backend meta and custom meta. Nobody sees a
    ready row without its custom meta. Sent twice, it is once. With `on_cleared: "skip"` samples that were cleared are
    left out and named in `skipped`, instead of refusing the call; one whose clear is pending refuses it with 409.
    """
    return call.engine(
        operations.produce,
        render.produced,
        call.partition_id,
        row_write(body),
        bool(body.create),
        body.field_schema,
        columns(body.backend_meta),
        body.on_cleared == "skip",
    )


@routes.route(
    "GET",
    f"{_PATH}/production",
    ProductionQuery,
    {200: replies.ProductionStatus},
    errors=(*_GONE, "field-not-found"),
    reply_example={
        "partition_id": "train@step_0",
        "revision": 3,
        "global_indexes": [0, 1],
        "fields": ["input_ids", "uid"],
        "production_status": [[1, 1], [1, 0]],
        "next_cursor": None,
    },
)
def read_production(call: Incoming, query: ProductionQuery) -> Awaitable[Reply]:
    """Production status, 0 or 1 per sample and field, in the order asked."""
    names = tuple(listed(query.fields) or ())
    return call.engine(
        read.read_production, render.production, call.partition_id, names, query.limit or 1000, query.cursor
    )


@routes.route(
    "POST",
    f"{_PATH}/production/revoke",
    Revoke,
    {200: replies.Revoked},
    errors=(*_GONE, "field-not-found"),
    example={"keys": ["7f_0_1"], "fields": ["input_ids"]},
    reply_example={"partition_id": "train@step_0", "revision": 9, "revoked": 1},
)
def revoke(call: Incoming, body: Revoke) -> Awaitable[Reply]:
    """Revoke production: the backend lost the bytes of these fields.

    Only readiness falls: schema, sizes, backend and custom meta stay, and so do leases. No claim hands the samples out
    until the fields are produced again. Samples that are not held and cells that are not ready count 0.
    """
    return call.engine(
        revoke_cells, render.revoked(call.partition_id), call.partition_id, selector(body), tuple(body.fields)
    )


@routes.route(
    "POST",
    f"{_PATH}/backend-meta",
    ReadBackendMeta,
    {200: replies.BackendMeta},
    errors=_GONE,
    example={"fields": ["input_ids"], "keys": ["7f_0_0", "7f_0_1"]},
    reply_example=_BACKEND_META,
    is_read=True,
)
def read_backend_meta(call: Incoming, body: ReadBackendMeta) -> Awaitable[Reply]:
    """Backend meta of the selected samples: where the bytes of each cell lie; null where nothing is recorded."""
    view = View(None if body.fields is None else tuple(body.fields), expand=bool(body.expand))
    return call.engine(
        read.read_backend_meta,
        render.backend_meta,
        call.partition_id,
        selector(body),
        view,
        body.limit or MAX_ROWS,
        body.cursor,
    )


@routes.route(
    "GET",
    f"{_PATH}/backend-meta",
    BackendMetaQuery,
    {200: replies.BackendMeta},
    errors=_GONE,
    reply_example=_BACKEND_META,
)
def get_backend_meta(call: Incoming, query: BackendMetaQuery) -> Awaitable[Reply]:
    """Backend meta as a GET: `fields=a,b` and `global_indexes=0,1`, both optional."""
    fields = listed(query.fields)
    view = View(None if fields is None else tuple(fields), expand=bool(query.expand))
    chosen = Selector(listed_indexes(query.global_indexes))
    return call.engine(
        read.read_backend_meta,
        render.backend_meta,
        call.partition_id,
        chosen,
        view,
        query.limit or MAX_ROWS,
        query.cursor,
    )


@routes.route(
    "PATCH",
    f"{_PATH}/backend-meta",
    PatchBackendMeta,
    {200: replies.PatchedBackendMeta},
    errors=(*WRITE_ERRORS, "field-not-found"),
    example={"global_indexes": [0], "backend_meta": {"input_ids": [{"packed_size": 1834}]}},
    reply_example={"partition_id": "train@step_0", "revision": 8, "global_indexes": [0]},
)
def patch_backend_meta(call: Incoming, body: PatchBackendMeta) -> Awaitable[Reply]:
    """Set backend meta: the backend moved the bytes. Makes nothing ready."""
    return call.engine(
        operations.patch_backend_meta,
        render.patched_backend_meta,
        call.partition_id,
        RowWrite(body.global_indexes, body.keys),
        columns(body.backend_meta),
    )
