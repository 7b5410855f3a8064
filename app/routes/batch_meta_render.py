"""Renders batch meta: pages of it, and the body that inserts and claims hold."""

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import UNSET, Raw

from batchmeta.wire import replies
from core.reading.batch import Batch
from core.reading.sliced_batch import AT_ONCE
from core.slices import Sliced
from core.state.cells import encode
from core.state.cells.encode import Pieces

from ..reply import APART, EtagOf, Reply, by_field, large_reply, reply


def batch_meta(batch: Batch) -> replies.BatchMeta:
    """The body; a column that was not asked for is not there. Most stand apart: see `columns`."""
    return replies.BatchMeta(
        partition_id=batch.partition_id,
        revision=batch.revision,
        size=len(batch.global_indexes),
        is_ready=bool(len(batch.status) and np.count_nonzero(batch.status) == len(batch.status)),
        global_indexes=Raw(encode.array(batch.global_indexes)),
        fields=list(batch.fields),
        missing_fields=list(batch.missing_fields),
        production_status=Raw(encode.status(batch.status)),
        keys=_apart(batch.keys),
        group_ids=_apart(batch.group_ids),
        field_schema=_apart(batch.field_schema),
        custom_meta=_apart(batch.custom_meta),
        backend_meta=_apart(batch.backend_meta),
        field_status=by_field(batch.field_status),
    )


def _apart(column: object) -> Any:
    return UNSET if column is None else APART


def columns(batch: Batch) -> list[Pieces]:
    """What stands apart, in the order of the members."""
    whole = (batch.keys, batch.group_ids, batch.field_schema, batch.custom_meta)
    parts: list[Pieces] = [[part] for part in whole if part is not None]
    return parts if batch.backend_meta is None else [*parts, batch.backend_meta]


def page(batch: Batch, etag: str | None = None) -> Reply | Sliced[Reply]:
    """Batch meta as a read gives it, with what was not found and where to go on."""
    body = batch_meta(batch)
    body.missing_keys = list(batch.missing_keys)
    body.next_cursor = batch.next_cursor
    make = large_reply if body.size > AT_ONCE else reply
    return make(body, etag=etag, apart=columns(batch))


def tagged_page(etag_of: EtagOf) -> Callable[[Batch | int], Reply | Sliced[Reply]]:
    """As `page` with an ETag; a bare revision means that the caller has it already: 304."""
    return lambda found: (
        Reply(304, b"", etag_of(found)) if isinstance(found, int) else page(found, etag_of(found.revision))
    )
