"""Reads an image back: it makes all objects empty, then sets their members column by column."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, repeat
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from core.arrays import Cells
from core.state.cells.readiness import NewWords, StatusWords

from .image_writer import MAGIC
from .members import CLASSES, DERIVED, STRUCTS


class ImageReader:
    """One image being read. Equal texts are one object."""

    def __init__(self, new_words: NewWords) -> None:
        self._new_words = new_words
        self._things: dict[str, list[Any]] = {}
        self._data = memoryview(b"")
        self._places: list[tuple[int, int]] = []
        self._texts: Cells = np.empty(0, object)
        self._by_kind: dict[str, Callable[..., list[Any]]] = {
            "plain": lambda values: values,
            "text": lambda at: self._text(at).tolist(),
            "list": lambda lengths, flat: _cut(list, lengths, self.column(flat)),
            "tuple": lambda lengths, flat: _cut(tuple, lengths, self.column(flat)),
            "set": lambda lengths, flat: _cut(set, lengths, self.column(flat)),
            "dict": self._dicts,
            "bytes": lambda lengths, at: [bytearray(part) for part in _parts(self._buffer(at), lengths)],
            "struct": lambda name, data: msgspec.msgpack.decode(data, type=list[STRUCTS[name]]),  # type: ignore[valid-type]
            "words": lambda arrays: list(map(self._words, self.column(arrays))),
            "cells": self._cells,
            "array": self._arrays,
            "thing": lambda name, at: [self._things[name][number] for number in self._numbers(at)],
            "mixed": self._mixed,
        }

    def read(self, data: bytes) -> list[Any]:
        """The values that the image was made of. Raises ValueError for other bytes, anything for damaged ones."""
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError("it has not the parts of an image of this version")
        start = len(MAGIC) + 8
        begin = start + int.from_bytes(data[len(MAGIC) : start], "little")
        self._data = memoryview(data)
        roots, batches, texts, lengths = msgspec.msgpack.decode(self._data[start:begin])
        for length in lengths:
            self._places.append((begin, begin + length))
            begin += length
        self._texts = np.empty(len(texts), object)
        self._texts[:] = texts
        made = [self._made(name, count) for name, count, _ in batches]
        for things, (name, _, columns) in zip(made, batches, strict=True):
            self._fill(CLASSES[name], things, columns)
        return self.column(roots)

    def _made(self, name: str, count: int) -> list[Any]:
        things: list[Any] = list(map(object.__new__, repeat(CLASSES[name], count)))
        self._things.setdefault(name, []).extend(things)
        return things

    def _fill(self, kind: type, things: list[Any], columns: list[tuple[str, list[Any]]]) -> None:
        for name, column in columns:
            _set(things, name, self.column(column))
        for (of, name), new in DERIVED.items():
            if of is kind:
                _set(things, name, [new() for _ in things])

    def column(self, node: list[Any]) -> list[Any]:
        """The inverse of `ImageWriter.column`."""
        return self._by_kind[node[0]](*node[1:])

    def _buffer(self, at: int) -> memoryview:
        begin, end = self._places[at]
        return self._data[begin:end]

    def _numbers(self, at: int) -> list[int]:
        return list(np.frombuffer(self._buffer(at), np.int32).tolist())

    def _text(self, at: int) -> Cells:
        return self._texts[np.frombuffer(self._buffer(at), np.int32)]

    def _dicts(self, lengths: list[int], keys: list[Any], items: list[Any]) -> list[Any]:
        return _cut(dict, lengths, zip(self.column(keys), self.column(items), strict=True))

    def _words(self, array: Any) -> StatusWords:
        made = self._new_words(0)
        made.restore(array)
        return made

    def _cells(self, lengths: list[int], flat: list[Any]) -> list[Any]:
        if flat[0] == "text":
            return _split(self._text(flat[1]), lengths)
        cells = np.empty(sum(lengths), object)
        cells[:] = self.column(flat)
        return _split(cells, lengths)

    def _arrays(self, dtype: str, *rest: Any) -> list[Any]:
        *shape, lengths, at = rest
        return _split(np.frombuffer(self._buffer(at), dtype).reshape(sum(lengths), *shape), lengths)

    def _mixed(self, at: int, parts: list[list[Any]]) -> list[Any]:
        values: list[Iterator[Any]] = [iter(self.column(part)) for part in parts]
        return [next(values[code]) for code in np.frombuffer(self._buffer(at), np.int16).tolist()]


def _set(things: list[Any], name: str, values: list[Any]) -> None:
    deque(map(setattr, things, repeat(name), values), 0)


def _cut(kind: Callable[[Iterable[Any]], Any], lengths: list[int], values: Iterable[Any]) -> list[Any]:
    left = iter(values)
    return [kind(islice(left, length)) for length in lengths]


def _parts(data: Any, lengths: list[int]) -> Iterator[Any]:
    begin = 0
    for length in lengths:
        yield data[begin : begin + length]
        begin += length


def _split(array: "npt.NDArray[Any]", lengths: list[int]) -> list[Any]:
    """Copies, each of its own memory."""
    return [part.copy() for part in _parts(array, lengths)]
