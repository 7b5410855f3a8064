"""The state as bytes, and back. No pickle: only the classes named here are ever made.

A value is a plain MessagePack value, or a list whose first item says what it is. A thing that two others hold is
written once and referred to, so that it is one thing again; equal cells are one `bytes` again.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import numpy as np

from core.compression import packer
from core.events import Declared, Kept, Limits, Settings, ShareTerms
from core.state.cells.fields import CellColumn, Field
from core.state.cells.grid import Grid
from core.state.cells.json_buffer import JsonBuffer
from core.state.cells.readiness import NewWords, StatusWords
from core.state.cells.revoked import RevokedCells
from core.state.cells.shapes import SizeTable
from core.state.cells.signatures import Memo
from core.state.clears import Clear, Clears
from core.state.deadlines import Deadlines
from core.state.groups import Groups
from core.state.kept_replies import WINDOW, Block, KeptReplies
from core.state.key_history import KeyHistory, Trail
from core.state.leases import Lease, Leases
from core.state.partition import NOWHERE, Partition
from core.state.rows import Rows
from core.state.sampler_memory import Allotment, Memory, Share
from core.state.service import ServiceState
from core.state.supply.supplies import Supplies
from core.state.tasks import Task
from core.state.ttl import TimedBatch, Ttls

STATE: Final = ("partitions", "deleted", "leases", "clears", "replies", "next_index", "revision", "epoch", "history")
"""What a snapshot holds; the rest of the state is derived, or what the service was started with."""

_STRUCTS: Final = {kind.__name__: kind for kind in (Declared, Kept, Limits, Settings, ShareTerms)}
_CLASSES: Final = {
    kind.__name__: kind
    for kind in (
        Allotment, Block, CellColumn, Clear, Clears, Field, Grid, Groups, JsonBuffer, KeptReplies, KeyHistory, Lease,
        Leases, Memory, Partition, RevokedCells, Rows, Share, SizeTable, Task, TimedBatch, Trail, Ttls,
    )
}  # fmt: skip
_DERIVED: Final[dict[tuple[type, str], Callable[[], object]]] = {
    (Partition, "supplies"): Supplies,
    (Partition, "_located"): lambda: NOWHERE,
    (Grid, "_placements"): Memo,
    (Grid, "_asked"): dict,
    (Field, "_heads"): dict,
    (Lease, "began"): float,
    (Lease, "deadline"): float,
    (Leases, "_deadlines"): Deadlines,
    (Leases, "over_until"): lambda: float("-inf"),
    (KeyHistory, "memo"): lambda: None,
    (KeptReplies, "_by_key"): dict,
    (KeptReplies, "_pack"): lambda: packer(WINDOW),
    (KeptReplies, "most"): int,
    (KeptReplies, "most_bytes"): int,
}
"""What is made anew instead of written."""


def image(state: ServiceState) -> bytes:
    """The state between two changes, as bytes; the same state gives the same bytes."""
    writing = _Writing()
    return msgspec.msgpack.encode([writing.node(getattr(state, name)) for name in STATE])


def restore(state: ServiceState, data: bytes) -> None:
    """Make the state that of an image; its deadlines are still to be set (core.operations.expiry).

    Raises ValueError for bytes that are no image of this version.
    """
    reading = _Reading(state.words)
    nodes = msgspec.msgpack.decode(data)
    if len(nodes) != len(STATE):
        raise ValueError(f"an image has {len(STATE)} parts, these bytes {len(nodes)}")
    bounds = state.replies
    for name, node in zip(STATE, nodes, strict=True):
        setattr(state, name, reading.value(node))
    state.replies.bounded_as(bounds)
    for lease in (*state.leases.open.values(), *state.leases.closed.values()):
        lease.began = state.clock()


def _members(kind: type) -> tuple[str, ...]:
    return tuple(sorted(name for base in kind.__mro__ for name in getattr(base, "__slots__", ())))


class _Writing:
    """One image being written: things by identity, each with the number it was met at."""

    def __init__(self) -> None:
        self._met: dict[int, int] = {}
        self._kept: list[object] = []  # so that no identity is given out twice
        self._by_type: dict[type, Callable[[Any], object]] = {
            list: lambda value: ["l", *map(self.node, value)],
            tuple: lambda value: ["t", *map(self.node, value)],
            set: lambda value: ["s", *map(self.node, sorted(value))],
            dict: lambda value: ["d", *(self.node(part) for pair in value.items() for part in pair)],
            bytearray: lambda value: ["b", bytes(value)],
            np.ndarray: _array,
        }

    def node(self, value: object) -> object:
        """`value` as MessagePack has it. Raises TypeError for a class that is not named here."""
        kind = type(value)
        if value is None or kind in (bool, int, float, str, bytes):
            return value
        write = self._by_type.get(kind)
        if write is not None:
            return write(value)
        if kind in _STRUCTS.values():
            return ["e", kind.__name__, msgspec.msgpack.encode(value)]
        return self._thing(value)

    def _thing(self, value: Any) -> object:
        number = self._met.get(id(value))
        if number is not None:
            return ["r", number]
        self._met[id(value)] = len(self._met)
        self._kept.append(value)
        if isinstance(value, StatusWords):
            return ["w", _array(value.gather(slice(None)))]
        kind = type(value)
        if _CLASSES.get(kind.__name__) is not kind:
            raise TypeError(f"{kind.__name__} has no place in an image")
        members = [name for name in _names(value) if (kind, name) not in _DERIVED]
        return ["c", kind.__name__, *(self.node(part) for name in members for part in (name, getattr(value, name)))]


def _names(value: object) -> list[str]:
    return sorted(value.__dict__) if hasattr(value, "__dict__") else list(_members(type(value)))


def _array(value: "np.ndarray[Any, Any]") -> object:
    if value.dtype == object:
        return ["o", value.tolist()]
    return ["a", value.dtype.str, list(value.shape), value.tobytes()]


class _Reading:
    """One image being read."""

    def __init__(self, new_words: NewWords) -> None:
        self._new_words = new_words
        self._things: list[object] = []
        self._cells: dict[bytes, bytes] = {}
        self._by_tag: dict[str, Callable[[list[Any]], object]] = {
            "l": lambda node: [self.value(part) for part in node[1:]],
            "t": lambda node: tuple(self.value(part) for part in node[1:]),
            "s": lambda node: {self.value(part) for part in node[1:]},
            "d": lambda node: dict(zip(map(self.value, node[1::2]), map(self.value, node[2::2]), strict=True)),
            "b": lambda node: bytearray(node[1]),
            "o": self._objects,
            "a": _read_array,
            "e": lambda node: msgspec.msgpack.decode(node[2], type=_STRUCTS[node[1]]),
            "w": self._words,
            "c": self._thing,
            "r": lambda node: self._things[node[1]],
        }

    def value(self, node: Any) -> Any:
        """The inverse of `_Writing.node`."""
        if type(node) is bytes:
            return self._cells.setdefault(node, node)
        return self._by_tag[node[0]](node) if type(node) is list else node

    def _objects(self, node: list[Any]) -> object:
        array = np.empty(len(node[1]), object)
        array[:] = [self._cells.setdefault(cell, cell) for cell in node[1]]
        return array

    def _words(self, node: list[Any]) -> object:
        words = _read_array(node[1])
        made = self._new_words(0)
        self._things.append(made)
        made.restore(words)
        return made

    def _thing(self, node: list[Any]) -> object:
        kind = _CLASSES[node[1]]
        made = kind.__new__(kind)
        self._things.append(made)
        for name, part in zip(node[2::2], node[3::2], strict=True):
            setattr(made, name, self.value(part))
        for (of, name), new in _DERIVED.items():
            if of is kind:
                setattr(made, name, new())
        return made


def _read_array(node: list[Any]) -> "np.ndarray[Any, Any]":
    _, dtype, shape, data = node
    return np.frombuffer(data, dtype).reshape(shape).copy()
