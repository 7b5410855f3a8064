"""Predicates over custom meta (`where`) and the weights of samplers (`Weight`), as checked, hashable values.

They take JSON cells, decode each distinct one once, and answer for all at once. They know nothing of rows or state.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from core.arrays import Flags
from core.errors import Invalid

Scalar = bool | int | float | str
Operand = tuple[str, Scalar]
Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.float64 | np.complex128]
EXACT = 2.0**53  # below it a float64 holds every integer exactly

MAX_CONDITIONS = 32
MAX_PATH = 32
MAX_VALUES = 1024
_SAMPLE = 64
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_decode = msgspec.json.Decoder().decode
MISSING = object()
NO_OPERAND: Operand = ("", "")  # of a value that none can name
_KINDS: dict[type, str] = {bool: "bool", int: "number", float: "number", str: "string"}
_WORDS = {"bool": "true or false", "number": "a number", "string": "a string"}
_ACCEPTED: dict[str, tuple[str, ...]] = {
    "==": tuple(_WORDS),
    "!=": tuple(_WORDS),
    "exists": ("bool",),
    "prefix": ("string",),
    "<": ("number", "string"),
    "<=": ("number", "string"),
    ">": ("number", "string"),
    ">=": ("number", "string"),
}
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "prefix": str.startswith,
}


class ConditionIn(Protocol):
    """An incoming condition; `value` None: not given."""

    @property
    def path(self) -> str | Sequence[str]: ...
    @property
    def op(self) -> str: ...
    @property
    def value(self) -> Scalar | Sequence[Scalar] | None: ...


@dataclass(frozen=True, slots=True)
class Condition:
    """Compares the value at `path` with `operands`, each with its kind: 1 equals 1.0, and does not equal true."""

    path: tuple[str, ...]
    op: str
    operands: frozenset[Operand]

    def test(self) -> Callable[[object], bool]:
        """Whether a value at the path fulfils it; a value of another kind than the operand's never does."""
        if self.op in ("==", "in"):
            among = _by_type(self.operands)
            return lambda value: value in among.get(type(value), ())
        if self.op == "!=":
            among = _by_type(self.operands)
            return lambda value: type(value) in among and value not in among[type(value)]
        ((kind, operand),) = self.operands
        if self.op == "exists":
            return lambda value: (value is not MISSING) == operand
        types, compare = [one for one, its in _KINDS.items() if its == kind], _ORDER[self.op]
        return lambda value: type(value) in types and compare(value, operand)


@dataclass(frozen=True, slots=True)
class Where:
    """All conditions must hold (contract#where). Equal conditions make equal objects, so claims share a supply."""

    conditions: tuple[Condition, ...]

    def matches(self, cells: Sequence[bytes]) -> Flags:
        """bool [cells]: which of these custom metas fulfil every condition."""
        return _of_distinct(cells, self._fulfilled)

    def _fulfilled(self, cells: Sequence[bytes]) -> Flags:
        out = np.ones(len(cells), np.bool_)
        columns = _values(cells, [condition.path for condition in self.conditions])
        for condition, values in zip(self.conditions, columns, strict=True):
            out &= np.fromiter(map(condition.test(), values), np.bool_, len(values))
        return out


@dataclass(frozen=True, slots=True)
class Weight:
    """The path to a number in custom meta; `default` is the number of those that have none there."""

    path: tuple[str, ...]
    default: int | float | None = None

    def of(self, cells: Sequence[bytes]) -> Floats:
        """float64 [cells]: the number at the path, else the default, NaN where there is neither."""
        return np.asarray(self.exactly(cells).real)

    def exactly(self, cells: Sequence[bytes]) -> Numbers:
        """As `of`, without rounding: where an integer does not fit a float64, complex128 with the rounded integer as
        real part and the rest as imaginary part. Numpy sorts by both, so they sort as the integers do.
        """
        return _of_distinct(cells, self._numbers)

    def _numbers(self, cells: Sequence[bytes]) -> Numbers:
        (values,) = _values(cells, [self.path])
        if self.default is not None:
            values = [value if type(value) in (int, float) else self.default for value in values]
        numbers = np.fromiter(map(_number, values), np.float64, len(cells))
        large = np.flatnonzero(np.abs(numbers) >= EXACT).tolist()
        lacking = {at: lack for at in large if (lack := _lack(values[at], numbers[at]))}
        if not lacking:
            return numbers
        exact = numbers.astype(np.complex128)
        exact.imag[list(lacking)] = list(lacking.values())
        return exact


def where(conditions: Sequence[ConditionIn] | None, loc: str) -> Where | None:
    """These conditions, checked; None where there are none. Raises Invalid, naming the member."""
    if not conditions:
        return None
    if len(conditions) > MAX_CONDITIONS:
        raise Invalid.at(loc, f"has {len(conditions)} conditions: at most {MAX_CONDITIONS}")
    return Where(tuple(_condition(one, f"{loc}[{i}]") for i, one in enumerate(conditions)))


def some_where(conditions: Sequence[ConditionIn] | None, loc: str) -> Where | None:
    """As `where`, for calls that remove rows: `[]`, which every row fulfils, is refused."""
    if conditions is not None and not len(conditions):
        raise Invalid.at(loc, "has no condition, and every row fulfils that: leave where out if all are meant")
    return where(conditions, loc)


def weight(path: str | Sequence[str], loc: str, default: int | float | None = None, default_loc: str = "") -> Weight:
    """The weight at this path. Raises Invalid."""
    _check_number(default, default_loc)
    return Weight(members(path, loc), default)


def members(path: str | Sequence[str], loc: str) -> tuple[str, ...]:
    """The members that a path leads through: dotted, or one by one. Raises Invalid."""
    names = tuple(path.split(".")) if isinstance(path, str) else tuple(path)
    if not 1 <= len(names) <= MAX_PATH:
        raise Invalid.at(loc, f"leads through {len(names)} members: 1 to {MAX_PATH}")
    if isinstance(path, str) and "" in names:
        raise Invalid.at(loc, f"{path!r} has an empty member: give an array of members if that is meant")
    return names


def _condition(given: ConditionIn, loc: str) -> Condition:
    operands = _operands(given.op, given.value, f"{loc}.value")
    for kind, value in operands:
        if kind == "number":
            _check_number(value, f"{loc}.value")
    return Condition(members(given.path, f"{loc}.path"), given.op, frozenset(operands))


def _check_number(value: Scalar | None, loc: str) -> None:
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise Invalid.at(loc, "is an integer beyond int64 and uint64")


def _operands(op: str, value: Scalar | Sequence[Scalar] | None, loc: str) -> list[Operand]:
    if op == "in":
        if not isinstance(value, list | tuple):
            raise Invalid.at(loc, "must be an array of strings, numbers, true and false")
        if len(value) > MAX_VALUES:
            raise Invalid.at(loc, f"has {len(value)} values: at most {MAX_VALUES}")
        return [(_KINDS[type(one)], one) for one in value]
    if op == "exists" and value is None:
        return [("bool", True)]
    if not isinstance(value, bool | int | float | str):
        raise Invalid.at(loc, f"must be a string, a number, true or false for {op}")
    return [_fitting(op, value, loc)]


def _fitting(op: str, value: Scalar, loc: str) -> Operand:
    kind = _KINDS[type(value)]
    if kind not in _ACCEPTED[op]:
        raise Invalid.at(loc, f"must be {' or '.join(_WORDS[one] for one in _ACCEPTED[op])} for {op}")
    return kind, value


def _by_type(operands: Iterable[Operand]) -> Mapping[type, set[Scalar]]:
    """The operands to compare with, by the type of the value that was found."""
    by_kind: dict[str, set[Scalar]] = {}
    for kind, operand in operands:
        by_kind.setdefault(kind, set()).add(operand)
    return {type_: by_kind[kind] for type_, kind in _KINDS.items() if kind in by_kind}


def _of_distinct(cells: Sequence[bytes], answer: Callable[[Sequence[bytes]], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """`answer(cells)`, with equal cells decoded once if the first cells contain equal ones. Finding them costs as much
    as decoding small cells.
    """
    first = cells[:_SAMPLE]
    if 2 * len(set(first)) > len(first):
        return answer(cells)
    places = {cell: place for place, cell in enumerate(dict.fromkeys(cells))}
    return answer(list(places))[np.fromiter(map(places.__getitem__, cells), np.int64, len(cells))]


def _values(cells: Iterable[bytes], paths: Sequence[tuple[str, ...]]) -> list[list[object]]:
    """Per path what each of these cells has there, MISSING where it has nothing."""
    columns = _columns(cells, tuple(dict.fromkeys(path[0] for path in paths)))
    return [
        columns[path[0]] if len(path) == 1 else [_at(value, path[1:]) for value in columns[path[0]]] for path in paths
    ]


def _columns(cells: Iterable[bytes], members: tuple[str, ...]) -> dict[str, list[object]]:
    if _ESCAPED.search("".join(members)):  # msgspec has no Struct with such a member
        objects = [_decode(cell) or {} for cell in cells]
        return {member: [one.get(member, MISSING) for one in objects] for member in members}
    read, nothing = _reader(members)
    found = [read(cell) or nothing for cell in cells]
    return {member: list(map(operator.attrgetter(f"at{i}"), found)) for i, member in enumerate(members)}


@lru_cache(256)
def _reader(members: tuple[str, ...]) -> tuple[Callable[[bytes], Any], Any]:
    """(a decoder of only these members of a cell, its value for `null`). Skipping a member costs an eighth."""
    names = {f"at{i}": member for i, member in enumerate(members)}
    kind = msgspec.defstruct("Cell", [(name, Any, MISSING) for name in names], rename=names, gc=False)
    return msgspec.json.Decoder(kind | None).decode, kind()


def value_at(cell: bytes) -> Callable[[tuple[str, ...]], object]:
    """What a custom meta has at a path, MISSING where it has nothing."""
    return partial(_at, _decode(cell) or {})


def operand_of(value: object) -> Operand:
    """A value as the conditions that name it have it."""
    kind = _KINDS.get(type(value))
    return NO_OPERAND if kind is None else (kind, value)  # type: ignore[return-value]  # it is of such a kind


def _at(value: object, path: Iterable[str]) -> object:
    for member in path:
        if not isinstance(value, dict) or member not in value:
            return MISSING
        value = value[member]
    return value


def _lack(value: object, number: float) -> int:
    return value - int(number) if type(value) is int else 0


def _number(found: object) -> float:
    return float(found) if type(found) in (int, float) else np.nan  # type: ignore[arg-type]
