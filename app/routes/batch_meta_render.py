"""Renders batch meta: pages of it, and the body that inserts and claims hold."""

from collections.abc import Callable

import numpy as np
from msgspec import UNSET, Raw

from batchmeta.wire import replies
from core.reading.batch import Batch
from core.reading.sliced_batch import AT_ONCE
from core.slices import Sliced
from core.state.cells import encode

from ..reply import APART, EtagOf, Reply, by_field, large_reply, maybe, reply


def batch_meta(batch: Batch) -> replies.BatchMeta:
    """The body; a column that was not asked for is not there. Backend meta stands apart."""
    return replies.BatchMeta(
        partition_id=batch.partition_id,
        revision=batch.revision,
        size=len(batch.global_indexes),
        is_ready=bool(len(batch.status) and np.count_nonzero(batch.status) == len(batch.status)),
        global_indexes=Raw(encode.array(batch.global_indexes)),
        fields=list(batch.fields),
        missing_fields=list(batch.missing_fields),
        production_status=Raw(encode.status(batch.status)),
        keys=maybe(batch.keys),
        group_ids=maybe(batch.group_ids),
        field_schema=by_field(batch.field_schema),
        custom_meta=maybe(batch.custom_meta),
        backend_meta=UNSET if batch.backend_meta is None else APART,
        field_status=by_field(batch.field_status),
    )


def page(etag: str | None = None) -> Callable[[Batch], Reply | Sliced[Reply]]:
    """Batch meta as a read gives it, with what was not found and where to go on."""

    def render(batch: Batch) -> Reply | Sliced[Reply]:
        body = batch_meta(batch)
        body.missing_keys = list(batch.missing_keys)
        body.next_cursor = batch.next_cursor
        make = large_reply if body.size > AT_ONCE else reply
        return make(body, etag=etag, apart=batch.backend_meta)

    return render


def tagged_page(etag_of: EtagOf) -> Callable[[Batch | int], Reply | Sliced[Reply]]:
    """As `page` with an ETag; a bare revision means that the caller has it already: 304."""
    return lambda found: (
        Reply(304, b"", etag_of(found)) if isinstance(found, int) else page(etag_of(found.revision))(found)
    )
