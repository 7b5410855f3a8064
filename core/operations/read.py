"""Reading: batch meta, backend meta, production status, keys. Nothing here changes anything."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from core.arrays import Bits, Ints
from core.engine import Engine
from core.errors import FieldNotFound
from core.names import check_fields
from core.reading.batch import Batch, BatchColumns, View
from core.reading.cursors import cursor_for, start_of
from core.reading.key_prefix import with_prefix
from core.reading.selectors import Found, Page, Selector, all_rows, require_all, select
from core.reading.sliced_batch import AT_ONCE, described
from core.slices import Sliced, after, at_once, begun
from core.state.cells.encode import Pieces
from core.state.cells.json_cells import NULL, json_values
from core.state.partition import Partition, known
from core.state.where import Where

KEY_CHUNK = 8192


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of rows; each subclass adds what its operation reads of them."""

    partition_id: str
    revision: int
    global_indexes: Ints
    next_cursor: str | None = None
    missing_keys: tuple[str, ...] = ()
    missing_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BackendMeta(Listing):
    """`columns`: a JSON object, per field a column of cells."""

    columns: Pieces = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Production(Listing):
    """`matrix` uint8 [rows, fields], in the order asked."""

    fields: tuple[str, ...] = ()
    matrix: Bits = field(default_factory=lambda: np.empty((0, 0), np.uint8))


@dataclass(frozen=True, slots=True)
class Seen:
    """A partition, and its revision when it was looked at."""

    partition_id: str
    revision: int


@dataclass(frozen=True, slots=True)
class KeyLine:
    """One keyed row; `key` and `custom_meta` are JSON bytes."""

    key: bytes
    global_index: int
    custom_meta: bytes
    revision: int


Keys = tuple[Seen, list[KeyLine], str | None]


def _fields(view: View) -> None:
    if view.fields is not None:
        check_fields(view.fields, "fields")


def read(
    engine: Engine, partition_id: str, selector: Selector, view: View, strict: bool, limit: int, cursor: str | None
) -> Batch | Sliced[Batch]:
    """Batch meta of the selected rows, many in slices. With `strict`: KeyNotFound, SampleNotFound, FieldNotFound."""
    _fields(view)
    return after(select(engine, partition_id, selector, limit, cursor), partial(_described, view, strict))


def _described(view: View, strict: bool, found: Found) -> Batch | Sliced[Batch]:
    partition, page = found
    if strict:
        require_all(page)
    return after(described(partition, page.rows, page.indexes, view), partial(_on_page, page, strict))


def _on_page(page: Page, strict: bool, batch: Batch) -> Batch:
    if strict and batch.missing_fields:
        raise FieldNotFound(fields=batch.missing_fields)
    if page.missing_keys or page.next_cursor:
        return replace(batch, missing_keys=page.missing_keys, next_cursor=page.next_cursor)
    return batch


def read_if_changed(
    engine: Engine, partition_id: str, is_same: Callable[[int], bool], view: View, limit: int, cursor: str | None
) -> Batch | int | Sliced[Batch]:
    """Batch meta of all rows, or only the partition's revision where `is_same` says that the caller has it already."""
    revision = engine.get(partition_id).revision
    return revision if is_same(revision) else read(engine, partition_id, Selector(), view, False, limit, cursor)


def read_backend_meta(
    engine: Engine, partition_id: str, selector: Selector, view: View, limit: int, cursor: str | None
) -> BackendMeta | Sliced[BackendMeta]:
    """The backend meta of the selected rows, many in slices."""
    _fields(view)
    return after(select(engine, partition_id, selector, limit, cursor), partial(_backend_meta, view))


def _backend_meta(view: View, found: Found) -> BackendMeta | Sliced[BackendMeta]:
    partition, page = found
    if len(page.rows) > AT_ONCE:
        made = described(partition, page.rows, page.indexes, replace(view, include=frozenset({"backend_meta"})))
        return after(made, partial(_of_batch, page))
    asked = partition.grid.asked(view.fields)
    columns = BatchColumns(partition, page.rows, asked, view.expand).backend_meta()
    return BackendMeta(
        partition.partition_id,
        partition.revision,
        page.indexes,
        page.next_cursor,
        page.missing_keys,
        asked.missing,
        columns,
    )


def _of_batch(page: Page, batch: Batch) -> BackendMeta:
    columns = batch.backend_meta or []
    return BackendMeta(
        batch.partition_id,
        batch.revision,
        page.indexes,
        page.next_cursor,
        page.missing_keys,
        batch.missing_fields,
        columns,
    )


def read_production(
    engine: Engine, partition_id: str, names: tuple[str, ...], limit: int, cursor: str | None
) -> Production:
    """0/1 per sample and field. Raises FieldNotFound."""
    partition = engine.get(partition_id)
    _, missing = known(partition, names)
    if missing:
        raise FieldNotFound(fields=missing)
    page = all_rows(partition, limit, cursor)
    words = np.ascontiguousarray(partition.grid.status.gather(page.rows)).view(np.uint8)
    bits = np.unpackbits(words, axis=1, bitorder="little")
    matrix = bits[:, [partition.fields[name].bit for name in names]]
    return Production(partition_id, partition.revision, page.indexes, page.next_cursor, fields=names, matrix=matrix)


def lookup_keys(engine: Engine, partition_id: str, indexes: list[int]) -> tuple[Partition, list[bytes]]:
    """Keys of these indexes as JSON strings, null for those without or not held."""
    partition = engine.get(partition_id)
    rows = partition.rows.locate(np.array(indexes, np.int64))
    if partition.rows.keys is None:
        return partition, [NULL] * len(rows)
    return partition, partition.rows.keys[rows].tolist()


def list_keys(
    engine: Engine, partition_id: str, prefix: str, limit: int, cursor: str | None, where: Where | None = None
) -> Keys | Sliced[Keys]:
    """Keyed rows in index order whose key starts with `prefix`. With `where`, a page examines KEY_CHUNK rows."""
    partition, start = engine.get(partition_id), start_of(cursor, "i")
    if where is None:
        return begun(_all_keys(engine, partition_id, prefix, limit, start - 1))
    page = all_rows(partition, KEY_CHUNK, cursor)
    rows = page.rows[[key.startswith(_start(prefix)) for key in partition.keys_of(page.rows)]]
    rows = rows[where.matches(partition.custom_meta_of(rows))]
    more = cursor_for("i", int(partition.rows.global_index[rows[limit]])) if len(rows) > limit else page.next_cursor
    return at_once(_key_lines(partition, rows[:limit], more))


def _start(prefix: str) -> bytes:
    """What the JSON strings of keys with this prefix begin with. No key is null."""
    return json_values([prefix])[0][:-1]


def _all_keys(engine: Engine, partition_id: str, prefix: str, limit: int, beyond: int) -> Sliced[Keys]:
    partition, indexes = yield from with_prefix(engine, partition_id, prefix, beyond, limit + 1)
    rows = partition.rows.locate(indexes)
    rows = rows[rows > 0]
    more = cursor_for("i", int(partition.rows.global_index[rows[limit]])) if len(rows) > limit else None
    return (yield from _key_lines(partition, rows[:limit], more))


def _key_lines(partition: Partition, rows: Ints, more: str | None) -> Sliced[Keys]:
    """All is copied in the first step."""
    seen = Seen(partition.partition_id, partition.revision)
    columns = (
        partition.keys_of(rows),
        partition.rows.global_index[rows].tolist(),
        partition.custom_meta_of(rows),
        partition.rows.revision[rows].tolist(),
    )
    lines: list[KeyLine] = []
    for first in range(0, len(rows), KEY_CHUNK):
        if len(rows) > KEY_CHUNK:
            yield
        part = slice(first, first + KEY_CHUNK)
        lines += [KeyLine(*line) for line in zip(*(column[part] for column in columns), strict=True)]
    return seen, lines, more
