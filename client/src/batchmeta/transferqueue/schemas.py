"""Field schemas of TransferQueue as those of the wire, and back (contract#field-schema).

Theirs is a dict: `dtype` (torch's), `shape`, `is_nested`, `is_non_tensor`, and `per_sample_shapes` of a nested field.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..columns import Column
from ..schema import FieldSchema, dtype_name

Theirs = dict[str, Any]


def wire_schema(theirs: Mapping[str, Any], global_indexes: Sequence[int]) -> dict[str, Any]:
    """The schema of one written field. ValueError for a tensor without dtype or shapes."""
    if theirs.get("is_non_tensor") or theirs.get("dtype") is None:
        return {"kind": "object"}
    dtype = _dtype_name(theirs["dtype"])
    shapes = theirs.get("per_sample_shapes")
    if not theirs.get("is_nested") or shapes is None:
        return {"dtype": dtype, "shape": list(theirs["shape"])}
    if isinstance(shapes, Mapping):
        shapes = [shapes[index] for index in global_indexes]
    if len(shapes) != len(global_indexes):
        raise ValueError(f"per_sample_shapes has {len(shapes)} shapes for {len(global_indexes)} samples")
    if set(map(len, shapes)) == {1}:
        return {"dtype": dtype, "lengths": [length for (length,) in shapes]}
    return {"dtype": dtype, "shapes": list(map(list, shapes))}


def part(theirs: Mapping[str, Any], all_indexes: Sequence[int], rows: Sequence[int]) -> Mapping[str, Any]:
    """The schema for some of the samples that it was made for, with their shapes alone."""
    shapes = theirs.get("per_sample_shapes")
    if shapes is None or isinstance(shapes, Mapping) or len(rows) == len(all_indexes):
        return theirs
    return {**theirs, "per_sample_shapes": dict(zip(all_indexes, shapes, strict=True))}


class TheirSchemas:
    """Schemas of one batch. Fields that share a column of the reply share the list of shapes made of it."""

    def __init__(self) -> None:
        self._lists: dict[int, list[Any]] = {}

    def of(self, schema: FieldSchema) -> Theirs:
        """TransferQueue's dict of one field."""
        if schema.kind == "object":
            return {"dtype": None, "shape": None, "is_nested": False, "is_non_tensor": True}
        shape = None if schema.ragged or schema.shape is None else torch.Size(schema.shape)
        theirs: Theirs = {
            "dtype": None if schema.dtype is None else _dtype(schema.dtype),
            "shape": shape,
            "is_nested": schema.ragged,
            "is_non_tensor": False,
        }
        if schema.ragged:
            theirs["per_sample_shapes"] = self._shapes(schema)
        return theirs

    def _shapes(self, schema: FieldSchema) -> list[Any]:
        if schema.lengths is not None:
            return self._made(schema.lengths, lambda cell: None if cell is None else (cell,))
        return self._made(schema.shapes, lambda cell: None if cell is None else tuple(cell))

    def _made(self, column: Column[Any] | None, shape_of: Any) -> list[Any]:
        if column is None:
            return []
        found = self._lists.get(id(column))
        if found is None:
            found = self._lists[id(column)] = list(map(shape_of, column.to_list()))
        return found


def conflict(name: str, value: Any, known: FieldSchema) -> str | None:
    """How data that is about to be written differs from what the partition has, or None. `value`: a batch of it."""
    if not isinstance(value, torch.Tensor):
        return None if known.kind == "object" else f"field {name!r} holds tensors in this partition, not objects"
    if known.kind == "object":
        return f"field {name!r} holds objects in this partition, not tensors"
    if known.dtype is not None and _dtype(known.dtype) != value.dtype:
        return f"field {name!r} is {known.dtype} in this partition, not {_dtype_name(value.dtype)}"
    rank, there = max(value.dim() - 1, 1), _rank(known)
    if there is not None and there != rank:
        return f"field {name!r} has rank {there} per sample in this partition, not {rank}"
    return None


def conflicts(data: Any, known: Mapping[str, FieldSchema]) -> str | None:
    """The first conflict of these fields, or None."""
    for name, value in data.items():
        said = conflict(name, value, known[name]) if name in known else None
        if said is not None:
            return said
    return None


def _rank(known: FieldSchema) -> int | None:
    if known.shape is not None:
        return len(known.shape)
    if known.lengths is not None:
        return 1
    shapes = [] if known.shapes is None else known.shapes.to_list()
    return next((len(shape) for shape in shapes if shape is not None), None)


def is_known(theirs: Mapping[str, Any]) -> bool:
    """A schema that tells what the field is; that of a field without samples does not."""
    return bool(theirs.get("is_non_tensor")) or theirs.get("dtype") is not None


def own_schema(theirs: Mapping[str, Any]) -> FieldSchema:
    """Kind, dtype and, where it is the same for all, shape of a field."""
    if theirs.get("is_non_tensor"):
        return FieldSchema("object")
    shape = theirs.get("shape")
    return FieldSchema("tensor", _dtype_name(theirs["dtype"]), shape=None if shape is None else tuple(shape))


def placeholder() -> Theirs:
    """The schema of a field that no sample has yet."""
    return {"dtype": None, "shape": None, "is_nested": False, "is_non_tensor": False}


_NAMES: dict[Any, str] = {}
_DTYPES: dict[str, torch.dtype] = {}


def _dtype_name(dtype: Any) -> str:
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = dtype_name(dtype, "dtype")
    return name


def _dtype(name: str) -> torch.dtype:
    dtype = _DTYPES.get(name)
    if dtype is None:
        dtype = _DTYPES[name] = getattr(torch, name)
    return dtype
