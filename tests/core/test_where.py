"""Predicates over custom meta by their definition: types, paths, numbers, and what is refused."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchmeta.wire.requests import Where as Wire
from core.errors import Invalid
from core.state.where import Where, some_where, weight, where

CELL = b'{"n":8,"f":8.0,"s":"8","t":true,"list":[1],"deep":{"n":-1,"a.b":"x"},"":"nameless","big":9007199254740993}'


def parsed(*conditions: tuple[Any, ...]) -> Where:
    """(path, op[, value]) as a caller sends it."""
    names = ("path", "op", "value")
    body = msgspec.json.encode([dict(zip(names, one, strict=False)) for one in conditions])
    found = where(msgspec.json.decode(body, type=Wire), "body.where")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("path", "op", "value", "holds"),
    [
        ("n", "==", 8, True), ("n", "==", 8.0, True), ("f", "==", 8, True), ("n", "==", "8", False),
        ("s", "==", "8", True), ("s", "==", 8, False), ("n", "!=", 9, True), ("n", "!=", 8, False),
        ("n", "!=", "9", False), ("nobody", "!=", 8, False), ("list", "!=", 8, False), ("deep", "!=", "x", False),
        ("t", "==", True, True), ("t", "!=", False, True), ("t", "==", 1, False), ("t", "!=", 0, False),
        ("n", "==", True, False), ("n", "<", 9, True), ("n", "<", 8, False), ("n", "<=", 8.0, True),
        ("n", ">", 7.5, True), ("n", ">=", 9, False), ("s", "<", "9", True), ("s", ">", 7, False),
        ("n", "<", "9", False), ("t", "<", 2, False), ("s", "prefix", "", True), ("s", "prefix", "8", True),
        ("s", "prefix", "80", False),
        ("n", "prefix", "8", False), ("n", "in", [1, 8], True), ("n", "in", ["8", True], False), ("n", "in", [], False),
        ("t", "in", [1, "true", True], True), ("list", "in", [1], False), ("n", "exists", True, True),
        ("n", "exists", False, False), ("nobody", "exists", False, True), ("nobody", "exists", True, False),
        ("list", "exists", True, True), ("list.0", "exists", True, False), ("deep.n", "<", 0, True),
        ("deep.n.x", "exists", True, False), ("deep.a.b", "exists", True, False), (["deep", "a.b"], "==", "x", True),
        ([""], "==", "nameless", True), ("big", "==", 9007199254740993, True), ("big", "==", 9007199254740992.0, False),
        ("big", ">", 9007199254740992.0, True),
    ],
)  # fmt: skip
def test_one_condition(path: Any, op: str, value: Any, holds: bool) -> None:
    assert parsed((path, op, value)).matches([CELL]).tolist() == [holds]


def test_exists_without_a_value_means_true() -> None:
    assert parsed(("n", "exists")).matches([CELL, b"{}"]).tolist() == [True, False]


def test_all_conditions_must_hold_and_every_cell_has_its_answer() -> None:
    both = parsed(("a", ">", 1), ("b", "==", "x"))
    cells = [b'{"a":2,"b":"x"}', b'{"a":2}', b'{"b":"x"}', b"{}", b'{"a":2,"b":"x"}', b"null"]
    assert both.matches(cells).tolist() == [True, False, False, False, True, False]
    assert both.matches([]).tolist() == []


def test_what_is_asked_the_same_is_the_same_and_true_is_not_1() -> None:
    assert parsed(("a.b", "==", 1)) == parsed((["a", "b"], "==", 1.0))
    assert len({parsed(("a", "==", 1)), parsed(("a", "==", 1.0)), parsed(("a", "in", [1]))}) == 2
    assert parsed(("a", "==", 1)) != parsed(("a", "==", True))


def test_no_condition_is_no_restriction_but_not_where_rows_are_removed() -> None:
    assert where(None, "body.where") is where([], "body.where") is some_where(None, "body.where") is None
    with pytest.raises(Invalid, match="leave where out"):
        some_where([], "body.where")


@pytest.mark.parametrize(
    ("path", "op", "value", "says"),
    [
        ("a", "==", None, r"\[1\].value: must be a string, a number"),
        ("a", "==", [1], r"\[1\].value: must be a string, a number"),
        ("a", "<", True, "must be a number or a string for <"),
        ("a", "prefix", 1, "must be a string for prefix"),
        ("a", "in", 1, "must be an array"),
        ("a", "in", None, "must be an array"),
        ("a", "exists", 1, "must be true or false for exists"),
        ("a", "==", 2**64, "beyond int64 and uint64"),
        ("a", "in", [-(2**63) - 1], "beyond int64 and uint64"),
        ("a..b", "exists", True, r"\[1\].path: 'a..b' has an empty member"),
        (".".join("a" * 33), "exists", True, "leads through 33 members"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_stands(path: Any, op: str, value: Any, says: str) -> None:
    with pytest.raises(Invalid, match=says):
        parsed(("ok", "exists"), (path, op, value))


@pytest.mark.parametrize(
    "raw",
    [
        '[{"path":"a","op":"~"}]',
        '[{"op":"exists"}]',
        '[{"path":[],"op":"exists"}]',
        '[{"path":"a","op":"==","value":{}}]',
        '[{"path":"a","op":"in","value":[null]}]',
        '[{"path":"a","op":"==","value":1e400}]',
    ],
)
def test_what_has_no_shape_is_refused_by_the_wire(raw: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(raw, type=Wire)


def test_a_weight_is_a_number_or_nothing() -> None:
    cells = [CELL, b'{"n":2.5}', b'{"n":"3"}', b'{"n":true}', b"{}", b'{"n":18446744073709551615}', b'{"n":[1]}', CELL]
    found = weight("n", "body.sampler.weight").of(cells)
    assert found.dtype == np.float64
    expected = [8.0, 2.5, np.nan, np.nan, np.nan, 2.0**64, np.nan, 8.0]
    assert np.array_equal(found, expected, equal_nan=True)
    assert weight(["deep", "n"], "x").of([CELL]).tolist() == [-1.0]


@given(st.lists(st.text(max_size=4), min_size=1, max_size=4, unique=True), st.booleans())
@settings(max_examples=200, derandomize=True, deadline=None)
def test_a_member_may_have_any_name(names: list[str], ascii_only: bool) -> None:
    there = {name: i for i, name in enumerate(names)}
    cell = json.dumps(there, ensure_ascii=ascii_only).encode()
    both = parsed(*(([name], "==", i) for name, i in there.items()))
    assert both.matches([cell, b"{}", b"null"]).tolist() == [True, False, False]
    assert weight(names[-1:], "x").of([cell]).tolist() == [len(names) - 1]


def test_escapes_in_a_cell_are_the_characters_they_stand_for() -> None:
    cells = [b'{"\\u0061":1}', b'{"a":0,"a":1}', b'{"\\"":1}', b'{"\\\\":1}', '{"é":1}'.encode(), b'{"\\u00e9":1}']
    for name, expected in (
        ("a", [1, 1, 0, 0, 0, 0]),
        ('"', [0, 0, 1, 0, 0, 0]),
        ("\\", [0, 0, 0, 1, 0, 0]),
        ("é", [0, 0, 0, 0, 1, 1]),
    ):
        assert parsed(([name], "==", 1)).matches(cells).tolist() == [bool(one) for one in expected]


def test_many_equal_cells_have_the_same_answer() -> None:
    newer = parsed(("n", ">", 3))
    cells = [b'{"n":8}', b'{"n":1}'] * 100 + [b'{"n":9}', b"{}"]
    assert newer.matches(cells).tolist() == [True, False] * 100 + [True, False]
    assert weight("n", "x").of(cells)[-3:-1].tolist() == [1.0, 9.0]


def test_a_weight_says_what_its_float_lacks_and_sorts_as_the_numbers_do() -> None:
    numbers = [2**53 + 1, 2**53, 2.0**53, -(2**53) - 1, 2**64 - 1, 2**64 - 2, 1.8e19, 0, -(2**63), 1 - 2**63, 0.5]
    cells = [json.dumps({"w": number}).encode() for number in numbers]
    exact = weight("w", "").exactly([*cells, b"{}"])
    assert np.isnan(exact).tolist() == [False] * len(numbers) + [True]
    order = np.lexsort((np.arange(len(numbers)), exact[:-1])).tolist()
    assert order == sorted(range(len(numbers)), key=lambda at: (numbers[at], at))
    order = np.lexsort((np.arange(len(numbers)), -exact[:-1])).tolist()
    assert order == sorted(range(len(numbers)), key=lambda at: (-numbers[at], at))
    assert weight("w", "").exactly(cells[7:8]).dtype == np.float64
