"""Columns: two types, one interface, and JSON until the first use."""

import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from batchmeta import Array, Column, Const
from batchmeta.calls import cell_columns
from batchmeta.columns import INTS, KEYS, VALUES, joined

SMALL = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
COLUMNS = st.one_of(
    st.lists(st.integers(0, 9)).map(Array),
    st.builds(Const, st.integers(0, 9), st.integers(0, 9)),
)


@SMALL
@given(COLUMNS, st.integers(-12, 12), st.integers(-12, 12))
def test_a_column_is_the_sequence_of_its_values(column: Column[int], start: int, stop: int) -> None:
    values = column.to_list()
    assert len(column) == len(values)
    assert list(column) == values
    assert column == values
    assert column[start:stop].to_list() == values[start:stop]
    assert [column[row] for row in range(len(values))] == values
    assert [column[-1 - row] for row in range(len(values))] == values[::-1]
    with pytest.raises(IndexError):
        column[len(values)]


@SMALL
@given(COLUMNS, st.data())
def test_take_gives_the_rows_in_the_order_asked(column: Column[int], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(column) - 1))) if len(column) else []
    taken = column.take(rows)
    assert type(taken) is type(column)
    assert taken.to_list() == [column[row] for row in rows]


@SMALL
@given(COLUMNS)
def test_the_wire_form_comes_back_as_the_same_column(column: Column[int]) -> None:
    back = INTS.column(column.to_raw(), len(column))
    assert type(back) is type(column)
    assert back == column
    assert pickle.loads(pickle.dumps(column)) == column


@SMALL
@given(st.lists(COLUMNS, min_size=1))
def test_joined_has_all_values(columns: list[Column[int]]) -> None:
    assert joined(columns).to_list() == [value for column in columns for value in column]


def test_equal_constants_join_to_a_constant() -> None:
    assert isinstance(joined([Const({"a": 1}, 2), Const({"a": 1}, 3)]), Const)


@pytest.mark.parametrize("other", [True, 1.0])
def test_constants_that_only_python_calls_equal_stay_apart(other: Any) -> None:
    column: Column[Any] = joined([Const(1, 1), Const(other, 1)])
    assert bytes(column.to_raw()) == b"[1," + msgspec.json.encode(other) + b"]"


def test_an_array_is_decoded_at_its_first_use_and_not_before() -> None:
    column = KEYS.column(Raw(b'["a", 5]'), 2)
    assert len(column) == 2
    with pytest.raises(ValueError, match="got `int`"):
        column.to_list()


def test_an_array_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="3 rows came with 2"):
        INTS.column(Raw(b"[1,2]"), 3).to_list()


def test_an_array_never_changed_goes_out_as_it_came() -> None:
    column = VALUES.column(Raw(b"[1.50, 2]"), 2)
    assert column.to_list() == [1.5, 2]
    assert bytes(column.to_raw()) == b"[1.50, 2]"


def test_a_meta_that_looks_like_a_constant_is_told_apart() -> None:
    assert VALUES.column(Raw(b'[{"const": 1}]'), 1).to_list() == [{"const": 1}]
    assert VALUES.column(Raw(b'{"const": {"const": 1}}'), 2).to_list() == [{"const": 1}, {"const": 1}]


def test_the_list_given_out_is_the_callers_own() -> None:
    column = Array([1, 2])
    column.to_list().append(3)
    assert column == [1, 2]


def test_a_constant_that_cannot_change_is_encoded_once_and_another_each_time() -> None:
    for value in (1, 1.5, "a", True, None):
        column = Const(value)
        assert column.to_raw() is column.to_raw()
    meta = {"a": 1}
    changing = Const(meta)
    assert bytes(changing.to_raw()) == b'{"const":{"a":1}}'
    meta["a"] = 2
    assert bytes(changing.to_raw()) == b'{"const":{"a":2}}'


@pytest.mark.parametrize("odd", [float("nan"), {1, 2}, "\ud800"])
def test_of_several_constants_the_one_that_is_no_json_is_named(odd: Any) -> None:
    assert msgspec.json.encode(cell_columns({"f": Const(1), "g": Const("1")}, "cells")) == (
        b'{"f":{"const":1},"g":{"const":"1"}}'
    )
    with pytest.raises((TypeError, ValueError), match=r"cells\.g"):
        cell_columns({"f": Const(1), "g": Const(odd)}, "cells")
    with pytest.raises(ValueError, match="surrogate"):
        cell_columns({"\ud800": Const(1)}, "cells")
