"""Renders replies about production status and backend meta: reads of either, and writes."""

from collections.abc import Callable

from msgspec import UNSET, Raw

from batchmeta.wire import replies
from core.operations.produce import Written
from core.operations.read import BackendMeta, Production
from core.reading.sliced_batch import AT_ONCE
from core.slices import Sliced
from core.state.cells import encode

from ..reply import APART, Reply, large_reply, reply


def backend_meta(found: BackendMeta) -> Reply | Sliced[Reply]:
    """Columns of cells by field."""
    make = large_reply if len(found.global_indexes) > AT_ONCE else reply
    return make(
        replies.BackendMeta(
            partition_id=found.partition_id,
            revision=found.revision,
            global_indexes=Raw(encode.array(found.global_indexes)),
            backend_meta=APART,
            missing_keys=list(found.missing_keys),
            missing_fields=list(found.missing_fields),
            next_cursor=found.next_cursor,
        ),
        apart=[found.columns],
    )


def production(found: Production) -> Reply:
    """The production status, 0 or 1 per row and field."""
    return reply(
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
        partition_id=result.partition_id,
        revision=result.revision,
        global_indexes=indexes,
        created=result.created,
        skipped=UNSET if result.skipped is None else result.skipped,
    )
    return reply(body)


def revoked(partition_id: str) -> Callable[[tuple[int, int]], Reply]:
    """How many cells are not ready any more."""
    return lambda found: reply(replies.Revoked(partition_id=partition_id, revision=found[1], revoked=found[0]))


def patched_backend_meta(result: Written) -> Reply:
    """The rows patched."""
    indexes = Raw(encode.array(result.global_indexes))
    return reply(
        replies.PatchedBackendMeta(partition_id=result.partition_id, revision=result.revision, global_indexes=indexes)
    )
