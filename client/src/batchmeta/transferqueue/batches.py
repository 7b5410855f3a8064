"""Batch meta of the service as TransferQueue's `BatchMeta`: its members as plain values, and the object of them."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from ..batch import BatchMeta
from ..columns import Column, Const
from .schemas import TheirSchemas, placeholder

# The members that TransferQueue's BatchMeta keeps, in all versions that the adapter knows.
SLOTS = (
    "global_indexes",
    "partition_ids",
    "field_schema",
    "production_status",
    "extra_info",
    "custom_meta",
    "_custom_backend_meta",
    "_size",
    "_field_names",
    "_is_ready",
)
_SCALARS = (str, int, float, bool, type(None))


def common_fields(batch: BatchMeta) -> list[str]:
    """The fields that all rows of the batch have; none where the batch does not tell."""
    status = batch.field_status
    if status is None or not len(batch) or batch.created == len(batch):
        return []
    return [name for name in batch.fields if _is_all_ones(status[name])]


def members(
    batch: BatchMeta,
    partition: str,
    fields: Sequence[str],
    status: Sequence[int],
    absent: Sequence[str] = (),
) -> dict[str, Any]:
    """The members of TransferQueue's BatchMeta with these fields. `absent`: names that get an empty schema."""
    size, schemas = len(batch), TheirSchemas()
    known = batch.field_schema or {}
    schema = {name: schemas.of(known[name]) if name in known else placeholder() for name in (*fields, *absent)}
    production = np.array(status, dtype=np.int8)
    return {
        "global_indexes": batch.global_indexes.to_list(),
        "partition_ids": [partition] * size,
        "field_schema": schema,
        "production_status": production,
        "extra_info": {},
        "custom_meta": [{} for _ in range(size)] if batch.custom_meta is None else tags_of(batch.custom_meta),
        "_custom_backend_meta": backend_rows(batch.backend_meta or {}, fields, size),
        "_size": size,
        "_field_names": sorted(schema),
        "_is_ready": size > 0 and bool(production.all()),
    }


def made(kind: Any, values: Mapping[str, Any]) -> Any:
    """TransferQueue's BatchMeta, without the copies and checks of its constructor: the values are nobody else's."""
    batch = kind.__new__(kind)
    batch.__setstate__(tuple(values[name] for name in kind.__slots__))
    return batch


def tags_of(column: Column[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """One dict per row, each its own."""
    if not isinstance(column, Const):
        return [{} if tags is None else tags for tags in column.to_list()]
    tags = column.value or {}
    copy = dict if all(isinstance(value, _SCALARS) for value in tags.values()) else deepcopy
    return [copy(tags) for _ in range(len(column))]


def backend_rows(columns: Mapping[str, Column[Any]], fields: Sequence[str], size: int) -> list[dict[str, Any]]:
    """Per row what the storage backend recorded of these fields; a field without a record is left out."""
    parts = {name: columns[name] for name in fields if name in columns}
    same = {name: column.value for name, column in parts.items() if isinstance(column, Const)}
    same = {name: value for name, value in same.items() if value is not None}
    rows = [dict(same) for _ in range(size)]
    for name, column in parts.items():
        if isinstance(column, Const):
            continue
        for row, value in zip(rows, column.to_list(), strict=True):
            if value is not None:
                row[name] = value
    return rows


def _is_all_ones(column: Column[int]) -> bool:
    return column.value == 1 if isinstance(column, Const) else 0 not in column
