"""Batch meta: the description of a list of rows (contract#batch-meta), its columns already JSON bytes.

One code path for every reader: by keys, by indexes, of a whole partition, of a claim, of an insert.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from core.arrays import Bits, Ints, run_of
from core.state.cells import encode
from core.state.cells.fields import Field
from core.state.cells.readiness import WORD, bit_column, covers
from core.state.cells.shapes import together
from core.state.partition import Partition, known

DEFAULT_INCLUDE = frozenset({"field_schema", "custom_meta", "backend_meta"})


@dataclass(frozen=True, slots=True)
class View:
    """Which parts of a batch to describe. `fields` None: all of the partition; `include` None: the default parts."""

    fields: tuple[str, ...] | None = None
    include: frozenset[str] | None = None
    expand: bool = False
    compact: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Columns, and objects of them by field, are JSON bytes, None where not included. `status` uint8 [rows].

    `backend_meta`, by far the largest where cells are distinct, is JSON in pieces.
    """

    partition_id: str
    revision: int
    global_indexes: Ints
    fields: tuple[str, ...]
    missing_fields: tuple[str, ...]
    status: Bits
    keys: bytes | None = None
    group_ids: bytes | None = None
    field_schema: bytes | None = None
    custom_meta: bytes | None = None
    backend_meta: encode.Pieces | None = None
    field_status: bytes | None = None
    missing_keys: tuple[str, ...] = ()
    next_cursor: str | None = None


class BatchColumns:
    """The columns of some rows and fields of a partition, from one gather of their bit words.

    A revoked cell is not ready; its shape and backend meta are described all the same.
    """

    def __init__(self, partition: Partition, rows: Ints, fields: Sequence[Field], expand: bool) -> None:
        self.partition, self.rows, self.fields, self.expand = partition, rows, fields, expand
        self._at = run_of(rows)
        self._words: Ints = partition.grid.status.gather(self._at)
        self._written = partition.grid.revoked.joined(rows, self._words)
        everywhere: list[int] = np.bitwise_and.reduce(self._written, axis=0).tolist()
        self._everywhere = everywhere

    def status(self) -> Bits:
        """uint8 [rows]: 1 where every field is ready; all 0 without fields."""
        if not self.fields:
            return np.zeros(len(self.rows), np.uint8)
        return covers(self._words, self.partition.mask(self.fields)).view(np.uint8)

    def has(self, fld: Field) -> Bits | None:
        """uint8 [rows]: which rows have the field; None when all do."""
        if self._everywhere[fld.bit // WORD] >> fld.bit % WORD & 1:
            return None
        return bit_column(self._written, fld.bit)

    def field_status(self) -> bytes:
        """Per field a column of 0 and 1."""
        rows = len(self.rows)
        return encode.members((f.quoted, encode.bits(self._ready(f), rows, self.expand)) for f in self.fields)

    def _ready(self, fld: Field) -> Bits | None:
        """uint8 [rows]: for which rows the field is ready; None when it is for all."""
        return self.has(fld) if self._written is self._words else bit_column(self._words, fld.bit)

    def backend_meta(self) -> encode.Pieces:
        """Per field a column of cells; null where nothing is recorded."""
        return encode.pieces((f.quoted, self._cells(f)) for f in self.fields)

    def _cells(self, fld: Field) -> encode.Pieces:
        return fld.backend.column(self._at, len(self.rows), self.has(fld), self.expand)

    def field_schema(self, compact: bool) -> bytes:
        """Per field its schema; shapes only where the field is ragged."""
        shapes = self._shapes(compact)
        return encode.members((f.quoted, self._schema(f, compact, shapes)) for f in self.fields)

    def _schema(self, fld: Field, compact: bool, shapes: Iterator[bytes]) -> bytes:
        if not fld.ragged:
            return fld.head(False)
        if fld.slot is None:
            nothing = encode.constant(b"null", len(self.rows), self.expand)
            return fld.head(compact and fld.rank in (None, 1)) + nothing + b"}"
        return fld.head(compact and fld.rank == 1) + next(shapes) + b"}"

    def _shapes(self, compact: bool) -> Iterator[bytes]:
        """The column of each ragged field that has sizes, in one gather.

        Many fields of a partition have the same shapes (those with a value per answer token), so equal columns are
        encoded once.
        """
        ragged = [f for f in self.fields if f.ragged and f.slot is not None]
        slots = [slot for f in ragged for slot in range(f.slot or 0, (f.slot or 0) + (f.rank or 0))]
        table = np.ascontiguousarray(self.partition.grid.sizes.at(self._at, together(slots)).T)
        encoded: dict[tuple[bytes, bytes | None, int], bytes] = {}
        at = 0
        for f in ragged:
            sizes, has = table[at : at + (f.rank or 0)], self.has(f)
            at += f.rank or 0
            key = (sizes.tobytes(), None if has is None else has.tobytes(), len(sizes))
            if key not in encoded:
                encoded[key] = encode.sizes(sizes, has, self.expand, compact and f.rank == 1)
            yield encoded[key]

    def keys(self) -> bytes:
        """A column of keys; null for rows without one."""
        keys = self.partition.rows.keys
        if keys is None:
            return encode.constant(b"null", len(self.rows), self.expand)
        return encode.column(keys[self._at].tolist(), self.expand)

    def group_ids(self) -> bytes:
        """A column of group ids; null for rows without one."""
        groups = self.partition.groups
        return encode.column(groups.ids[groups.number[self._at]].tolist(), self.expand)

    def custom_meta(self) -> bytes:
        """A column of objects; null for indexes not held."""
        return encode.column(self.partition.custom_meta_of(self._at), self.expand)


def describe(partition: Partition, rows: Ints, indexes: Ints, view: View) -> Batch:
    """The batch meta of `rows`, the rows of the global `indexes` (row 0 for those not held)."""
    fields, missing = known(partition, view.fields if view.fields is not None else tuple(partition.fields))
    columns = BatchColumns(partition, rows, fields, view.expand)
    include = view.include
    if include is None:
        include = DEFAULT_INCLUDE | {"keys"} if partition.rows.by_key else DEFAULT_INCLUDE
    return Batch(
        partition.partition_id,
        partition.revision,
        indexes,
        tuple(f.name for f in fields),
        tuple(missing),
        columns.status(),
        keys=columns.keys() if "keys" in include else None,
        group_ids=columns.group_ids() if "group_ids" in include else None,
        field_schema=columns.field_schema(view.compact) if "field_schema" in include else None,
        custom_meta=columns.custom_meta() if "custom_meta" in include else None,
        backend_meta=columns.backend_meta() if "backend_meta" in include else None,
        field_status=columns.field_status() if "field_status" in include else None,
    )
