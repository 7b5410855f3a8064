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
from core.reading.cursors import cursor_for
from core.reading.selectors import Page, Selector, all_rows, names_of, require_all, select
from core.reading.sliced_batch import AT_ONCE, described
from core.slices import Sliced, after
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
class KeyLine:
    """One keyed row; `key` and `custom_meta` are JSON bytes."""

    key: bytes
    global_index: int
    custom_meta: bytes
    revision: int


def _fields(view: View) -> None:
    if view.fields is not None:
        check_fields(view.fields, "fields")


def read(
    engine: Engine, partition_id: str, selector: Selector, view: View, strict: bool, limit: int, cursor: str | None
) -> Batch | Sliced[Batch]:
    """Batch meta of the selected rows, many in slices. With `strict`: KeyNotFound, SampleNotFound, FieldNotFound."""
    _fields(view)
    engine.get(partition_id)
    if selector.keys is None or len(selector.keys) <= AT_ONCE:
        return _read(engine, partition_id, selector, view, strict, limit, cursor)
    made = partial(_read, engine, partition_id, selector, view, strict, limit, cursor)
    return _made_of(names_of(selector), made)


def _made_of(
    names: Sliced[list[bytes] | None], make: Callable[[list[bytes] | None], Batch | Sliced[Batch]]
) -> Sliced[Batch]:
    made = make((yield from names))
    return made if isinstance(made, Batch) else (yield from made)


def _read(
    engine: Engine,
    partition_id: str,
    selector: Selector,
    view: View,
    strict: bool,
    limit: int,
    cursor: str | None,
    names: list[bytes] | None = None,
) -> Batch | Sliced[Batch]:
    partition = engine.get(partition_id)
    page = select(partition, selector, limit, cursor, names)
    if strict:
        require_all(page)
    return after(described(partition, page.rows, page.indexes, view), partial(_on_page, page, strict))


def _on_page(page: Page, strict: bool, batch: Batch) -> Batch:
    if strict and batch.missing_fields:
        raise FieldNotFound(fields=batch.missing_fields)
    return replace(batch, missing_keys=page.missing_keys, next_cursor=page.next_cursor)


def read_if_changed(
    engine: Engine, partition_id: str, is_same: Callable[[int], bool], view: View, limit: int, cursor: str | None
) -> Batch | int | Sliced[Batch]:
    """Batch meta of all rows, or only the partition's revision where `is_same` says that the caller has it already."""
    revision = engine.get(partition_id).revision
    return revision if is_same(revision) else read(engine, partition_id, Selector(), view, False, limit, cursor)


def read_backend_meta(
    engine: Engine, partition_id: str, selector: Selector, view: View, limit: int, cursor: str | None
) -> BackendMeta:
    """The backend meta of the selected rows."""
    _fields(view)
    partition = engine.get(partition_id)
    page = select(partition, selector, limit, cursor)
    asked = partition.grid.asked(view.fields)
    columns = BatchColumns(partition, page.rows, asked, view.expand).backend_meta()
    return BackendMeta(
        partition_id, partition.revision, page.indexes, page.next_cursor, page.missing_keys, asked.missing, columns
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
) -> tuple[Partition, list[KeyLine], str | None]:
    """Keyed rows in index order whose key starts with `prefix`. With `where`, a page examines KEY_CHUNK rows."""
    partition = engine.get(partition_id)
    start = json_values([prefix])[0][:-1]
    chunk = limit + 1 if not prefix and where is None else KEY_CHUNK
    found: list[KeyLine] = []
    while len(found) <= limit:
        page = all_rows(partition, chunk, cursor)
        found += _key_lines(partition, page.rows, start, where)
        cursor = page.next_cursor
        if cursor is None or where is not None:
            break
    more = cursor_for("i", found[limit].global_index) if len(found) > limit else cursor
    return partition, found[:limit], more


def _key_lines(partition: Partition, rows: Ints, start: bytes, where: Where | None) -> list[KeyLine]:
    if partition.rows.keys is None:
        return []
    keys = partition.rows.keys[rows].tolist()
    at = rows[[i for i, key in enumerate(keys) if key.startswith(start)]]
    if where is not None:
        at = at[where.matches(partition.custom_meta_of(at))]
    columns = (
        partition.rows.keys[at].tolist(),
        partition.rows.global_index[at].tolist(),
        partition.custom_meta_of(at),
        partition.rows.revision[at].tolist(),
    )
    return [KeyLine(*line) for line in zip(*columns, strict=True)]
