"""JSON cells: custom meta and backend meta values as bytes, checked on the way in, never decoded on the way out.

An incoming column is a list with one value per row, or a `Const`, whose `const` is the value of every row. A checked
column is `Cells`: one `bytes` for all rows, or a list.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec
import orjson

from core.errors import Invalid

from .duplicate_members import is_plain, repeated

MAX_DEPTH = 64
EMPTY = b"{}"
NULL = b"null"
_MEMO_CELLS = 4096
_MEMO_BYTES = 256


class ConstCell(Protocol):
    """An incoming `{"const": value}`."""

    @property
    def const(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Const:
    """One JSON value for every row."""

    const: bytes


Column = ConstCell | list[bytes]
Cells = bytes | list[bytes]
CustomMetaMode = Literal["merge", "update"]


def to_list(cells: Cells, rows: int) -> list[bytes]:
    """One cell per row."""
    return [cells] * rows if isinstance(cells, bytes) else cells


class CellChecker:
    """Accepts cells that every reader can decode: valid JSON of limited depth and length, with numbers in range and no
    repeated member.

    Recent small cells are cached, so that equal ones are checked once and share their bytes.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._memo: dict[bytes, bytes] = {}

    def column(self, column: Column, rows: int, loc: str, wrappers: int, *, patch: bool = False) -> Cells:
        """`column` checked, for `rows` rows; `wrappers`: how many levels of the body enclose a cell.

        With `patch`, every cell must be an object or null. Raises Invalid, naming the member.
        """
        if not isinstance(column, list):
            return self.cell(column.const, f"{loc}.const", wrappers, patch)
        if len(column) != rows:
            raise Invalid.at(loc, f'has {len(column)} values for {rows} rows: give one per row, or {{"const": v}}')
        cells = [self.cell(cell, f"{loc}[{i}]", wrappers, patch) for i, cell in enumerate(column)]
        return cells[0] if cells and cells.count(cells[0]) == rows else cells

    def columns(self, columns: Mapping[str, Column], rows: int, loc: str, wrappers: int) -> dict[str, Cells]:
        """As `column`, by field; fast for the usual write, of one row or constants, whose cells are cached."""
        out: dict[str, Cells] = {}
        for name, column in columns.items():
            one = (column[0] if len(column) == rows == 1 else b"") if isinstance(column, list) else column.const
            known = self._memo.get(bytes(one))
            out[name] = self.column(column, rows, f"{loc}.{name}", wrappers) if known is None else known
        return out

    def cell(self, raw: bytes, loc: str, wrappers: int, patch: bool) -> bytes:
        """One checked cell; recent equal cells share their bytes."""
        value = bytes(raw)
        if patch and value[:1] != b"{" and value != NULL:
            raise Invalid.at(loc, "must be an object (a patch of members), or null to leave the row alone")
        known = self._memo.get(value)
        if known is not None:
            return known
        brackets = value.count(b"[") + value.count(b"{")
        self._check(value, loc, MAX_DEPTH - wrappers, brackets)
        if len(value) <= _MEMO_BYTES and brackets < MAX_DEPTH // 2:
            if len(self._memo) >= _MEMO_CELLS:
                self._memo.clear()
            self._memo[value] = value
        return value

    def _check(self, value: bytes, loc: str, depth: int, brackets: int) -> None:
        """`brackets`: how many opening brackets it has, which is at least its depth."""
        if len(value) > self.max_bytes:
            raise Invalid.at(loc, f"is {len(value)} bytes: at most {self.max_bytes} (limits.max_cell_bytes)")
        try:
            decoded = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Invalid.at(loc, f"is not JSON that every reader can decode: {error}") from error
        except RecursionError as error:
            raise Invalid.at(loc, f"is nested too deep: at most {MAX_DEPTH} levels in a request") from error
        if brackets > depth:
            _walk(decoded, loc, depth)
        try:
            again = orjson.dumps(decoded)
        except TypeError:  # an integer beyond 64 bits
            _walk(decoded, loc, depth)
            again = b""
        if not is_plain(value, again) and (place := repeated(value)) is not None:
            raise Invalid.at(f"{loc}{place}", "stands twice in one object: leave one of the two out")


def _walk(value: object, loc: str, depth: int) -> None:
    """Checks depth and integer range; called only for cells that may exceed them."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise Invalid.at(loc, f"holds the integer {str(value)[:40]}: beyond int64 and uint64, send it as a string")
    if isinstance(value, dict | list):
        if depth == 0:
            raise Invalid.at(loc, f"is nested too deep: at most {MAX_DEPTH} levels in a request")
        for item in value.values() if isinstance(value, dict) else value:
            _walk(item, loc, depth - 1)


def json_values(values: Sequence[str | int | None]) -> list[bytes]:
    """Each string or number as its JSON bytes, in one pass; equal ones give equal bytes."""
    if len(values) == 1:
        return [orjson.dumps(values[0])]
    return list(map(bytes, msgspec.json.decode(orjson.dumps(values), type=list[msgspec.Raw])))


def patched(stored: bytes, patch: bytes, loc: str, max_bytes: int, mode: CustomMetaMode = "merge") -> bytes:
    """`stored` with `patch` (checked) applied. Returns the same object `stored` when nothing changes.

    `merge`: by RFC 7396. `update`: as Python's `dict.update`: a member replaces the whole old one, and null is a value.
    Raises Invalid for a result of more than `max_bytes`.
    """
    if patch == NULL:
        return stored
    if stored == EMPTY and (mode == "update" or NULL not in patch):
        return patch if patch[1:-1].strip() else stored
    before, change = msgspec.json.decode(stored), msgspec.json.decode(patch)
    after = orjson.dumps(before | change if mode == "update" else _merge(before, change))
    if after == orjson.dumps(before):
        return stored
    if len(after) > max_bytes:
        raise Invalid.at(loc, f"would be {len(after)} bytes after the {mode}: at most {max_bytes}")
    return after


def _merge(target: object, patch: object) -> object:
    if not isinstance(patch, Mapping):
        return patch
    out = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = _merge(out.get(name), value)
    return out
