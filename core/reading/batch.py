"""Batch meta: the description of a list of rows (contract#batch-meta), its columns already JSON bytes.

One code path for every reader: by keys, by indexes, of a whole partition, of a claim, of an insert.
"""

from dataclasses import dataclass

import numpy as np

from core.arrays import Bits, Ints, run_of
from core.state.cells import encode
from core.state.cells.asked_fields import CONST, ONE, SHARED, AskedFields, Ragged, SchemaText
from core.state.cells.earlier_columns import EarlierColumns, reference
from core.state.cells.fields import Field
from core.state.cells.readiness import WORD, bit_column, covers
from core.state.cells.shapes import Sizes
from core.state.partition import Partition

FEW = 64  # rows for which to encode all columns of sizes at once costs less than to find the equal ones
DEFAULT_INCLUDE = frozenset({"field_schema", "custom_meta", "backend_meta"})


@dataclass(frozen=True, slots=True)
class View:
    """Which parts of a batch to describe. `fields` None: all of the partition; `include` None: the default parts.

    `share`: a column of a field that equals an earlier field's is told by that field's name (contract#share-columns).
    """

    fields: tuple[str, ...] | None = None
    include: frozenset[str] | None = None
    expand: bool = False
    compact: bool = False
    share: bool = False


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

    A revoked cell is not ready; its shape and backend meta are described all the same. `expand`, `share`: as in View.
    """

    def __init__(
        self, partition: Partition, rows: Ints, asked: AskedFields, expand: bool = False, share: bool = False
    ) -> None:
        self.partition, self.rows, self.asked, self.expand = partition, rows, asked, expand
        self.share = share and len(rows) > 1
        self._at = run_of(rows)
        self._words: Ints = partition.grid.status.gather(self._at)
        self._written = partition.grid.revoked.joined(rows, self._words)
        self._everywhere: list[int] = (
            self._written[0] if len(rows) == 1 else np.bitwise_and.reduce(self._written, axis=0)
        ).tolist()
        self._has_all = asked.all_in(self._everywhere)

    def status(self) -> Bits:
        """uint8 [rows]: 1 where every field is ready; all 0 without fields."""
        if not self.asked.fields:
            return np.zeros(len(self.rows), np.uint8)
        if self._has_all and self._written is self._words:
            return np.ones(len(self.rows), np.uint8)
        return covers(self._words, self.asked.mask).view(np.uint8)

    def has(self, fld: Field) -> Bits | None:
        """uint8 [rows]: which rows have the field; None when all do."""
        if self._has_all or self._everywhere[fld.bit // WORD] >> fld.bit % WORD & 1:
            return None
        return bit_column(self._written, fld.bit)

    def field_status(self) -> bytes:
        """Per field a column of 0 and 1."""
        rows = len(self.rows)
        return encode.members((f.quoted, encode.bits(self._ready(f), rows, self.expand)) for f in self.asked.fields)

    def _ready(self, fld: Field) -> Bits | None:
        """uint8 [rows]: for which rows the field is ready; None when it is for all."""
        return self.has(fld) if self._written is self._words else bit_column(self._words, fld.bit)

    def backend_meta(self) -> encode.Pieces:
        """Per field a column of cells; null where nothing is recorded."""
        constant = self.asked.backend_meta(self._form()) if self._has_all else None
        if constant is not None:
            return constant
        columns = ((f, f.backend.column(self._at, len(self.rows), self.has(f), self.expand)) for f in self.asked.fields)
        earlier = EarlierColumns() if self.share else None
        return encode.pieces((f.quoted, earlier.told(f, column) if earlier else column) for f, column in columns)

    def _form(self) -> str:
        """What the columns of fields with one cell for all rows look like; none that is known where they are arrays."""
        if len(self.rows) == 1:
            return ONE
        return "" if self.expand or not len(self.rows) else SHARED if self.share else CONST

    def field_schema(self, compact: bool) -> bytes:
        """Per field its schema; shapes only where the field is ragged."""
        text = self.asked.schema_text(compact)
        if len(self.rows) == 1 and self._has_all and text.is_rank_1:
            sizes: list[int] = self.partition.grid.sizes.at(self._at, text.slots)[0].tolist()
            return text.of_one_row % tuple(sizes)
        columns = self._sizes(text)
        return text.filled(_shared(text, columns) if self.share else columns)

    def _sizes(self, text: SchemaText) -> list[bytes]:
        """The column of each ragged field, in one gather.

        Many fields of a partition have the same shapes (those with a value per answer token): equal columns are encoded
        once, and are then one and the same `bytes`.
        """
        table = np.ascontiguousarray(self.partition.grid.sizes.at(self._at, text.slots).T)
        if text.ragged and 0 < len(self.rows) <= FEW and self._has_all and text.is_rank_1:
            return encode.few_sizes(table, [one.flat for one in text.ragged], self.expand)
        encoded: dict[tuple[object, ...], bytes] = {}
        return [self._column(one, table, encoded) for one in text.ragged]

    def _column(self, one: Ragged, table: Sizes, encoded: dict[tuple[object, ...], bytes]) -> bytes:
        if one.sizes is None:
            return encode.constant(b"null", len(self.rows), self.expand)
        sizes, has = table[one.sizes], self.has(one.field)
        key = (sizes.tobytes(), None if has is None else has.tobytes(), len(sizes), one.flat)
        found = encoded.get(key)
        if found is None:
            found = encoded[key] = encode.sizes(sizes, has, self.expand, one.flat)
        return found

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


def _shared(text: SchemaText, columns: list[bytes]) -> list[bytes]:
    """The first of equal columns, and references to it. Lengths are not the same as shapes."""
    first: dict[tuple[bytes, bool], Field] = {}
    owners = [first.setdefault((c, one.flat), one.field) for c, one in zip(columns, text.ragged, strict=True)]
    told = zip(columns, owners, text.ragged, strict=True)
    return [column if owner is one.field else reference(owner) for column, owner, one in told]


def describe(partition: Partition, rows: Ints, indexes: Ints, view: View) -> Batch:
    """The batch meta of `rows`, the rows of the global `indexes` (row 0 for those not held)."""
    asked = partition.grid.asked(view.fields)
    columns = BatchColumns(partition, rows, asked, view.expand, view.share)
    include = view.include
    if include is None:
        include = DEFAULT_INCLUDE | {"keys"} if partition.rows.has_keys else DEFAULT_INCLUDE
    return Batch(
        partition.partition_id,
        partition.revision,
        indexes,
        asked.names,
        asked.missing,
        columns.status(),
        keys=columns.keys() if "keys" in include else None,
        group_ids=columns.group_ids() if "group_ids" in include else None,
        field_schema=columns.field_schema(view.compact) if "field_schema" in include else None,
        custom_meta=columns.custom_meta() if "custom_meta" in include else None,
        backend_meta=columns.backend_meta() if "backend_meta" in include else None,
        field_status=columns.field_status() if "field_status" in include else None,
    )
