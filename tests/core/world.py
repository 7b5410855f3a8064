"""A small world for tests of the engine: a clock that stands still, schemas as the wire gives them, short verbs.

No test lives here. Journaled changes are kept as the bytes that the executor would write, so that any engine can be
replayed.
"""

import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import msgspec

from core.apply import apply
from core.device import CPU, Device
from core.engine import Engine
from core.events import Change
from core.operations.produce import RowWrite, Written, insert, produce
from core.operations.read import read
from core.reading.batch import Batch, View
from core.reading.selectors import Selector
from core.slices import at_once
from core.state.cells.json_cells import Column

ALL_PARTS = frozenset({"keys", "group_ids", "field_schema", "custom_meta", "backend_meta", "field_status"})
MANY = 65_536


@dataclass
class Clock:
    """Seconds that pass only when a test says so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class Same(msgspec.Struct, frozen=True):
    """`{"const": …}` of a `shapes` or `lengths` member."""

    const: list[int] | int


class Schema(msgspec.Struct, frozen=True):
    """A field schema as it comes in (contract#field-schema)."""

    dtype: str | None = None
    shape: list[int] | None = None
    ragged: bool | None = None
    shapes: list[list[int]] | Same | None = None
    lengths: list[int] | Same | None = None
    kind: str | None = None


TENSOR = Schema("int64", [4])
OBJECT = Schema(kind="object")


DEVICE_VARIABLE = "TEST_DEVICE"  # `torch`: torch's CPU, `npu`: the simulated one


def on_torch(name: str) -> Device:
    """A device of torch by torch's own name, its CPU too, which no setting chooses. torch is imported here."""
    from core.state.cells import torch_readiness

    return Device(f"torch {name}", torch_readiness.on(name))


def device_tested() -> Device:
    """The one that this process tests: the host, or what its environment says."""
    name = os.environ.get(DEVICE_VARIABLE)
    return CPU if name is None else on_torch({"torch": "cpu", "npu": "npu:0"}[name])


def new_engine(device: Device | None = None, max_cell_bytes: int = 65_536) -> Engine:
    return Engine(Clock(), lambda: 1_000_000.0, device or device_tested(), max_cell_bytes)


@dataclass
class Book:
    """What a journal would hold: one payload per drain."""

    payloads: list[bytes] = field(default_factory=list)

    def take(self, engine: Engine) -> bool:
        """Keep what the engine has not journaled yet; whether there was anything."""
        changes = list(engine.log)
        if changes:
            self.payloads.append(msgspec.msgpack.encode(changes))
        engine.log.clear()
        engine.changed.clear()
        return bool(changes)

    def replayed(self) -> Engine:
        """An engine after a restart."""
        engine = new_engine()
        for payload in self.payloads:
            for change in msgspec.msgpack.decode(payload, type=list[Change]):
                apply(engine, change)
        engine.changed.clear()
        return engine


def add(engine: Engine, partition: str, count: int = 1, **parts: object) -> list[int]:
    """New rows without keys; their indexes."""
    made = insert(engine, partition, count, RowWrite(**parts), View())  # type: ignore[arg-type]
    batch, created = at_once(made) if isinstance(made, Generator) else made
    assert created == count
    return batch.global_indexes.tolist()


def add_keys(engine: Engine, partition: str, keys: list[str], **parts: object) -> list[int]:
    """Rows of these keys; their indexes."""
    made = insert(engine, partition, None, RowWrite(keys=keys, **parts), View())  # type: ignore[arg-type]
    batch, _ = at_once(made) if isinstance(made, Generator) else made
    return batch.global_indexes.tolist()


def write(
    engine: Engine,
    partition: str,
    indexes: Sequence[int],
    fields: Sequence[str] | dict[str, Schema],
    backend: dict[str, Column] | None = None,
) -> Written:
    """Produce `fields` for these rows, as tensors of one shape where no schema is given."""
    schemas = fields if isinstance(fields, dict) else dict.fromkeys(fields, TENSOR)
    return produce(engine, partition, RowWrite(list(indexes)), False, schemas, backend or {})


def look(
    engine: Engine,
    partition: str,
    indexes: Sequence[int] | None = None,
    fields: Sequence[str] | None = None,
    include: frozenset[str] | None = ALL_PARTS,
    **view: bool,
) -> Batch:
    """Batch meta of these indexes, or of all rows."""
    wanted = View(None if fields is None else tuple(fields), include, **view)
    return read(engine, partition, Selector(indexes=indexes), wanted, False, MANY, None)
