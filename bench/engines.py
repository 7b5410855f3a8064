"""Our engine without a server, filled through the wire's decoders, so that its state is that of a server."""

import json
import time
from collections.abc import Generator
from typing import Any, TypeVar

import msgspec

from app import memory
from app.convert import columns, row_write
from batchmeta.wire.requests import Produce
from core.device import CPU, Device
from core.engine import Engine
from core.operations.produce import RowWrite, insert, produce
from core.reading.batch import View
from core.slices import Sliced, at_once

from .profile import Profile

T = TypeVar("T")
CHUNK = 8192
MOST = 65_536
_decoder = msgspec.json.Decoder(Produce)


def new_engine(device: Device = CPU) -> Engine:
    """An empty one, in a process that treats its memory as the service does."""
    memory.keep_large_blocks()
    memory.collect_rarely()
    memory.freeze()
    return Engine(time.monotonic, time.time, device)


def load(engine: Engine, partition: str, profile: Profile, **parts: bool) -> None:
    """Write all rows of the profile; `parts` as `Profile.body` takes them."""
    for begin in range(0, len(profile.keys), CHUNK):
        write(engine, partition, profile.body(begin, begin + CHUNK, **parts))


def write(engine: Engine, partition: str, body: Any) -> None:
    """One `produce` call with this JSON body, as if journaled at once."""
    request = _decoder.decode(json.dumps(body))
    create, schema = bool(request.create), request.field_schema
    produce(engine, partition, row_write(request), create, schema, columns(request.backend_meta))
    settle(engine)


def whole(made: T | Sliced[T]) -> T:
    """What an operation or a renderer made, all its slices at once."""
    return at_once(made) if isinstance(made, Generator) else made


def settle(engine: Engine) -> None:
    """Drop what a journal would have taken by now."""
    engine.log.clear()
    engine.changed.clear()


def grow(engine: Engine, partition: str, rows: int, fields: tuple[str, ...]) -> None:
    """`rows` rows without keys, all fields produced, in few big calls."""
    schema = {name: {"dtype": "int64", "lengths": {"const": 7}} for name in fields}
    while rows > 0:
        count = min(rows, MOST)
        batch, _ = whole(insert(engine, partition, count, RowWrite(), View()))
        write(engine, partition, {"global_indexes": batch.global_indexes.tolist(), "field_schema": schema})
        rows -= count
