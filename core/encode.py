"""Columns and arrays to JSON bytes, as api.md section 3 writes them. Pure functions; cells are never decoded."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import orjson

from .arrays import Bits
from .fields import Sizes


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


def bits(values: Bits, expand: bool) -> bytes:
    """A column of 0 and 1."""
    if len(values) > 1 and not expand and (values == values[0]).all():
        return constant(b"1" if values[0] else b"0", len(values), expand)
    return array(values)


def sizes(values: Sizes, has: Bits | None, expand: bool, flat: bool) -> bytes:
    """int32 [rows, rank] as a column of shapes, or of lengths when `flat` (rank 1); null where `has` is 0."""
    rows = len(values)
    if has is None:
        if rows > 1 and not expand and (values == values[0]).all():
            return constant(_size(values[0], flat), rows, expand)
        return array(values[:, 0] if flat else values)
    if not has.any():
        return constant(b"null", rows, expand)
    cells = [_size(row, flat) if row_has else b"null" for row, row_has in zip(values, has, strict=True)]
    return column(cells, expand)


def _size(row: Sizes, flat: bool) -> bytes:
    """One row's shape, or its length."""
    return b"%d" % int(row[0]) if flat else array(row)
