"""From what a caller sent to what events carry: names, schemas and columns, checked for meaning. Raises Invalid.

Shapes of the members (types, ranges) were checked by the wire; the protocols below are how this module sees them.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec
import numpy as np
import orjson

from .cells import CellChecker, Column, Const, to_cells
from .errors import DtypeConflict, Invalid
from .events import Declared, FieldWrite

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SEPARATORS = re.compile(r"[\x00-\x1f\x7f-\x9f/\\]")
MAX_FIELDS = 4096
MAX_ROWS = 65_536
GroupIds = Sequence[str | int | None] | Const


class ConstShape(Protocol):
    """`{"const": [sizes]}`."""

    @property
    def const(self) -> list[int]: ...


class ConstSize(Protocol):
    """`{"const": size}`."""

    @property
    def const(self) -> int: ...


class DeclarationIn(Protocol):
    """A field declaration as it comes in."""

    @property
    def kind(self) -> str | None: ...
    @property
    def dtype(self) -> str | None: ...
    @property
    def ragged(self) -> bool | None: ...
    @property
    def shape(self) -> list[int] | None: ...


class SchemaIn(DeclarationIn, Protocol):
    """A field schema as it comes in."""

    @property
    def shapes(self) -> list[list[int]] | ConstShape | None: ...
    @property
    def lengths(self) -> list[int] | ConstSize | None: ...


def check_name(name: str, loc: str) -> None:
    """Partition, task and worker names."""
    if not 1 <= len(name) <= 200 or name in (".", "..") or _SEPARATORS.search(name):
        raise Invalid.at(loc, "must be 1-200 characters, no control characters, no / or \\, and not . or ..")


def check_keys(keys: Sequence[str], loc: str) -> None:
    """Keys of one call, in one pass."""
    if _CONTROL.search("".join(keys)):
        at = next(i for i, key in enumerate(keys) if _CONTROL.search(key))
        raise Invalid.at(f"{loc}[{at}]", "must hold no control characters")


def check_fields(names: Iterable[str], loc: str) -> None:
    """Field names of one call, in one pass."""
    joined = "".join(names)
    if "," in joined or _CONTROL.search(joined):
        at = next(name for name in names if "," in name or _CONTROL.search(name))
        raise Invalid.at(loc, f"field name {at!r} must hold no comma and no control characters")


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


def field_write(name: str, schema: SchemaIn, rows: int, backend: Column | None) -> FieldWrite:
    """One field's write for `rows` rows; `backend` is checked. Raises DtypeConflict for ranks that differ."""
    loc = f"body.field_schema.{name}"
    kind = _kind(schema, loc)
    cells = b"null" if backend is None else to_cells(backend)
    if kind == "object":
        if schema.shapes is not None or schema.lengths is not None:
            raise Invalid.at(loc, 'an object has no shapes or lengths: give {"kind": "object"} alone')
        return FieldWrite(name, kind, None, False, None, None, None, cells)
    ragged, shape, sizes = _shapes(schema, rows, loc)
    rank = len(shape) if shape is not None else sizes.shape[1] or None  # `shapes` of no rows tell no rank
    packed = None if shape is not None else sizes.tobytes()
    return FieldWrite(name, kind, schema.dtype, ragged, rank, shape, packed, cells)


_NO_SIZES = np.empty((0, 0), "<i4")
_Shapes = tuple[bool, tuple[int, ...] | None, np.ndarray[tuple[int, ...], np.dtype[np.int32]]]


def _shapes(schema: SchemaIn, rows: int, loc: str) -> _Shapes:
    """(ragged, the one shape of all rows, or None and one size vector per row)."""
    given = [name for name in ("shape", "shapes", "lengths") if getattr(schema, name) is not None]
    if len(given) != 1:
        raise Invalid.at(loc, "give exactly one of shape, shapes and lengths")
    if schema.shape is not None:
        return bool(schema.ragged), tuple(schema.shape), _NO_SIZES
    if schema.ragged is False:
        raise Invalid.at(loc, f"{given[0]} are for ragged fields: leave ragged out, or give one shape")
    if schema.lengths is not None:
        return _lengths(schema.lengths, rows, f"{loc}.lengths")
    assert schema.shapes is not None  # noqa: S101  (for the type checker: it is the one given)
    return _shape_list(schema.shapes, rows, f"{loc}.shapes")


def _lengths(lengths: list[int] | ConstSize, rows: int, loc: str) -> _Shapes:
    if not isinstance(lengths, list):
        return True, (lengths.const,), _NO_SIZES
    _check_length(lengths, rows, loc)
    if len(set(lengths)) == 1:
        return True, (lengths[0],), _NO_SIZES
    return True, None, np.array(lengths, "<i4").reshape(-1, 1)


def _shape_list(shapes: list[list[int]] | ConstShape, rows: int, loc: str) -> _Shapes:
    if not isinstance(shapes, list):
        return True, tuple(shapes.const), _NO_SIZES
    _check_length(shapes, rows, loc)
    if len({len(shape) for shape in shapes}) > 1:
        raise DtypeConflict(f"{loc}: shapes of one field have one rank: these differ")
    if rows and all(shape == shapes[0] for shape in shapes):
        return True, tuple(shapes[0]), _NO_SIZES
    return True, None, np.array(shapes, "<i4").reshape(rows, len(shapes[0]) if rows else 0)


def _check_length(values: Sequence[object], rows: int, loc: str) -> None:
    if len(values) != rows:
        raise Invalid.at(loc, f'has {len(values)} values for {rows} rows: give one per row, or {{"const": v}}')


def backend_columns(
    checker: CellChecker, columns: dict[str, Column], allowed: Iterable[str], rows: int
) -> dict[str, Column]:
    """`backend_meta`, checked; it may name only `allowed` fields."""
    stray = [name for name in columns if name not in set(allowed)]
    if stray:
        raise Invalid.at(f"body.backend_meta.{stray[0]}", "names a field that field_schema does not")
    return {
        name: checker.column(column, rows, f"body.backend_meta.{name}", 3)
        for name, column in columns.items()
    }  # fmt: skip


def group_cells(group_ids: GroupIds, rows: int) -> list[bytes]:
    """`group_ids` as JSON values, null for rows without."""
    if isinstance(group_ids, Const):
        return [group_ids.value] * rows
    _check_length(group_ids, rows, "body.group_ids")
    return list(map(bytes, msgspec.json.decode(orjson.dumps(group_ids), type=list[msgspec.Raw])))
