"""What can be seen of an engine, held against the model; and every byte of its state, for what must not change.

`check` reads as callers do. `dump` looks inside: arrays, dicts and their order, all but what is derived or not state.
"""

import json
from typing import Any

import numpy as np
import torch

from core.batch import View
from core.engine import Engine
from core.operations.consumption import read_consumption
from core.operations.partitions import get_partition, list_partitions
from core.operations.read import list_keys, lookup_keys, read_backend_meta, read_production
from core.partition import Partition as Held
from core.selection import Selector
from tests.core.world import MANY, look
from tests.model.model import Plain
from tests.model.plain import Partition, Row, Schema

NOT_STATE = {"clock", "wall", "cells", "device", "forms", "log", "changed", "supplies", "_located"}
DERIVED = {"device", "_plans", "_heads", "_view", "_heap", "_made", "memo"}
NOBODY = Row(-1, -1, None)


def dump(value: Any) -> Any:
    """`value` and all it holds, comparable with ==."""
    if isinstance(value, torch.Tensor):
        value = value.cpu().numpy()
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return [(key, dump(item)) for key, item in value.items()]
    if type(value).__module__.startswith("core.") and not hasattr(value, "__struct_fields__"):
        names = getattr(value, "__slots__", None) or vars(value)
        skipped = NOT_STATE if isinstance(value, Engine | Held) else DERIVED
        return [(name, dump(getattr(value, name))) for name in sorted(names) if name not in skipped]
    return value


def check(engine: Engine, plain: Plain) -> None:
    """Everything observable."""
    assert engine.revision == plain.revision
    assert engine.next_index == plain.state.next_index
    assert engine.deleted == plain.state.deleted
    lines, cursor = list_partitions(engine, "", MANY, None)
    assert ([line.partition_id for line in lines], cursor) == (list(plain.state.partitions), None)
    for name, partition in plain.state.partitions.items():
        check_summary(engine, name, partition)
        check_rows(engine, name, partition)
        for task in [*partition.tasks, "nobody"]:
            check_consumption(engine, name, partition, task)


def check_summary(engine: Engine, name: str, partition: Partition) -> None:
    summary = get_partition(engine, name)
    assert summary.revision == partition.revision == engine.revision_of(name)
    assert summary.num_samples == len(partition.rows)
    assert {field.name: made for field, made in summary.fields} == {
        known: len(partition.holders(known)) for known in partition.fields
    }
    consumed = {task: (len(kept.consumed) + kept.cleared, 0, 0) for task, kept in partition.tasks.items()}
    assert summary.tasks == consumed
    assert (summary.limits.expected_samples, summary.limits.max_samples) == (partition.expected, partition.most)
    assert summary.is_sealed == partition.is_sealed


def check_rows(engine: Engine, name: str, partition: Partition) -> None:
    rows = list(partition.rows.values())
    assert batch(engine, name, None, None, False) == described(partition, list(partition.rows), None, False)
    held = engine.partitions[name].rows
    places = held.locate(np.array(list(partition.rows), np.int64))
    assert held.revision[places].tolist() == [row.revision for row in rows]
    names = tuple(partition.fields)
    matrix = read_production(engine, name, names, MANY, None).matrix
    assert matrix.tolist() == [[int(known in row.shapes) for known in names] for row in rows]
    _, lines, _ = list_keys(engine, name, "k", MANY, None)
    listed = [(json.loads(line.key), line.global_index, json.loads(line.custom_meta), line.revision) for line in lines]
    assert listed == [(row.key, row.index, row.custom, row.revision) for row in rows if row.key is not None]
    keys = lookup_keys(engine, name, list(partition.rows))[1]
    assert [json.loads(key) for key in keys] == [row.key for row in rows]


def check_consumption(engine: Engine, name: str, partition: Partition, task: str) -> None:
    found = read_consumption(engine, name, task, False, MANY, None)
    kept = partition.tasks.get(task)
    consumed = kept.consumed if kept else set()
    cleared = kept.cleared if kept else 0
    expected = max(0, (partition.expected or 0) - partition.inserted)
    assert found.status is not None
    assert found.status.tolist() == [int(index in consumed) for index in partition.rows]
    assert found.counts.consumed == len(consumed) + cleared
    assert found.counts.total == len(partition.rows) + cleared + expected
    assert found.counts.done == partition.is_done(task)


def batch(engine: Engine, name: str, indexes: list[int] | None, fields: list[str] | None, compact: bool) -> Any:
    """The engine's batch meta as plain values."""
    found = look(engine, name, indexes, fields, expand=True, compact=compact)
    selector = Selector(indexes=found.global_indexes.tolist())
    backend = read_backend_meta(engine, name, selector, _expanded(fields), MANY, None)
    assert backend.columns == found.backend_meta
    order = found.fields if fields is not None else sorted(found.fields)
    return {
        "global_indexes": found.global_indexes.tolist(),
        "fields": list(order),
        "missing": list(found.missing_fields),
        "status": found.status.tolist(),
        "keys": json.loads(found.keys or b""),
        "group_ids": json.loads(found.group_ids or b""),
        "custom_meta": json.loads(found.custom_meta or b""),
        "backend_meta": json.loads(found.backend_meta or b""),
        "field_status": json.loads(found.field_status or b""),
        "field_schema": {known: _schema(said) for known, said in json.loads(found.field_schema or b"").items()},
    }


def _expanded(fields: list[str] | None) -> View:
    return View(None if fields is None else tuple(fields), expand=True)


def _schema(said: dict[str, Any]) -> dict[str, Any]:
    return said if said["kind"] == "object" else {name: value for name, value in said.items() if name != "kind"}


def described(partition: Partition, indexes: list[int], fields: list[str] | None, compact: bool) -> Any:
    """The same from the model, as api.md section 6 defines it."""
    asked = list(dict.fromkeys(fields)) if fields is not None else sorted(partition.fields)
    known = [name for name in asked if name in partition.fields]
    rows = [partition.rows.get(index, NOBODY) for index in indexes]
    return {
        "global_indexes": indexes,
        "fields": known,
        "missing": [name for name in asked if name not in partition.fields],
        "status": [int(bool(known) and all(name in row.shapes for name in known)) for row in rows],
        "keys": [row.key for row in rows],
        "group_ids": [row.group for row in rows],
        "custom_meta": [None if row is NOBODY else row.custom for row in rows],
        "backend_meta": {name: [row.cells.get(name) for row in rows] for name in known},
        "field_status": {name: [int(name in row.shapes) for row in rows] for name in known},
        "field_schema": {name: _expected_schema(partition, name, rows, compact) for name in known},
    }


def _expected_schema(partition: Partition, name: str, rows: list[Row], compact: bool) -> dict[str, Any]:
    schema: Schema = partition.fields[name]
    if schema.kind == "object":
        return {"kind": "object"}
    out: dict[str, Any] = {"dtype": schema.dtype, "ragged": schema.ragged}
    if not schema.ragged:
        made = [row.shapes[name] for row in partition.holders(name)]
        shape = made[0] if made else schema.shape
        return out | {"shape": None if shape is None else list(shape)}
    shapes = [row.shapes.get(name) for row in rows]
    if compact and schema.rank in (None, 1):
        return out | {"lengths": [None if shape is None else shape[0] for shape in shapes]}
    return out | {"shapes": [None if shape is None else list(shape) for shape in shapes]}
