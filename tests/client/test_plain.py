"""JSON values of any size are sent unchanged, and all others refused: the quick checks and the full walk agree."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchmeta.json_values import encoded, exact
from tests.client.given import NO_CELL, Float, Int, Text, Word

SMALL = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=4),
)
LONG = ["x" * 20_000]


@SMALL
@given(JSON)
def test_json_goes_out_as_it_is(value: Any) -> None:
    assert json.loads(encoded(value)) == value
    assert json.loads(encoded([value, LONG])) == [value, LONG]
    assert json.dumps(exact(value, "x")) == json.dumps(value)


@SMALL
@given(JSON, st.sampled_from(NO_CELL), st.integers(0, 100))
def test_one_value_that_is_none_is_found_wherever_it_stands(value: Any, odd: tuple[Any, Any], rows: int) -> None:
    hidden = [{"a": value}] * rows + [{"a": [odd[0]]}]
    for whole in (hidden, [hidden, LONG], {"f": hidden}):
        with pytest.raises(odd[1], match=rf"\[{rows}\]\.a\[0\]"):
            encoded(whole, "x")


@pytest.mark.parametrize("odd", [Text("a"), Int(3), Float(0.5), Word.A])
@pytest.mark.parametrize("plain", ["a", 3, 0.5, True, None])
def test_a_subclass_among_many_goes_out_as_what_it_is(odd: Any, plain: Any) -> None:
    column = [plain] * 10_000 + [odd]
    assert json.loads(encoded(column)) == [plain] * 10_000 + [json.loads(json.dumps(odd))]


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_a_number_beyond_64_bits_is_found_among_many(number: int, size: int) -> None:
    with pytest.raises(ValueError, match=rf"x\[{size}\]: .* 64 bits"):
        encoded([7] * size + [number], "x")
    assert json.loads(encoded([7] * size + [2**64 - 1])) == [7] * size + [2**64 - 1]


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_lone_surrogate_is_found_among_many(size: int) -> None:
    with pytest.raises(ValueError, match=rf"x\[{size}\]\.a: .* lone surrogate"):
        encoded([{"a": "b"}] * size + [{"a": "\udfff"}], "x")
