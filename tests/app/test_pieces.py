"""A body decoded in pieces is the body decoded at once: the same value, or the same refusal in the same words."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.pieces import Pieces, Repeated
from batchmeta.wire import requests

produce = Pieces(requests.Produce)

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
bodies = (
    st.fixed_dictionaries(
        {"field_schema": st.dictionaries(st.sampled_from(["a", "b", "", "$"]), schemas | values, max_size=3) | values},
        optional={
            "keys": st.lists(st.text(max_size=3), max_size=3) | values,
            "create": st.booleans() | values,
            "backend_meta": st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2) | values,
            "custom_meta": st.lists(st.dictionaries(st.just("x"), values, max_size=1), max_size=2) | values,
            "stray": values,
        },
    )
    | values
)


def told(decode: Callable[[bytes], requests.Produce], body: bytes) -> object:
    """The value as JSON, or the words of the refusal."""
    try:
        return msgspec.json.encode(decode(body))
    except msgspec.ValidationError as error:
        return str(error)
    except msgspec.DecodeError:
        return "broken"


@settings(max_examples=400, deadline=None, derandomize=True)
@given(bodies)
def test_in_pieces_it_is_the_same(body: object) -> None:
    text = msgspec.json.encode(body)
    one, other = told(produce.at_once, text), told(produce.decode, text)
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
    assert told(produce.decode, body) == told(produce.at_once, body)


@pytest.mark.parametrize("decode", [produce.at_once, produce.decode], ids=["at-once", "in-pieces"])
@pytest.mark.parametrize(
    ("member", "place"),
    [
        ('"field_schema": {"ids": {"dtype": "int64"}, "a.b": {"dtype": "floaty"}}', ".field_schema.a.b.dtype"),
        ('"field_schema": {"ids": {"dtype": "int64", "shapes": [[1], ["x"]]}}', ".field_schema.ids.shapes[1][0]"),
        ('"field_schema": {"ids": 7}', ".field_schema.ids"),
        ('"field_schema": {}, "backend_meta": {"ids": 7}', ".backend_meta.ids"),
        ('"field_schema": {}, "backend_meta": {"ids": {"const": 1, "more": 2}}', ".backend_meta.ids"),
        ('"field_schema": {"ids": {"z - at `$.q`": 1}}', ".field_schema.ids"),
    ],
)
def test_a_mistake_in_a_value_of_a_dict_is_told_with_its_name(
    decode: Callable[[bytes], requests.Produce], member: str, place: str
) -> None:
    with pytest.raises(msgspec.ValidationError, match=re.escape(f" - at `${place}`")):
        decode(f'{{"keys": ["a"], {member}}}'.encode())


@pytest.mark.parametrize("name", ["field_schema", "backend_meta"])
def test_a_member_with_a_value_per_field_is_decoded_field_by_field(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []
    decoder = msgspec.json.Decoder

    def noting(kind: Any) -> object:
        def decode(text: Any) -> object:
            decoded.append(bytes(text))
            return decoder(kind).decode(text)

        return SimpleNamespace(decode=decode)

    monkeypatch.setattr(msgspec.json, "Decoder", noting)
    one = {"dtype": "int64"} if name == "field_schema" else [1]
    body = {"field_schema": {}} | {name: {f"f{i}": one for i in range(9)}}
    Pieces(requests.Produce).decode(msgspec.json.encode(body))
    assert decoded.count(msgspec.json.encode(one)) == 9


def test_a_small_body_that_comes_again_is_decoded_once() -> None:
    reader = Repeated(requests.Claim)
    small, other = (b'{"fields":["a"],"batch_size":%d}' % size for size in (1, 2))
    assert reader.at_once(bytes(bytearray(small))) is reader.at_once(small)
    assert reader.at_once(other).batch_size == 2
    large = small[:-1] + b" " * Repeated.MOST + b"}"
    assert reader.at_once(large) == reader.at_once(small)
    assert reader.at_once(large) is not reader.at_once(large)


def test_a_body_that_was_refused_is_refused_again() -> None:
    reader = Repeated(requests.Claim)
    for _ in range(2):
        with pytest.raises(msgspec.ValidationError, match="batch_size"):
            reader.at_once(b'{"fields":["a"],"batch_size":"x"}')
