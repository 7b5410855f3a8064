"""A body decoded in pieces is the body decoded at once: the same value, or the same refusal in the same words."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.pieces import Pieces
from batchmeta.wire import requests

pieces, whole = Pieces(requests.Produce), msgspec.json.Decoder(requests.Produce)

values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**63) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["const", "dtype", "lengths", "shape", "kind", "", "a", "$"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
schemas = st.fixed_dictionaries(
    {"dtype": st.sampled_from(["int64", "float32"]), "lengths": st.lists(st.integers(0, 9), max_size=3)}
)
bodies = st.fixed_dictionaries(
    {"field_schema": st.dictionaries(st.sampled_from(["a", "b", "", "$"]), schemas | values, max_size=3) | values},
    optional={
        "keys": st.lists(st.text(max_size=3), max_size=3) | values,
        "create": st.booleans() | values,
        "backend_meta": st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2) | values,
        "custom_meta": st.lists(st.dictionaries(st.just("x"), values, max_size=1), max_size=2) | values,
        "stray": values,
    },
) | values  # fmt: skip


def told(decoder: "Pieces[requests.Produce] | msgspec.json.Decoder[requests.Produce]", body: bytes) -> object:
    """The value as JSON, or the words of the refusal."""
    try:
        return msgspec.json.encode(decoder.decode(body))
    except msgspec.ValidationError as error:
        return str(error)
    except msgspec.DecodeError:
        return "broken"


@settings(max_examples=400, deadline=None, derandomize=True)
@given(bodies)
def test_in_pieces_it_is_the_same(body: object) -> None:
    text = msgspec.json.encode(body)
    one, other = told(whole, text), told(pieces, text)
    if isinstance(one, bytes):
        assert one == other
    else:
        assert isinstance(other, str)  # of several mistakes each may name another first


@pytest.mark.parametrize(
    "body",
    [
        b'{"keys": ["a"]}',
        b'{"field_schema": null}',
        b'{"field_schema": {"a": {"x": 1}}}',
        b'{"field_schema": {"": {"dtype": "int64"}}}',
        b'{"field_schema": {"a": {"dtype": "int64", "shapes": [[1], ["x"]]}}}',
        b'{"field_schema": {}, "global_indexes": [1, "2"]}',
        b'{"field_schema": {}, "backend_meta": {"a": 7}}',
        b'{"zzz": 1}',
        b"[1]",
        b"{",
        b'{"field_schema": {}} x',
    ],
)
def test_a_mistake_is_told_in_the_same_words(body: bytes) -> None:
    assert told(pieces, body) == told(whole, body)
