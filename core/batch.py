"""Batch meta: the description of a list of rows (api.md section 6), its columns already JSON bytes.

One code path for every reader: by keys, by indexes, of a whole partition, of a claim, of an insert.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from . import encode
from .arrays import Bits, Ints
from .fields import Field
from .partition import Partition, known
from .status import bit_column, mask_of

DEFAULT_INCLUDE = frozenset({"field_schema", "custom_meta", "backend_meta"})


@dataclass(frozen=True, slots=True)
class View:
    """What of a batch is asked for. `fields` None: all the partition knows; `include` None: the contract's default."""

    fields: tuple[str, ...] | None = None
    include: frozenset[str] | None = None
    expand: bool = False
    compact: bool = False


@dataclass(frozen=True, slots=True)
class FieldView:
    """A field's schema in a batch; `shapes` or `lengths` is a JSON column where the field is ragged."""

    kind: str
    dtype: str | None = None
    ragged: bool = False
    shape: tuple[int, ...] | None = None
    shapes: bytes | None = None
    lengths: bytes | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Columns are JSON bytes, None where not included. `status` uint8 [rows]."""

    partition_id: str
    revision: int
    global_indexes: Ints
    fields: tuple[str, ...]
    missing_fields: tuple[str, ...]
    status: Bits
    keys: bytes | None = None
    group_ids: bytes | None = None
    field_schema: dict[str, FieldView] | None = None
    custom_meta: bytes | None = None
    backend_meta: dict[str, bytes] | None = None
    field_status: dict[str, bytes] | None = None
    missing_keys: tuple[str, ...] = ()
    next_cursor: str | None = None


class Cut:
    """Some rows of a partition seen through some fields: one gather of bit words serves all that is asked of them."""

    def __init__(self, partition: Partition, rows: Ints, fields: Sequence[Field], expand: bool) -> None:
        self.partition, self.rows, self.fields, self.expand = partition, rows, fields, expand
        self._gathered: torch.Tensor = partition.status.gather(rows)
        self._words: Ints = self._gathered.cpu().numpy()
        self._everywhere: Ints = np.bitwise_and.reduce(self._words, axis=0)

    def status(self) -> Bits:
        """uint8 [rows]: 1 where every field is produced; all 0 when there is none to ask for."""
        if not self.fields:
            return np.zeros(len(self.rows), np.uint8)
        status = self.partition.status
        return status.complete(self._gathered, self.partition.mask(self.fields))

    def has(self, fld: Field) -> Bits | None:
        """uint8 [rows]: which rows have the field; None when all do."""
        mask = mask_of([fld.bit], len(self._everywhere))
        if (self._everywhere & mask == mask).all():
            return None
        return bit_column(self._words, fld.bit)

    def field_status(self) -> dict[str, bytes]:
        """Per field a column of 0 and 1."""
        ones = np.ones(len(self.rows), np.uint8)
        return {f.name: encode.bits(ones if (has := self.has(f)) is None else has, self.expand) for f in self.fields}

    def backend_meta(self) -> dict[str, bytes]:
        """Per field a column of cells; null where nothing is recorded."""
        return {f.name: self._cells(f) for f in self.fields}

    def _cells(self, fld: Field) -> bytes:
        cells = fld.backend.at(self.rows, self.has(fld))
        if isinstance(cells, bytes):
            return encode.constant(cells, len(self.rows), self.expand)
        return encode.column(cells, self.expand)

    def field_schema(self, compact: bool) -> dict[str, FieldView]:
        """Per field its schema; shapes only where the field is ragged."""
        return {f.name: self._schema(f, compact) for f in self.fields}

    def _schema(self, fld: Field, compact: bool) -> FieldView:
        if fld.kind != "tensor":
            return FieldView("object")
        if not fld.ragged:
            return FieldView("tensor", fld.dtype, False, fld.shape)
        flat = compact and fld.rank in (None, 1)
        shapes = self._shapes(fld, flat)
        if flat:
            return FieldView("tensor", fld.dtype, True, lengths=shapes)
        return FieldView("tensor", fld.dtype, True, shapes=shapes)

    def _shapes(self, fld: Field, flat: bool) -> bytes:
        has = self.has(fld)
        if fld.sizes is None:
            return encode.constant(b"null", len(self.rows), self.expand)
        return encode.sizes(fld.sizes[self.rows], has, self.expand, flat)

    def keys(self) -> bytes:
        """A column of keys; null for rows without one."""
        keys = self.partition.rows.keys
        if keys is None:
            return encode.constant(b"null", len(self.rows), self.expand)
        return encode.column(keys[self.rows].tolist(), self.expand)

    def group_ids(self) -> bytes:
        """A column of group ids; null for rows without one."""
        groups = self.partition.groups
        return encode.column(groups.ids[groups.number[self.rows]].tolist(), self.expand)

    def custom_meta(self) -> bytes:
        """A column of objects; null for indexes not held."""
        return encode.column(self.partition.custom_meta_of(self.rows), self.expand)


def describe(partition: Partition, rows: Ints, indexes: Ints, view: View) -> Batch:
    """The batch meta of `rows`, which stand for the global `indexes` (row 0 for those not held)."""
    fields, missing = known(partition, view.fields if view.fields is not None else tuple(partition.fields))
    cut = Cut(partition, rows, fields, view.expand)
    include = view.include
    if include is None:
        include = DEFAULT_INCLUDE | {"keys"} if partition.rows.keys is not None else DEFAULT_INCLUDE
    return Batch(
        partition.partition_id,
        partition.revision,
        indexes,
        tuple(f.name for f in fields),
        tuple(missing),
        cut.status(),
        keys=cut.keys() if "keys" in include else None,
        group_ids=cut.group_ids() if "group_ids" in include else None,
        field_schema=cut.field_schema(view.compact) if "field_schema" in include else None,
        custom_meta=cut.custom_meta() if "custom_meta" in include else None,
        backend_meta=cut.backend_meta() if "backend_meta" in include else None,
        field_status=cut.field_status() if "field_status" in include else None,
    )
