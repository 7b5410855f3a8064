"""The schema of one field in batch meta (contract#field-schema): what its tensor is, and its shape for each row."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from reprlib import repr as short
from typing import Any, Literal, cast

from msgspec import UNSET, Raw, Struct, UnsetType, structs

from .arguments import maybe, refuse, text, wholes
from .columns import LENGTHS, SHAPES, Array, Column, Const, Rows, full, joined
from .json_values import raw
from .lazy_columns import Places
from .lazy_fields import Received
from .wire import replies
from .wire.types import DTYPES


class FieldSchema(Struct, frozen=True):
    """`kind` "object" has no more to it. A tensor has a `dtype` and either one `shape` or, ragged, one per row.

    `shape` is None until it is known. Of a ragged field one of `shapes` and (rank 1, `compact`) `lengths` is there;
    a cell is None where the row lacks the field.
    """

    # No dataclass: of a batch one is made for each field, and that would take fifteen times as long.

    kind: Literal["tensor", "object"]
    dtype: str | None = None
    ragged: bool = False
    shape: tuple[int, ...] | None = None
    shapes: Column[list[int] | None] | None = None
    lengths: Column[int | None] | None = None

    @classmethod
    def from_wire(cls, reply: replies.FieldOut, size: int, others: "Received[FieldSchema]") -> "FieldSchema":
        """The schema of a batch of `size` rows; `others`: of the same reply, whose columns it may refer to."""
        return cls(
            kind=reply.kind,
            dtype=None if reply.dtype is UNSET else reply.dtype,
            ragged=reply.ragged is True,
            shape=tuple(reply.shape) if isinstance(reply.shape, list) else None,
            shapes=None
            if reply.shapes is UNSET
            else SHAPES.column(reply.shapes, size, lambda name: others.referred(name).shapes),
            lengths=None
            if reply.lengths is UNSET
            else LENGTHS.column(reply.lengths, size, lambda name: others.referred(name).lengths),
        )

    def to_wire(self) -> replies.FieldOut:
        """The form that the service sends, and takes in `produce`."""
        if self.kind == "object":
            return replies.FieldOut(kind="object")
        shape = maybe(wholes, self.shape, "shape")
        return replies.FieldOut(
            kind="tensor",
            dtype=UNSET if self.dtype is None else dtype_name(self.dtype, "dtype"),
            ragged=self.ragged,
            shape=UNSET if self.ragged else shape,
            shapes=UNSET if self.shapes is None else self.shapes.to_raw(),
            lengths=UNSET if self.lengths is None else self.lengths.to_raw(),
        )

    def shape_of(self, row: int) -> tuple[int, ...] | None:
        """The shape of one row, None if unknown or if a ragged field is not there. A scalar's is `()`."""
        if self.lengths is not None:
            length = self.lengths[row]
            return None if length is None else (length,)
        if self.shapes is not None:
            shape = self.shapes[row]
            return None if shape is None else tuple(shape)
        return self.shape

    def take(self, rows: Rows) -> "FieldSchema":
        """The schema for some of the rows, as `Column.take` takes them."""
        return structs.replace(
            self,
            shapes=None if self.shapes is None else self.shapes.take(rows),
            lengths=None if self.lengths is None else self.lengths.take(rows),
        )

    def at(self, rows: Places) -> "FieldSchema":
        """As `take`, for positions that are Python's own numbers."""
        return structs.replace(
            self,
            shapes=None if self.shapes is None else self.shapes.at(rows),
            lengths=None if self.lengths is None else self.lengths.at(rows),
        )


def full_schema(schemas: Mapping[str, replies.FieldOut], name: str) -> replies.FieldOut:
    """One of these, its column told in full. ValueError where it names a field that has no such column."""
    schema = schemas[name]
    lengths = schema.lengths if schema.lengths is UNSET else full(schema.lengths, partial(_lengths_of, schemas))
    shapes = schema.shapes if schema.shapes is UNSET else full(schema.shapes, partial(_shapes_of, schemas))
    if lengths is schema.lengths and shapes is schema.shapes:
        return schema
    return structs.replace(schema, lengths=lengths, shapes=shapes)


def _lengths_of(schemas: Mapping[str, replies.FieldOut], name: str) -> Raw | UnsetType:
    return schemas[name].lengths if name in schemas else UNSET


def _shapes_of(schemas: Mapping[str, replies.FieldOut], name: str) -> Raw | UnsetType:
    return schemas[name].shapes if name in schemas else UNSET


def wire_schemas(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Field schemas by name as a request holds them: dtypes by torch's name, the rest as it is."""
    if not isinstance(given, Mapping):
        refuse("a mapping from field names to schemas", given, where)
    taken = given if _are_usual(given.values()) else {n: _members(part, where, n) for n, part in given.items()}
    return cast("dict[str, Any]", raw(taken, where))


def dtype_name(given: object, where: str) -> str:
    """Torch's name without `torch.`, of a text, a dtype of torch or numpy, or a scalar type of numpy.

    ValueError for what torch knows by another name or not at all.
    """
    said = given.__name__ if isinstance(given, type) else str(given)
    name = text(given if isinstance(given, str) else said, where).removeprefix("torch.")
    if name not in DTYPES:
        raise ValueError(f"{where}: {short(given)} is no dtype; give torch's name, such as float32 or int64")
    return name


def _are_usual(parts: Collection[Any]) -> bool:
    """Dicts with torch's own names, which go out as they are."""
    if set(map(type, parts)) != {dict}:
        return False
    dtypes = [part["dtype"] for part in parts if "dtype" in part]
    return set(map(type, dtypes)) <= {str} and DTYPES.issuperset(dtypes)


def _members(part: Any, where: str, name: str) -> Any:
    if isinstance(part, Struct):
        part = _there(part)
    elif not isinstance(part, Mapping):
        refuse("a mapping of a schema's members", part, f"{where}.{name}")
    dtype = part.get("dtype")
    return part if dtype is None else {**part, "dtype": dtype_name(dtype, f"{where}.{name}.dtype")}


def _there(part: Struct) -> dict[str, Any]:
    if isinstance(part, FieldSchema) and part.kind == "object":
        return {"kind": "object"}
    members = {name: getattr(part, name) for name in part.__struct_fields__}
    return {name: value for name, value in members.items() if value is not None and value is not UNSET}


def joined_schema(schemas: Sequence[FieldSchema], sizes: Sequence[int]) -> FieldSchema:
    """One schema for batches of these sizes, one after the other. ValueError if dtype or kind differ.

    Where shapes differ the result is ragged, and rows of a part that was not get that part's one shape, there or not.
    """
    first = schemas[0]
    if any((schema.kind, schema.dtype) != (first.kind, first.dtype) for schema in schemas):
        kinds = sorted({schema.dtype or schema.kind for schema in schemas})
        raise ValueError(f"one field cannot be {' and '.join(kinds)} at once")
    shapes = {schema.shape for schema in schemas if not schema.ragged and schema.shape is not None}
    if not any(schema.ragged for schema in schemas) and len(shapes) < 2:
        return structs.replace(first, shape=next(iter(shapes), None))
    ragged = FieldSchema(first.kind, first.dtype, ragged=True)
    if all(_has_lengths(schema) for schema in schemas):
        return structs.replace(ragged, lengths=joined([_lengths(*part) for part in zip(schemas, sizes, strict=True)]))
    return structs.replace(ragged, shapes=joined([_shapes(*part) for part in zip(schemas, sizes, strict=True)]))


def _has_lengths(schema: FieldSchema) -> bool:
    return schema.lengths is not None or (not schema.ragged and (schema.shape is None or len(schema.shape) == 1))


def _lengths(schema: FieldSchema, size: int) -> Column[int | None]:
    if schema.lengths is not None:
        return schema.lengths
    return Const(None if schema.shape is None else schema.shape[0], size)


def _shapes(schema: FieldSchema, size: int) -> Column[list[int] | None]:
    if schema.shapes is not None:
        return schema.shapes
    if schema.lengths is not None:
        return Array(None if length is None else [length] for length in schema.lengths)
    return Const(None if schema.shape is None else list(schema.shape), size)
