"""Columns as contract#columns defines them, compared with a list of values or one shared value."""

import json
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from core.state.cells import encode

SHAPES = st.integers(0, 3).flatmap(
    lambda rank: st.lists(st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=rank, max_size=rank)), max_size=6)
)


def read(column: bytes, rows: int) -> list[Any]:
    """What a client makes of a column."""
    value = json.loads(column)
    return [value["const"]] * rows if isinstance(value, dict) else value


def encoded(shapes: list[list[int] | None], expand: bool, flat: bool) -> bytes:
    rank = next((len(shape) for shape in shapes if shape is not None), 0)
    sizes = np.array([shape if shape is not None else [-1] * rank for shape in shapes], np.int32)
    has = np.array([shape is not None for shape in shapes], np.uint8)
    return encode.sizes(
        np.ascontiguousarray(sizes.reshape(len(shapes), rank).T), None if has.all() else has, expand, flat
    )


@settings(derandomize=True, deadline=None)
@given(SHAPES, st.booleans())
def test_shapes_read_back_as_they_were(shapes: list[list[int] | None], expand: bool) -> None:
    column = encoded(shapes, expand, flat=False)
    assert read(column, len(shapes)) == shapes
    alike = len(shapes) > 1 and all(shape == shapes[0] for shape in shapes)
    assert column.startswith(b"{") == (alike and not expand)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=6), st.booleans())
def test_lengths_are_plain_numbers(lengths: list[int | None], expand: bool) -> None:
    shapes = [None if length is None else [length] for length in lengths]
    column = encoded(shapes, expand, flat=True) if any(shapes) else b"[" + b",".join([b"null"] * len(shapes)) + b"]"
    assert read(column, len(lengths)) == lengths


@settings(derandomize=True, deadline=None)
@given(st.lists(st.sampled_from([b"1", b'"1"', b"null", b"{}"]), max_size=6), st.booleans())
def test_cells_are_a_constant_only_where_two_or_more_are_the_same_bytes(cells: list[bytes], expand: bool) -> None:
    column = encode.column(cells, expand)
    assert read(column, len(cells)) == [json.loads(cell) for cell in cells]
    assert column.startswith(b'{"const"') == (len(cells) > 1 and len(set(cells)) == 1 and not expand)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 1), max_size=6), st.booleans())
def test_bits_read_back_as_they_were(bits: list[int], expand: bool) -> None:
    assert read(encode.bits(np.array(bits, np.uint8), len(bits), expand), len(bits)) == bits


@given(
    st.lists(
        st.lists(st.integers(0, 3), min_size=1, max_size=1) | st.lists(st.integers(0, 2), min_size=1, max_size=5),
        min_size=1,
        max_size=6,
    ),
    st.data(),
    st.booleans(),
)
def test_few_sizes_are_those_of_each_field(columns: list[list[int]], data: st.DataObject, expand: bool) -> None:
    rows = min(map(len, columns))
    table = np.array([column[:rows] for column in columns], np.int32)
    flat = data.draw(st.lists(st.booleans(), min_size=len(table), max_size=len(table)))
    alone = [encode.sizes(table[i : i + 1], None, expand, flat[i]) for i in range(len(table))]
    assert encode.few_sizes(table, flat, expand) == alone
