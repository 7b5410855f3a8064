"""The scalar types of the wire: names, indexes, sizes, dtypes and columns.

Only shape is said here; what a value means is checked in `core`. Patterns are for the OpenAPI:
`core.names` applies them to whole lists at once, a hundred times cheaper than one regular expression per key.
"""

from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Raw, Struct

MAX_ROWS = 65_536
MAX_RANK = 8
INT64_MAX = 2**63 - 1
CONTROL = r"\x00-\x1f\x7f-\x9f"

Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        description="1-200 characters, no control characters, no / or \\, not . or ..",
        extra_json_schema={"pattern": rf"^(?!\.\.?$)[^{CONTROL}/\\]+$"},
    ),
]
CheckpointName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        description="A-Z, a-z, 0-9, and from the second on . _ -",
        extra_json_schema={"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$"},
    ),
]
Key = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=512,
        description="a sample's key, unique in its partition",
        extra_json_schema={"pattern": rf"^[^{CONTROL}]+$"},
    ),
]
FieldName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        description="name of a field: no control characters, no comma",
        extra_json_schema={"pattern": rf"^[^{CONTROL},]+$"},
    ),
]
Index = Annotated[int, Meta(ge=0, le=INT64_MAX, description="a sample's global index")]
GroupId = Annotated[str, Meta(min_length=1, max_length=512)] | Annotated[int, Meta(ge=-(2**63), le=INT64_MAX)]
Size = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Shape = Annotated[list[Size], Meta(max_length=MAX_RANK, description="sizes; [] is a scalar")]
LeaseSeconds = Annotated[float, Meta(gt=0, le=86_400, description="seconds a lease lasts")]
TtlSeconds = Annotated[float, Meta(gt=0, le=86_400, description="seconds in which a field must be produced")]
Rows = Annotated[int, Meta(ge=1, le=MAX_ROWS, description="a number of rows")]

Indexes = Annotated[list[Index], Meta(max_length=MAX_ROWS, description="rows by global index")]
Keys = Annotated[list[Key], Meta(max_length=MAX_ROWS, description="rows by key")]
GroupList = Annotated[list[GroupId], Meta(max_length=MAX_ROWS, description="rows of these groups, in index order")]
FieldNames = Annotated[
    list[FieldName], Meta(max_length=MAX_ROWS, description="fields asked for; absent: all known now")
]

Dtype = Literal[
    "bfloat16", "bits16", "bits1x8", "bits2x4", "bits4x2", "bits8", "bool", "complex128", "complex32", "complex64",
    "float16", "float32", "float4_e2m1fn_x2", "float64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "int1", "int16", "int2", "int3", "int32", "int4", "int5", "int6", "int64",
    "int7", "int8", "qint32", "qint8", "quint2x4", "quint4x2", "quint8", "uint1", "uint16", "uint2", "uint3",
    "uint32", "uint4", "uint5", "uint6", "uint64", "uint7", "uint8",
]  # fmt: skip
DTYPES: frozenset[str] = frozenset(get_args(Dtype))


def _column_schema(item: dict[str, Any]) -> dict[str, Any]:
    constant = {
        "type": "object",
        "properties": {"const": {**item, "description": "the value that every row has"}},
        "required": ["const"],
        "additionalProperties": False,
    }
    return {"oneOf": [{"type": "array", "items": item}, constant]}


def _column(item: dict[str, Any], description: str) -> Meta:
    return Meta(description=description, extra_json_schema=_column_schema(item))


def _shared_column(item: dict[str, Any], description: str) -> Meta:
    said = "the earlier field whose column is the same; only with `share_columns`"
    reference = {
        "type": "object",
        "properties": {"same_as": {"type": "string", "description": said}},
        "required": ["same_as"],
        "additionalProperties": False,
    }
    forms = [*_column_schema(item)["oneOf"], reference]
    return Meta(description=description, extra_json_schema={"oneOf": forms})


_CELL: dict[str, Any] = {}
_BIT = {"type": "integer", "enum": [0, 1]}
_NULLABLE_SIZE = {"type": ["integer", "null"], "minimum": 0}
_NULLABLE_SHAPE = {"type": ["array", "null"], "items": {"type": "integer", "minimum": 0}}

# Reply columns: one value per row, or {"const": v}. Kept as bytes on both sides; the client decodes on first use.
CellColumn = Annotated[Raw, _column(_CELL, "a JSON value per row, or {const: value}")]
MetaColumn = Annotated[Raw, _column({"type": ["object", "null"]}, "an object per row (null: not held), or {const}")]
KeyColumn = Annotated[Raw, _column({"type": ["string", "null"]}, "a key or null per row, or {const: null}")]
GroupColumn = Annotated[Raw, _column({"type": ["string", "integer", "null"]}, "a group id or null per row, or {const}")]
BitColumn = Annotated[Raw, _column(_BIT, "0 or 1 per row, or {const}")]
SharedCellColumn = Annotated[Raw, _shared_column(_CELL, "a JSON value per row, or {const: value}, or {same_as: field}")]
SizeColumn = Annotated[
    Raw, _shared_column(_NULLABLE_SIZE, "a length per row (null: lacks the field), or {const}, or {same_as: field}")
]
ShapeColumn = Annotated[
    Raw, _shared_column(_NULLABLE_SHAPE, "a shape per row (null: lacks the field), or {const}, or {same_as: field}")
]
AttemptColumn = Annotated[Raw, _column({"type": "integer", "minimum": 1}, "hand-outs per row, or {const}")]
IndexArray = Annotated[
    Raw,
    Meta(
        description="the rows' global indexes, in row order",
        extra_json_schema={"type": "array", "items": {"type": "integer", "minimum": 0}},
    ),
]
BitArray = Annotated[
    Raw,
    Meta(description="0 or 1 per row", extra_json_schema={"type": "array", "items": _BIT}),
]
BitRows = Annotated[
    Raw,
    Meta(
        description="per row an array of 0 or 1, one per field in the order asked",
        extra_json_schema={"type": "array", "items": {"type": "array", "items": _BIT}},
    ),
]


class ConstCell(Struct, forbid_unknown_fields=True, frozen=True):
    """A request column in which every row has the same JSON value."""

    const: Annotated[Raw, Meta(description="the value that every row has")]


class ConstGroup(Struct, forbid_unknown_fields=True, frozen=True):
    """A `group_ids` column in which every row belongs to one group."""

    const: Annotated[GroupId, Meta(description="the value that every row has")]


class ConstSize(Struct, forbid_unknown_fields=True, frozen=True):
    """A `lengths` column in which every row has one length."""

    const: Annotated[Size, Meta(description="the value that every row has")]


class ConstShape(Struct, forbid_unknown_fields=True, frozen=True):
    """A `shapes` column in which every row has one shape."""

    const: Annotated[Shape, Meta(description="the value that every row has")]


Cells = Annotated[list[Raw], Meta(max_length=MAX_ROWS)] | ConstCell
GroupIds = Annotated[list[GroupId | None], Meta(max_length=MAX_ROWS)] | ConstGroup
Lengths = Annotated[list[Size], Meta(max_length=MAX_ROWS)] | ConstSize
Shapes = Annotated[list[Shape], Meta(max_length=MAX_ROWS)] | ConstShape
