"""What can be seen of a service, held against the model; and every byte of its state, for what must not change.

`check` reads as callers do. `dump` looks inside: arrays, dicts and their order, all but what is derived or not state.
"""

from typing import Any

import numpy as np

from core.engine import Engine
from core.reading.batch import View
from core.state.cells.readiness import StatusWords
from core.state.leases import claim_id
from core.state.partition import Partition as Held
from tests.columns import in_full
from tests.core.world import ALL_PARTS
from tests.model import calls
from tests.model.clears import fields_of
from tests.model.plain import Partition, Row, Schema
from tests.model.production import Model
from tests.model.service import Service
from tests.model.state import Clear, Lease
from tests.model.tasks import Task

NOT_STATE = {
    "clock",
    "wall",
    "token",
    "cells",
    "device",
    "words",
    "signatures",
    "log",
    "forms",
    "run",
    "pending",
    "changed",
    "supplies",
    "_located",
}
DERIVED = {
    "over_until",
    "_pack",
    "_placements",
    "_asked",
    "_heads",
    "began",
    "deadline",
    "_deadlines",
    "_at",
    "_heap",
    "_made",
    "memo",
}
NOBODY = Row(-1, -1, None)


def dump(value: Any, *without: str) -> Any:
    """`value` and all it holds, comparable with ==; attributes of the names `without` are left out."""
    if isinstance(value, Engine):
        value.settle()
    if isinstance(value, StatusWords):
        value = value.gather(slice(None))
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return [(key, dump(item, *without)) for key, item in value.items()]
    if type(value).__module__.startswith("core.") and not hasattr(value, "__struct_fields__"):
        names = getattr(value, "__slots__", None) or vars(value)
        skipped = (NOT_STATE if isinstance(value, Engine | Held) else DERIVED).union(without)
        return [(name, dump(getattr(value, name), *without)) for name in sorted(names) if name not in skipped]
    return bytes(value) if isinstance(value, bytearray) else value


def check(service: Service, plain: Model) -> None:
    """Everything observable."""
    engine = service.engine
    assert engine.revision == plain.revision
    assert engine.next_index == plain.state.next_index
    assert engine.deleted == plain.state.deleted
    listed = service.look(calls.list_partitions())
    assert [line["partition_id"] for line in listed["partitions"]] == list(plain.state.partitions)
    assert service.look(calls.list_claims())["claims"] == [
        seen(lease, plain.now) for lease in plain.state.leases.values()
    ]
    for lease in plain.state.closed.values():
        assert service.look(calls.get_claim(claim_id(lease.number))) == seen(lease, plain.now)
    check_clears(service, plain)
    for name, partition in plain.state.partitions.items():
        assert summary(service.look(calls.get(name))) == meant_summary(name, partition)
        check_rows(service, name, partition)
        for task in [*partition.tasks, "nobody"]:
            assert service.look(calls.consumption_of(name, task)) == consumption(name, partition, task)
        for task, kept in partition.tasks.items():
            assert service.look(calls.dead(name, task))["dead"] == dead(partition, kept)


def check_clears(service: Service, plain: Model) -> None:
    there = {**plain.state.clears, **plain.state.settled}
    lines = [shown_clear(there[number]) for number in sorted(there)]
    assert service.look(calls.list_clears())["clears"] == lines
    for number, clear in there.items():
        meant = {**shown_clear(clear), "revision": plain.revision_of(clear.partition)}
        if clear.state == "pending":
            meant["plan"] = meant_plan(plain.state.partitions[clear.partition], clear)
        assert service.look(calls.get_clear(clear_id(number))) == meant


def clear_id(number: int) -> str:
    return f"x{number:x}"


def shown_clear(clear: Clear) -> dict[str, Any]:
    """A clear in a list; the wall clock stands still."""
    return {
        "clear_id": clear_id(clear.number),
        "partition_id": clear.partition,
        "state": clear.state,
        "count": len(clear.indexes),
        "age_s": 0.0,
    }


def meant_plan(partition: Partition, clear: Clear) -> dict[str, Any]:
    keys = [partition.clearing[index].key for index in clear.indexes]
    return {"global_indexes": clear.indexes, "keys": keys, "fields": fields_of(partition, clear)}


def seen(lease: Lease, now: float) -> dict[str, Any]:
    """A claim as others see it."""
    return {
        "claim_id": claim_id(lease.number),
        "partition_id": lease.partition,
        "task": lease.task,
        "worker": lease.worker,
        "open": len(lease.open),
        "attempt": max(lease.attempts.values(), default=0),
        "age_s": now - lease.began,
        "expires_in_s": lease.deadline - now if lease.open else 0.0,
    }


def dead(partition: Partition, task: Task) -> list[dict[str, Any]]:
    return [
        {
            "global_index": index,
            "key": partition.rows[index].key,
            "reason": task.dead[index],
            "attempts": task.attempts.get(index, 0),
        }
        for index in sorted(task.dead)
        if index in partition.rows
    ]


def summary(said: dict[str, Any]) -> dict[str, Any]:
    """A partition as GET answers it, of its fields only the counts."""
    made = {name: field["produced"] for name, field in said["fields"].items()}
    return {**said, "fields": made, "created_at": None}


def meant_summary(name: str, partition: Partition) -> dict[str, Any]:
    return {
        "partition_id": name,
        "revision": partition.revision,
        "state": "sealed" if partition.is_sealed else "open",
        "created_at": None,
        "expected_samples": partition.expected,
        "max_samples": partition.most,
        "max_attempts": partition.attempts,
        "num_samples": len(partition.rows),
        "num_fields": len(partition.fields),
        "fields": {name: sum(row.has(name) for row in partition.rows.values()) for name in partition.fields},
        "tasks": {task: account(partition, kept) for task, kept in partition.tasks.items()},
    }


def account(partition: Partition, task: Task) -> dict[str, int]:
    """What is consumed counts when it is gone or clearing; what is leased, held or dead, only while there."""
    there = partition.rows.keys()
    consumed = len(task.consumed) + task.cleared
    leased = {*task.leased, *task.held} & there
    return {"consumed": consumed, "leased": len(leased), "dead": len(task.dead.keys() & there)}


def check_rows(service: Service, name: str, partition: Partition) -> None:
    rows = list(partition.rows.values())
    assert batch(service, name, None, None, False, share=True) == described(
        partition, list(partition.rows), None, False
    )
    held = service.engine.partitions[name].rows
    places = held.locate(np.array(list(partition.rows), np.int64))
    assert held.revision[places].tolist() == [row.revision for row in rows]
    names = tuple(partition.fields)
    if names:
        matrix = service.look(calls.statuses(name, names))["production_status"]
        assert matrix == [[int(row.has(known)) for known in names] for row in rows]
    listed = service.look(calls.keys(name, "k"))["keys"]
    assert listed == [key_line(row) for row in rows if row.key is not None]
    assert service.look(calls.lookup(name, list(partition.rows)))["keys"] == [row.key for row in rows]


def key_line(row: Row) -> dict[str, Any]:
    return {"key": row.key, "global_index": row.index, "custom_meta": row.custom, "revision": row.revision}


def consumption(name: str, partition: Partition, task: str) -> dict[str, Any]:
    kept = partition.tasks.get(task, Task())
    missing = max(0, (partition.expected or 0) - partition.inserted)
    return {
        "partition_id": name,
        "revision": partition.revision,
        **account(partition, kept),
        "total": len(partition.rows) + kept.consumed_gone(partition) + missing,
        "done": partition.is_done(task),
        "global_indexes": list(partition.rows),
        "consumption_status": [int(index in kept.consumed) for index in partition.rows],
        "next_cursor": None,
    }


def batch(
    service: Service,
    name: str,
    indexes: list[int] | None,
    fields: list[str] | None,
    compact: bool,
    share: bool = False,
) -> Any:
    """Batch meta of a read, and that a read of backend meta says the same. With `share`, columns told once put back."""
    found = in_full(service.look(calls.batch(name, indexes, fields, compact, share)))
    places = service.look(calls.backend_meta(name, found["global_indexes"], fields))
    assert places["backend_meta"] == found["backend_meta"]
    return {**shown(found), "fields": found["fields"] if fields is not None else sorted(found["fields"])}


def shown(found: dict[str, Any]) -> dict[str, Any]:
    """The members of a batch that the model tells of."""
    names = ("global_indexes", "fields", "missing_fields", "production_status")
    columns = ("keys", "group_ids", "custom_meta", "backend_meta", "field_status")
    told = {member: found[member] for member in names + columns if member in found}
    if "field_schema" in found:
        told["field_schema"] = {known: _schema(said) for known, said in found["field_schema"].items()}
    return told


def assert_described(found: dict[str, Any], partition: Partition, view: View) -> None:
    """The reply describes its rows in the parts that were asked for, and in no other."""
    told = shown(in_full(found))
    meant = described(partition, found["global_indexes"], None, view.compact)
    assert {**told, "fields": sorted(told["fields"])} == {member: meant[member] for member in told}
    if view.include is not None:
        assert told.keys() & ALL_PARTS == view.include


def _schema(said: dict[str, Any]) -> dict[str, Any]:
    return said if said["kind"] == "object" else {name: value for name, value in said.items() if name != "kind"}


def described(partition: Partition, indexes: list[int], fields: list[str] | None, compact: bool) -> dict[str, Any]:
    """The same from the model, as contract#batch-meta defines it."""
    asked = list(dict.fromkeys(fields)) if fields is not None else sorted(partition.fields)
    known = [name for name in asked if name in partition.fields]
    rows = [partition.rows.get(index, NOBODY) for index in indexes]
    return {
        "global_indexes": indexes,
        "fields": known,
        "missing_fields": [name for name in asked if name not in partition.fields],
        "production_status": [int(bool(known) and all(row.has(name) for name in known)) for row in rows],
        "keys": [row.key for row in rows],
        "group_ids": [row.group for row in rows],
        "custom_meta": [None if row is NOBODY else row.custom for row in rows],
        "backend_meta": {name: [row.cells.get(name) for row in rows] for name in known},
        "field_status": {name: [int(row.has(name)) for row in rows] for name in known},
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
