"""Encodes columns and arrays as JSON bytes, as contract#columns defines them. Pure functions; no cell is decoded."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import orjson

from core.arrays import Bits

from .shapes import Sizes

Piece = bytes | memoryview
Pieces = list[Piece]
"""JSON in parts that follow each other: megabytes are copied once, into the reply."""


def array(values: npt.NDArray[np.integer]) -> bytes:
    """A numeric array of any rank as nested JSON arrays, straight from its memory."""
    return orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)


def constant(value: bytes, rows: int, expand: bool) -> bytes:
    """A column in which every row has `value`."""
    if rows > 1 and not expand:
        return b'{"const":' + value + b"}"
    return b"[" + b",".join([value] * rows) + b"]"


def column(values: Sequence[bytes], expand: bool) -> bytes:
    """A column of JSON cells: `{"const": v}` where two or more are all the same bytes."""
    rows = len(values)
    alike = rows > 1 and values[0] == values[-1] == values[rows // 2]
    if alike and not expand and values.count(values[0]) == rows:
        return constant(values[0], rows, expand)
    return b"[" + b",".join(values) + b"]"


def folded(cells: Piece, rows: int, is_even: bool, expand: bool) -> Pieces:
    """A column of comma-separated cells: `{"const": v}` where two or more are all the same. `is_even`: in length."""
    step = (len(cells) + 1) // rows if rows else 0
    if is_even and rows > 1 and not expand and cells[: step - 1] == cells[1 - step :]:
        text = bytes(cells)
        if text[step:] == text[:-step]:
            return [constant(text[: step - 1], rows, expand)]
    return [b"[", cells, b"]"]


def status(values: Bits) -> bytes:
    """An array of 0 and 1."""
    if len(values) and np.count_nonzero(values) == len(values):
        return b"[" + b"1," * (len(values) - 1) + b"1]"
    return array(values)


def bits(values: Bits | None, rows: int, expand: bool) -> bytes:
    """A column of 0 and 1; None: all are 1."""
    if values is None or not len(values):
        return constant(b"1", rows, expand)
    if (values == values[0]).all():
        return constant(b"1" if values[0] else b"0", rows, expand)
    return array(values)


def integers(values: npt.NDArray[np.integer], expand: bool) -> bytes:
    """A column of numbers."""
    if len(values) > 1 and not expand and np.count_nonzero(values == values[0]) == len(values):
        return constant(b"%d" % values[0], len(values), expand)
    return array(values)


def sizes(values: Sizes, has: Bits | None, expand: bool, flat: bool) -> bytes:
    """int32 [rank, rows] as a column of shapes, or of lengths when `flat` (rank 1); null where `has` is 0."""
    rank, rows = values.shape
    if has is None:
        if rows > 1 and not expand and _is_constant(values):
            return constant(b"%d" % values[0, 0] if flat else array(values[:, 0]), rows, expand)
        return _lengths(values[0], flat) if rank == 1 else array(values.T)
    if not has.any():
        return constant(b"null", rows, expand)
    inner = (_lengths(values[0], flat) if rank == 1 else array(values.T))[1:-1]
    cells = np.array((inner if flat else inner.replace(b"],[", b"]\n[")).split(b"," if flat else b"\n"), object)
    cells[has == 0] = b"null"
    return column(cells.tolist(), expand)


def few_sizes(table: Sizes, flat: Sequence[bool], expand: bool) -> list[bytes]:
    """int32 [fields, rows], one of each at least: as `sizes` of each field, of rank 1 and there for all rows."""
    lines = array(table)[2:-2].split(b"],[")
    shares = (table == table[:, :1]).all(1).tolist() if table.shape[1] > 1 and not expand else [False] * len(lines)
    return [_few(*one) for one in zip(lines, shares, flat, strict=True)]


def _few(line: bytes, is_constant: bool, flat: bool) -> bytes:
    before, between, after = (b"[", b",", b"]") if flat else (b"[[", b"],[", b"]]")
    if is_constant:
        return b'{"const":' + before[1:] + line[: line.index(b",")] + after[1:] + b"}"
    return before + (line if flat else line.replace(b",", between)) + after


def _is_constant(values: Sizes) -> bool:
    rank, rows = values.shape
    if np.count_nonzero(values[:, 0] == values[:, -1]) < rank:
        return False
    return bool(np.count_nonzero(values[:, 1:] == values[:, :-1]) == rank * (rows - 1))


def _lengths(values: Sizes, flat: bool) -> bytes:
    text = array(values)
    return text if flat or not len(values) else b"[[" + text[1:-1].replace(b",", b"],[") + b"]]"


def members(named: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A JSON object of `"name":` and value."""
    return b"".join(pieces((name, [value]) for name, value in named))


def pieces(named: Iterable[tuple[bytes, Pieces]]) -> Pieces:
    """As `members`, not joined."""
    parts: Pieces = [part for name, value in named for part in (b",", name, *value)]
    parts[:1] = [b"{"]
    return [*parts, b"}"]
