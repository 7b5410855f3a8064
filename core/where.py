"""Predicates over custom meta (`where`), and the numbers samplers go by (`Weight`): parsed, checked, hashable values.

They see JSON cells, decode each distinct one once, and answer for all rows at a time. They know no rows and no state.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from .arrays import Flags
from .errors import Invalid

Scalar = bool | int | float | str
Operand = tuple[str, Scalar]
Test = Callable[[object], bool]
Floats = npt.NDArray[np.float64]

MAX_CONDITIONS = 32
MAX_PATH = 32
MAX_VALUES = 1024
MISSING = object()
_KINDS: dict[type, str] = {bool: "bool", int: "number", float: "number", str: "string"}
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "prefix": str.startswith,
}  # fmt: skip
_WORDS = {"bool": "true or false", "number": "a number", "string": "a string"}
_ACCEPTED: dict[str, tuple[str, ...]] = {
    "==": tuple(_WORDS), "!=": tuple(_WORDS), "exists": ("bool",), "prefix": ("string",),
    "<": ("number", "string"), "<=": ("number", "string"), ">": ("number", "string"), ">=": ("number", "string"),
}  # fmt: skip
_decode = msgspec.json.Decoder().decode


class ConditionIn(Protocol):
    """One condition as it comes in; `value` None: not given."""

    @property
    def path(self) -> str | Sequence[str]: ...
    @property
    def op(self) -> str: ...
    @property
    def value(self) -> Scalar | Sequence[Scalar] | None: ...


@dataclass(frozen=True, slots=True)
class Condition:
    """`operands`, with their kinds, are what the value at `path` is held against: 1 is 1.0, and not true."""

    path: tuple[str, ...]
    op: str
    operands: frozenset[Operand]

    def test(self) -> Test:
        """Whether a value found at the path fulfils it; another kind than the operand's never does."""
        if self.op in ("==", "in"):
            return lambda found: _is_among(found, self.operands)
        if self.op == "!=":
            kinds = {kind for kind, _ in self.operands}
            return lambda found: _KINDS.get(type(found)) in kinds and not _is_among(found, self.operands)
        ((kind, value),) = self.operands
        if self.op == "exists":
            return lambda found: (found is not MISSING) == value
        compare = _ORDER[self.op]
        return lambda found: _KINDS.get(type(found)) == kind and compare(found, value)


@dataclass(frozen=True, slots=True)
class Where:
    """All conditions must hold (api.md section 8). Asked the same, it is the same: what was made for one serves all."""

    conditions: tuple[Condition, ...]

    def matches(self, cells: Sequence[bytes]) -> Flags:
        """bool [cells]: which of these custom metas fulfil every condition. Equal cells are decoded once."""
        tests = [(condition.path, condition.test()) for condition in self.conditions]
        known = {cell: _fulfils(_decode(cell), tests) for cell in set(cells)}
        return np.fromiter(map(known.__getitem__, cells), np.bool_, len(cells))


@dataclass(frozen=True, slots=True)
class Weight:
    """The path to a number in custom meta."""

    path: tuple[str, ...]

    def of(self, cells: Sequence[bytes]) -> Floats:
        """float64 [cells]: the number at the path, NaN where there is none. Equal cells are decoded once."""
        known = {cell: _number(_at(_decode(cell), self.path)) for cell in set(cells)}
        return np.fromiter(map(known.__getitem__, cells), np.float64, len(cells))


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


def weight(path: str | Sequence[str], loc: str) -> Weight:
    """The weight at this path. Raises Invalid."""
    return Weight(members(path, loc))


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
        if kind == "number" and isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise Invalid.at(f"{loc}.value", "is an integer beyond int64 and uint64")
    return Condition(members(given.path, f"{loc}.path"), given.op, frozenset(operands))


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


def _at(cell: object, path: Iterable[str]) -> object:
    for member in path:
        if not isinstance(cell, dict) or member not in cell:
            return MISSING
        cell = cell[member]
    return cell


def _fulfils(cell: object, tests: Iterable[tuple[tuple[str, ...], Test]]) -> bool:
    return all(test(_at(cell, path)) for path, test in tests)


def _is_among(found: object, operands: frozenset[Operand]) -> bool:
    kind = _KINDS.get(type(found))
    return kind is not None and (kind, found) in operands


def _number(found: object) -> float:
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else np.nan
