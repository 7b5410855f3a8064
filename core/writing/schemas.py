"""Checks the schemas and columns of a write for meaning, and turns them into what events carry. Raises Invalid.

The wire has checked types and ranges; the protocols below describe what it passes on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import orjson

from core.arrays import Ints
from core.errors import DtypeConflict, Invalid
from core.events import Declared
from core.names import check_fields
from core.state.cells.json_cells import NULL, CellChecker, Cells, Column, json_values
from core.state.cells.shapes import Sizes
from core.state.cells.signatures import FieldKey, FieldSignature, Memo, SignatureKey, to_bytes


class ConstShape(Protocol):
    """`{"const": [sizes]}`."""

    @property
    def const(self) -> list[int]: ...


class ConstSize(Protocol):
    """`{"const": size}`."""

    @property
    def const(self) -> int: ...


class ConstGroup(Protocol):
    """`{"const": group_id}`."""

    @property
    def const(self) -> str | int: ...


GroupIds = Sequence[str | int | None] | ConstGroup


class DeclarationIn(Protocol):
    """An incoming field declaration."""

    @property
    def kind(self) -> str | None: ...
    @property
    def dtype(self) -> str | None: ...
    @property
    def ragged(self) -> bool | None: ...
    @property
    def shape(self) -> list[int] | None: ...


class SchemaIn(DeclarationIn, Protocol):
    """An incoming field schema."""

    @property
    def shapes(self) -> list[list[int]] | ConstShape | None: ...
    @property
    def lengths(self) -> list[int] | ConstSize | None: ...


def declared(name: str, schema: DeclarationIn) -> Declared:
    """A declaration for the partition's settings."""
    loc = f"body.fields.{name}"
    kind = _kind(schema, loc)
    if kind == "object":
        return Declared(name, kind, None, False, None)
    shape = None if schema.shape is None else tuple(schema.shape)
    return Declared(name, kind, schema.dtype, bool(schema.ragged), shape)


def _kind(schema: DeclarationIn, loc: str) -> str:
    if schema.kind == "object":
        if (schema.dtype, schema.ragged, schema.shape) != (None, None, None):
            raise Invalid.at(loc, 'an object has no dtype, ragged or shape: give {"kind": "object"} alone')
        return "object"
    if schema.dtype is None:
        raise Invalid.at(loc, 'give a dtype (a tensor), or {"kind": "object"}')
    return "tensor"


SizeColumn = int | Sequence[int]


@dataclass(frozen=True, slots=True)
class FieldsWrite:
    """The fields of a write: `signature` (core.state.cells.signatures), `sizes` int32 [rows or 1, slots], cells."""

    signature: bytes
    sizes: Sizes
    backend: list[bytes | list[bytes]]

    def at(self, rows: Ints) -> "FieldsWrite":
        """The part for these rows."""
        sizes = self.sizes if len(self.sizes) == 1 else self.sizes[rows]
        places = rows.tolist()
        cells = [cell if isinstance(cell, bytes) else [cell[i] for i in places] for cell in self.backend]
        return FieldsWrite(self.signature, sizes, cells)


def fields_write(
    signatures: Memo[SignatureKey, bytes], schemas: Mapping[str, SchemaIn], rows: int, cells: Mapping[str, Cells]
) -> FieldsWrite:
    """The write of these schemas for `rows` rows; `cells` are checked. Raises DtypeConflict for ranks that differ.

    A signature seen before is found by its key, without the sizes, and not checked again.
    """
    keys: list[FieldKey] = []
    columns: list[SizeColumn] = []
    for name, schema in schemas.items():
        lengths, shapes, shape = schema.lengths, schema.shapes, schema.shape
        rank: int | None = None
        if lengths is not None:
            columns.append(_lengths(lengths, rows, name))
        elif shapes is not None:
            rank, parts = _shapes(shapes, rows, name)
            columns += parts
        elif shape is not None:
            rank = len(shape)
            columns += shape
        keys.append((name, schema.kind, schema.dtype, schema.ragged, rank, type(lengths), type(shapes), type(shape)))
    key = tuple(keys)
    signature = signatures.get(key) or signatures.put(key, _signature(schemas, key))
    return FieldsWrite(signature, _sizes(columns, rows), [cells.get(name, NULL) for name in schemas])


def _lengths(lengths: list[int] | ConstSize, rows: int, name: str) -> SizeColumn:
    if not isinstance(lengths, list):
        return lengths.const
    if len(lengths) != rows:
        raise _wrong_length(lengths, rows, f"body.field_schema.{name}.lengths")
    return lengths[0] if rows == 1 else lengths


def _shapes(shapes: list[list[int]] | ConstShape, rows: int, name: str) -> tuple[int | None, Sequence[SizeColumn]]:
    """(rank, one column per dimension); the rank is None for no rows."""
    if not isinstance(shapes, list):
        return len(shapes.const), shapes.const
    if len(shapes) != rows:
        raise _wrong_length(shapes, rows, f"body.field_schema.{name}.shapes")
    if rows == 1:
        return len(shapes[0]), shapes[0]
    if len(set(map(len, shapes))) > 1:
        raise DtypeConflict(f"body.field_schema.{name}.shapes: shapes of one field have one rank: these differ")
    return len(shapes[0]) if rows else None, list(zip(*shapes, strict=True))


def _sizes(columns: list[SizeColumn], rows: int) -> Sizes:
    if rows == 1 or all(isinstance(column, int) for column in columns):
        return np.array([columns], "<i4")
    sizes = np.empty((rows, len(columns)), "<i4")
    for at, column in enumerate(columns):
        sizes[:, at] = column
    return sizes


def _signature(schemas: Mapping[str, SchemaIn], key: SignatureKey) -> bytes:
    check_fields(schemas, "body.field_schema")
    return to_bytes([_field_signature(one[0], schemas[one[0]], one[4]) for one in key])


def _field_signature(name: str, schema: SchemaIn, rank: int | None) -> FieldSignature:
    loc = f"body.field_schema.{name}"
    given = [part for part in ("shape", "shapes", "lengths") if getattr(schema, part) is not None]
    if _kind(schema, loc) == "object":
        if given:
            raise Invalid.at(loc, 'an object has no shapes or lengths: give {"kind": "object"} alone')
        return FieldSignature(name, "object", None, False, None)
    if len(given) != 1:
        raise Invalid.at(loc, "give exactly one of shape, shapes and lengths")
    if given != ["shape"] and schema.ragged is False:
        raise Invalid.at(loc, f"{given[0]} are for ragged fields: leave ragged out, or give one shape")
    is_ragged = given != ["shape"] or bool(schema.ragged)
    return FieldSignature(name, "tensor", schema.dtype, is_ragged, 1 if given == ["lengths"] else rank)


def _wrong_length(values: Sequence[object], rows: int, loc: str) -> Invalid:
    return Invalid.at(loc, f'has {len(values)} values for {rows} rows: give one per row, or {{"const": v}}')


def backend_columns(
    checker: CellChecker, columns: Mapping[str, Column], allowed: Mapping[str, object], rows: int
) -> dict[str, Cells]:
    """`backend_meta`, checked; it may name only `allowed` fields."""
    if not columns.keys() <= allowed.keys():
        stray = min(columns.keys() - allowed.keys())
        raise Invalid.at(f"body.backend_meta.{stray}", "names a field that field_schema does not")
    return checker.columns(columns, rows, "body.backend_meta", 3)


def group_cells(group_ids: GroupIds, rows: int) -> list[bytes]:
    """`group_ids` as JSON values, null for rows without."""
    if not isinstance(group_ids, Sequence):
        return [orjson.dumps(group_ids.const)] * rows
    if len(group_ids) != rows:
        raise _wrong_length(group_ids, rows, "body.group_ids")
    return json_values(group_ids)
