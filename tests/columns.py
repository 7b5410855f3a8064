"""A reader of batch meta with `share_columns`, written by the contract alone: every reference is held to it."""

import json
from typing import Any

Json = Any


def in_full(batch: Json) -> Json:
    """The batch with every column in full. AssertionError where a reference is not as contract#share-columns says."""
    whole = {**batch}
    if "backend_meta" in batch:
        whole["backend_meta"] = _resolved(batch["backend_meta"], batch["size"])
    if "field_schema" in batch:
        whole["field_schema"] = _schemas(batch["field_schema"], batch["size"])
    return whole


def told_twice(columns: dict[str, Json]) -> list[Json]:
    """Columns that stand in full more than once."""
    seen = [json.dumps(column) for column in columns.values()]
    return [column for column in seen if seen.count(column) > 1 and "same_as" not in column]


def _schemas(schemas: dict[str, Json], size: int) -> dict[str, Json]:
    out = {name: {**schema} for name, schema in schemas.items()}
    for member in ("lengths", "shapes"):
        columns = {name: schema[member] for name, schema in schemas.items() if member in schema}
        for name, column in _resolved(columns, size).items():
            out[name][member] = column
    return out


def _resolved(columns: dict[str, Json], size: int) -> dict[str, Json]:
    told: dict[str, Json] = {}
    out: dict[str, Json] = {}
    for name, column in columns.items():
        if isinstance(column, dict) and "same_as" in column:
            assert list(column) == ["same_as"], column
            assert size > 1, "a reference in a batch of one row"
            out[name] = told[column["same_as"]]  # told before, and in full
        else:
            out[name] = told[name] = column
    return out
