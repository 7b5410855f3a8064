"""Writes an image by columns: one column for each class and member.

What the containers in a column hold is a column too. So the number of steps depends on classes and members alone.

A column is a list whose first item says of what kind all of its values are; `image_reader.py` has the same kinds, in
the same order. Long columns of numbers are buffers, which stand after the rest and are read without being decoded.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, compress, count
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np

from core.state.cells.readiness import StatusWords

from .members import CLASSES, DERIVED, STRUCTS, members

Kind = tuple[str | int, ...]
PLAIN: Final = ("plain",)
_BY_TYPE: Final[Mapping[type, Kind]] = {
    type(None): PLAIN, bool: PLAIN, int: PLAIN, float: PLAIN, str: ("text",), bytes: ("text",),
    list: ("list",), tuple: ("tuple",), set: ("set",), dict: ("dict",), bytearray: ("bytes",),
}  # fmt: skip
MAGIC: Final = b"columns\x01"


class _Kinds(dict[type, Kind]):
    """The kind of each type of value, but for arrays. Raises TypeError for a class that has no place in an image."""

    def __missing__(self, of: type) -> Kind:
        name = of.__name__
        if STRUCTS.get(name) is of:
            kind: Kind = ("struct", name)
        elif CLASSES.get(name) is of:
            kind = ("thing", name)
        elif issubclass(of, StatusWords):
            kind = ("words",)
        else:
            raise TypeError(f"{name} has no place in an image")
        self[of] = kind
        return kind


class ImageWriter:
    """One image being written."""

    def __init__(self) -> None:
        self._kinds = _Kinds(_BY_TYPE)
        self._texts: defaultdict[str | bytes, int] = defaultdict(count().__next__)  # each different one, numbered
        self._things: defaultdict[str, list[object]] = defaultdict(list)  # by class, in the order they were met
        self._numbers: dict[int, int] = {}  # of things, by identity: their places in those lists
        self._buffers: list[bytes] = []
        self._by_kind: dict[str, Callable[[list[Any]], list[Any]]] = {
            "plain": lambda values: [values],
            "text": self._text,
            "list": self._flat,
            "tuple": self._flat,
            "set": lambda values: self._flat([sorted(value) for value in values]),
            "dict": self._dicts,
            "bytes": lambda values: [_lengths(values), self._buffer(b"".join(values))],
            "struct": lambda values: [msgspec.msgpack.encode(values)],
            "words": lambda values: [self.column([words.gather(slice(None)) for words in values])],
            "cells": lambda values: [_lengths(values), self.column(_chained(array.tolist() for array in values))],
            "array": lambda values: [_lengths(values), self._buffer(b"".join(array.tobytes() for array in values))],
            "thing": self._refer,
        }

    def written(self, roots: list[object]) -> bytes:
        """The image of these values and all that they hold."""
        column, batches = self.column(roots), []
        done: defaultdict[str, int] = defaultdict(int)
        while left := [name for name, things in self._things.items() if len(things) > done[name]]:
            for name in left:
                fresh = self._things[name][done[name] :]
                done[name] += len(fresh)
                batches.append([name, len(fresh), self._members(CLASSES[name], fresh)])
        head = msgspec.msgpack.encode([column, batches, list(self._texts), _lengths(self._buffers)])
        return b"".join((MAGIC, len(head).to_bytes(8, "little"), head, *self._buffers))

    def _members(self, kind: type, things: list[object]) -> list[Any]:
        names = [name for name in members(kind, things[0]) if (kind, name) not in DERIVED]
        return [[name, self.column(list(map(attrgetter(name), things)))] for name in names]

    def column(self, values: list[Any]) -> list[Any]:
        """The column of any values."""
        types = set(map(type, values))
        if np.ndarray in types:
            kinds = list(map(self._kind, values))
        elif len({self._kinds[each] for each in types}) == 1:
            return self._of_one(self._kinds[types.pop()], values)
        else:
            kinds = list(map(self._kinds.__getitem__, map(type, values)))
        codes = {kind: code for code, kind in enumerate(dict.fromkeys(kinds))}
        if len(codes) <= 1:
            return self._of_one(kinds[0] if kinds else PLAIN, values)
        of = np.fromiter(map(codes.__getitem__, kinds), np.int16, len(kinds))
        parts = [self._of_one(kind, list(compress(values, (of == code).tolist()))) for kind, code in codes.items()]
        return ["mixed", self._buffer(of.tobytes()), parts]

    def _of_one(self, kind: Kind, values: list[Any]) -> list[Any]:
        return [*kind, *self._by_kind[str(kind[0])](values)]

    def _kind(self, value: object) -> Kind:
        if not isinstance(value, np.ndarray):
            return self._kinds[type(value)]
        return ("cells",) if value.dtype == object else ("array", value.dtype.str, *value.shape[1:])

    def _buffer(self, data: bytes) -> int:
        self._buffers.append(data)
        return len(self._buffers) - 1

    def _text(self, values: list[str | bytes]) -> list[Any]:
        return [self._buffer(np.fromiter(map(self._texts.__getitem__, values), np.int32, len(values)).tobytes())]

    def _flat(self, values: list[Any]) -> list[Any]:
        return [_lengths(values), self.column(_chained(values))]

    def _dicts(self, values: list[dict[Any, Any]]) -> list[Any]:
        items = _chained(each.values() for each in values)
        return [_lengths(values), self.column(_chained(values)), self.column(items)]

    def _refer(self, values: list[Any]) -> list[Any]:
        numbers, known = [], self._numbers
        things = self._things[type(values[0]).__name__]
        for value in values:
            number = known.get(id(value))
            if number is None:
                number = known[id(value)] = len(things)
                things.append(value)
            numbers.append(number)
        return [self._buffer(np.array(numbers, np.int32).tobytes())]


def _lengths(values: Iterable[Any]) -> list[int]:
    return list(map(len, values))


def _chained(values: Iterable[Iterable[Any]]) -> list[Any]:
    return list(chain.from_iterable(values))
