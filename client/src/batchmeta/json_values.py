"""Checks that a caller's values are JSON, converts numpy and torch values, and names the place of what is refused.

The encoder alone would take more than JSON: bytes as base64, sets as arrays, NaN as null, dates and Decimals as text.
So nothing is encoded here before it is known to hold JSON alone.
"""

import math
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Raw

from .arguments import BYTES, check_encodable, refuse, unboxed, whole

DEEPEST = 64
_FREE = frozenset({str, bool, type(None), Raw})  # types whose every value is JSON
# Levels, and values in one level, that are looked at in bulk: what has more is walked, so a list within itself ends.
_LEVELS = 8
_MANY = 2**22
_FEW = 64
_SKIMMED = 2  # levels of an argument: its columns and their cells
_SHORT = 16 * 2**10  # bytes
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_BIG = b"0" * 19  # a number with so many digits may have more than 64 bits
_WANTED = "JSON (None, bool, number, text, list or dict)"


class HasJson(ABC):
    """A value that knows its own JSON, such as a column."""

    __slots__ = ()

    @abstractmethod
    def to_raw(self, where: str = "column") -> Raw:
        """Its JSON; TypeError or ValueError that names the place below `where` for what is none."""


def raw(value: object, where: str) -> Any:
    """The JSON of a value as `encoded` makes it, for a member of a request, of whatever type that is declared."""
    if type(value) is not list and isinstance(value, HasJson):
        return value.to_raw(where)
    return Raw(encoded(value, where))


def encoded(value: object, where: str = "") -> bytes:
    """The JSON of a value. TypeError or ValueError for what is none, which names the place below `where`.

    JSON is None, bool, text, finite floats, whole numbers of 64 bits, sequences, and mappings from text; scalars and
    arrays of numpy and torch are what they hold. All else (bytes, sets, dates, Decimals, dataclasses, Structs, Enums
    that are neither text nor number, nesting deeper than 64) is refused and not guessed at.
    """
    body = quick(value)
    if body is not None:
        return body
    with suppress(UnicodeEncodeError):
        return _encoder.encode(exact(value, where, skim=True))
    return _encoder.encode(exact(value, where))


def quick(value: object) -> bytes | None:
    """The same, all in C; None for what has to be walked, because it is not plain JSON or is none at all."""
    try:
        body = _encoder.encode(value)
        return body if (_reads_back(value, body) if len(body) < _SHORT else is_plain(value)) else None
    except (TypeError, ValueError, RecursionError):
        return None  # said by the walk, with its place


def _reads_back(value: object, body: bytes) -> bool:
    """Who reads the body gets what was given. Of a short one this is known sooner than by a look at each level."""
    if body.count(b"[") + body.count(b"{") > DEEPEST or _BIG in body.translate(_DIGITS):
        return is_plain(value)
    return bool(_decoder.decode(body) == value) or is_plain(value)


def is_plain(value: object) -> bool:
    """True for JSON of Python's own types, which the encoder takes as it is. Looked at level by level, all in C.

    False says nothing but that `exact` has to look: it is also the answer for what is too deep or too large for this.
    """
    values = [value]
    for _ in range(_LEVELS):
        if not values:
            return True
        kinds = set(map(type, values))
        deeper: list[object] = []
        for kind in kinds - _FREE:
            part = values if len(kinds) == 1 else [each for each in values if type(each) is kind]
            inside = _INSIDE.get(kind, _inside_other)(part)
            if inside is None:
                return False
            deeper += inside
        values = deeper
    return False


def exact(value: Any, where: str, depth: int = 0, *, skim: bool = False) -> Any:
    """The same value in Python's own types, for the encoder; TypeError or ValueError that names the place.

    `skim`: the upper levels are walked only where they are not plain. A lone surrogate may then stay.
    """
    if depth > DEEPEST:
        raise ValueError(f"{where}: is nested deeper than {DEEPEST} levels, or within itself")
    if isinstance(value, HasJson):
        return value.to_raw(where)
    value = unboxed(value)
    if skim and depth < _SKIMMED and is_plain(value):
        return value
    if isinstance(value, Mapping):
        parts = value.items()
        return {_member(name, where): exact(part, _at(where, name), depth + 1, skim=skim) for name, part in parts}
    if isinstance(value, Sequence) and not isinstance(value, str | BYTES):
        return [exact(part, f"{where}[{place}]", depth + 1, skim=skim) for place, part in enumerate(value)]
    return _scalar(value, where)


def _scalar(value: Any, where: str) -> Any:
    if value is None or isinstance(value, bool | Raw):
        return value
    if isinstance(value, str):
        check_encodable(value, where)
        return str.__str__(value)
    if isinstance(value, float):
        return _finite(float.__float__(value), where)
    if not hasattr(value, "__index__"):
        refuse(_WANTED, value, where)
    return whole(value, where)


def _finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{where}: {value} is not a number that JSON knows")
    return value


def _member(name: object, where: str) -> str:
    if not isinstance(name, str):
        refuse("text as the name of each member", name, where or "names")
    check_encodable(name, where or "names")
    return str.__str__(name)


def _at(where: str, name: object) -> str:
    return f"{where}.{name}" if where else str(name)


def _are_alike(values: Sequence[Any]) -> bool:
    """All text, or all whole numbers of 64 bits. Subclasses pass: the encoder hands them to `exact`."""
    kind = type(values[0])
    return (kind is str and _are_texts(values)) or (kind is int and _inside_ints(values) is not None)


# What is one level below values of one type; None if they need a closer look.


def _inside_ints(values: Sequence[Any]) -> Iterable[Any] | None:
    try:
        array("q", values)
    except (TypeError, OverflowError):
        return None
    return ()


def _inside_floats(values: list[Any]) -> Iterable[Any] | None:
    return () if all(map(math.isfinite, values)) else None


def _inside_lists(values: list[Any]) -> Iterable[Any] | None:
    if len(values[0]) > _FEW:  # long columns of one kind need no copy
        values = [each for each in values if not (each and _are_alike(each))]
    return chain.from_iterable(values) if sum(map(len, values)) < _MANY else None


def _inside_dicts(values: list[Any]) -> Iterable[Any] | None:
    with suppress(KeyError):  # records with the same names are looked at by columns
        if len(values) > _FEW and len(set(map(len, values))) == 1 and _are_texts(values[0]):
            return [list(map(itemgetter(name), values)) for name in values[0]]
    if not _are_texts(chain.from_iterable(values)):
        return None
    return chain.from_iterable(map(dict.values, values)) if sum(map(len, values)) < _MANY else None


def _are_texts(values: Iterable[Any]) -> bool:
    try:
        return isinstance("".join(values), str)
    except TypeError:
        return False


def _inside_other(values: list[Any]) -> Iterable[Any] | None:
    return () if isinstance(values[0], HasJson) else None


_INSIDE: Mapping[type, Callable[[list[Any]], Iterable[Any] | None]] = {
    int: _inside_ints,
    float: _inside_floats,
    list: _inside_lists,
    tuple: _inside_lists,
    dict: _inside_dicts,
}


def to_json(value: Any) -> Any:
    """For an encoder: what is no JSON by itself."""
    return exact(value, "value")


_encoder = msgspec.json.Encoder(enc_hook=to_json)
_decoder = msgspec.json.Decoder()
