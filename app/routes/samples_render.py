"""Renders replies about samples: inserted and deleted rows, keys and their changes, patched custom meta."""

from collections.abc import Callable

import msgspec
from msgspec import Raw

from batchmeta.wire import replies
from core.operations.changes import Changes
from core.operations.produce import Written
from core.operations.read import KEY_CHUNK, KeyLine, Keys
from core.reading.batch import Batch
from core.reading.sliced_batch import AT_ONCE
from core.slices import Sliced
from core.state.cells import encode
from core.state.cells.encode import Pieces
from core.state.partition import Partition

from ..reply import APART, Reply, encode_json, large_reply, reply
from .batch_meta_render import batch_meta, columns


def inserted(result: tuple[Batch, int]) -> Reply | Sliced[Reply]:
    """Batch meta of the rows, and how many are new, 201."""
    body = batch_meta(result[0])
    body.created = result[1]
    make = large_reply if body.size > AT_ONCE else reply
    return make(body, 201, apart=columns(result[0]))


def patched_custom_meta(result: Written) -> Reply:
    """The partition and its revision."""
    return reply(replies.PatchedCustomMeta(partition_id=result.partition_id, revision=result.revision))


def found_keys(found: tuple[Partition, list[bytes]]) -> Reply:
    """Keys in the order of the indexes asked for."""
    partition, keys = found
    body = replies.FoundKeys(
        partition_id=partition.partition_id,
        revision=partition.revision,
        keys=msgspec.json.decode(encode.column(keys, True)),
    )
    return reply(body)


def key_list(found: Keys) -> Reply | Sliced[Reply]:
    """Keyed rows."""
    seen, lines, cursor = found
    body = replies.KeyList(seen.partition_id, seen.revision, [], next_cursor=cursor)
    if len(lines) > KEY_CHUNK:
        return _many_keys(body, lines)
    body.keys = list(map(_key_line, lines))
    return reply(body)


def _many_keys(body: replies.KeyList, lines: list[KeyLine]) -> Sliced[Reply]:
    column: Pieces = [b"["]
    for first in range(0, len(lines), KEY_CHUNK):
        column += [encode_json(list(map(_key_line, lines[first : first + KEY_CHUNK])))[1:-1], b","]
        yield
    body.keys = APART
    return (yield from large_reply(body, apart=[[*column[:-1], b"]"]]))


def key_changes(found: Changes) -> Reply:
    """Keyed rows that changed, and keys that left."""
    body = replies.KeyList(
        partition_id=found.partition_id,
        revision=found.revision,
        keys=list(map(_key_line, found.lines)),
        next_cursor=found.next_cursor,
        removed=[msgspec.json.decode(key) for key in found.removed],
    )
    return reply(body)


def _key_line(line: KeyLine) -> replies.KeyLine:
    return replies.KeyLine(
        key=msgspec.json.decode(line.key),
        global_index=line.global_index,
        custom_meta=Raw(line.custom_meta),
        revision=line.revision,
    )


def deleted_samples(partition_id: str) -> Callable[[tuple[int, int, list[int]]], Reply]:
    """How many rows are gone, and which were left to a clear."""
    return lambda result: reply(
        replies.DeletedSamples(
            partition_id=partition_id, revision=result[1], cleared=result[0], skipped_clearing=result[2]
        )
    )
