"""Routes of batch meta: the description of a list of samples."""

from collections.abc import Awaitable
from typing import get_args

from batchmeta.wire import replies
from batchmeta.wire.requests import Include, Read, ReadQuery
from core.errors import Invalid
from core.limits import MAX_ROWS
from core.operations import read as operations
from core.reading.batch import View
from core.reading.selectors import Selector

from ..contract import Routes
from ..convert import listed, selector, view
from ..etags import etag_of, names_weakly
from ..incoming import Incoming
from ..pieces import Repeated
from ..reply import Reply
from . import batch_meta_render as render

routes = Routes("batch meta")
_PATH = "/v1/partitions/{partition_id}/batch-meta"
_GONE = ("partition-not-found", "partition-cleared")
EXAMPLE = {
    "partition_id": "train@step_0",
    "revision": 3,
    "size": 2,
    "is_ready": True,
    "global_indexes": [0, 1],
    "fields": ["input_ids"],
    "missing_fields": [],
    "production_status": [1, 1],
    "keys": ["7f_0_0", "7f_0_1"],
    "field_schema": {"input_ids": {"kind": "tensor", "dtype": "int64", "ragged": True, "lengths": [812, 5310]}},
    "custom_meta": [{"status": "success", "seq_len": 812}, {"status": "success", "seq_len": 5310}],
    "backend_meta": {"input_ids": {"const": "1"}},
}
_PAGE_EXAMPLE = {**EXAMPLE, "missing_keys": [], "next_cursor": None}


@routes.route(
    "POST",
    _PATH,
    Read,
    {200: replies.BatchMeta},
    errors=(*_GONE, "sample-not-found", "key-not-found", "field-not-found"),
    example={"fields": ["input_ids"], "keys": ["7f_0_0", "7f_0_1"], "compact": True},
    reply_example=_PAGE_EXAMPLE,
    is_read=True,
    reader=Repeated,
)
def read(call: Incoming, body: Read) -> Awaitable[Reply]:
    """Read batch meta of the selected samples; consumes nothing.

    `production_status` is 1 where every requested field that the partition knows is produced. Name the fields you need:
    absent means all known now, so a status may fall as fields appear. Indexes not held keep their place with status 0.
    """
    rows, wanted = _asked(call, body)
    return call.engine(
        operations.read,
        render.page,
        call.partition_id,
        rows,
        wanted,
        bool(body.strict),
        body.limit or MAX_ROWS,
        body.cursor,
    )


def _asked(call: Incoming, body: Read) -> tuple[Selector, View]:
    """Which rows, and what of them; worked out once for a body that names no rows and is decoded once."""
    known = call.edge.asked_reads.get(id(body))
    if known is not None and known[0] is body:
        return known[1]
    asked = selector(body), view(body, body.fields)
    if asked[0].is_absent:
        call.edge.asked_reads.put(id(body), (body, asked))
    return asked


@routes.route(
    "GET", _PATH, ReadQuery, {200: replies.BatchMeta}, errors=_GONE, reply_example=_PAGE_EXAMPLE, has_etag=True
)
def get_batch_meta(call: Incoming, query: ReadQuery) -> Awaitable[Reply]:
    """Batch meta of all samples as a GET, with an ETag.

    `fields` and `include` are lists separated by commas. `If-None-Match` with the tag you have: 304 while nothing
    changed.
    """
    fields, include = listed(query.fields), listed(query.include)
    stray = [name for name in include or () if name not in get_args(Include)]
    if stray:
        raise Invalid.at("query.include", f"has no part {stray[0]!r}: use {', '.join(get_args(Include))}")
    tag = etag_of(call, f"?{call.query}")
    header = call.header(b"if-none-match")
    return call.engine(
        operations.read_if_changed,
        render.tagged_page(tag),  # type: ignore[arg-type]  # mypy takes a union for its common base
        call.partition_id,
        lambda revision: names_weakly(header, tag(revision)),
        View(
            None if fields is None else tuple(fields),
            None if include is None else frozenset(include),
            bool(query.expand),
            bool(query.compact),
            bool(query.share_columns),
        ),
        query.limit or MAX_ROWS,
        query.cursor,
    )
