"""A member that appears twice in one object is found at any place, and no other text is reported."""

import json
from typing import Any

import msgspec
import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.engine import Engine
from core.errors import Invalid
from core.events import CustomMetaSet
from core.operations.produce import RowWrite, patch_custom_meta
from core.state.cells.duplicate_members import is_plain, repeated, repeated_name
from core.state.cells.json_cells import CellChecker, patched

from .world import Book, add, new_engine

# A cell, and where in it a member stands twice.
TWICE = [
    (b'{"x": 1, "x": 2}', ".x"),
    (b'{"x":1,"x":1}', ".x"),
    (b'{"x":1,"\\u0078":2}', ".x"),
    (b'{"x" :1,"y":":","x"\n:2}', ".x"),
    (b'{"x":1,"x":"\\u0022:"}', ".x"),
    (b'{"x":1,"x":"\\u003a"}', ".x"),
    (b'{"x":":","x":"y"}', ".x"),
    (b'{"a":[1,{"b":{"x":1,"y":2,"x":3}}]}', ".a[1].b.x"),
    (b'[{"a":1},{"a":1,"a":{}}]', "[1].a"),
    (b'{"a":{"x":1,"x":2},"b":{"x":1}}', ".a.x"),
    (b'{"":1,"":2}', "."),
    (b'{"a":1e-05,"b":1.50,"a":null}', ".a"),
    ('{"é":1,"\\u00e9":2}'.encode(), ".é"),
]
ONCE = [
    b"{}",
    b"1",
    b'"x:y"',
    b'{"x":1}',
    b'{"a":{"x":1},"b":{"x":1},"c":[{"x":1},{"x":2}]}',
    b'{"a":"tcp://[::1]:80","b":"\\":\\"x\\":1"}',
    b'{"x":1,"X":2}',
    b'{"a" : "\\u0022:", "b":\t":"}',
    b'{"rate":1e-05,"n":18446744073709551615,"m":-9223372036854775808}',
    b'{"a":null,"b":null}',
]


def check(cell: bytes) -> bytes:
    return CellChecker(65_536).cell(cell, "body.custom_meta[3]", 2, False)


@pytest.mark.parametrize(("cell", "place"), TWICE)
def test_a_cell_with_a_member_twice_is_refused_and_its_place_named(cell: bytes, place: str) -> None:
    for _ in range(2):  # nor is it remembered as a good one
        with pytest.raises(Invalid, match="twice in one object") as refused:
            check(cell)
        assert refused.value.errors[0][0] == f"body.custom_meta[3]{place}"


@pytest.mark.parametrize("cell", ONCE)
def test_other_cells_are_kept_as_they_came(cell: bytes) -> None:
    assert check(cell) == cell
    assert repeated(cell) is None


names = st.sampled_from(["x", "y", ":", '":', "\\", ""])
values = st.recursive(
    st.none() | st.integers(-3, 3) | st.floats(0, 1) | names,
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(names, inner), max_size=4).map(tuple),
    max_leaves=12,
)


def written(value: Any, escapes: bool, space: str) -> tuple[str, bool]:
    """The JSON, where a tuple of pairs is an object, and whether a member stands twice in one."""
    if isinstance(value, tuple):
        parts = [(written(name, escapes, space)[0], *written(part, escapes, space)) for name, part in value]
        text = ",".join(f"{name}{space}:{space}{part}" for name, part, _ in parts)
        return f"{{{text}}}", len(dict(value)) < len(value) or any(is_twice for *_, is_twice in parts)
    if isinstance(value, list):
        items = [written(part, escapes, space) for part in value]
        return f"[{','.join(text for text, _ in items)}]", any(is_twice for _, is_twice in items)
    if isinstance(value, str) and escapes:
        return '"' + "".join(f"\\u{ord(character):04x}" for character in value) + '"', False
    return json.dumps(value), False


@settings(max_examples=500, deadline=None, derandomize=True)
@given(values, st.booleans(), st.sampled_from(["", " ", "\n\t"]))
def test_it_is_found_where_one_is_and_nowhere_else(value: Any, escapes: bool, space: str) -> None:
    text, is_twice = written(value, escapes, space)
    cell = text.encode()
    assert (repeated(cell) is not None) is is_twice
    assert not (is_twice and is_plain(cell, orjson.dumps(msgspec.json.decode(cell))))


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.lists(st.tuples(names, values), max_size=5), st.booleans(), st.sampled_from(["", " ", "\n\t"]))
def test_of_one_object_alone_the_name_is_told(pairs: Any, escapes: bool, space: str) -> None:
    text = written(tuple(pairs), escapes, space)[0].encode()
    found = repeated_name(text, msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
    assert (found is not None) is (len(dict(pairs)) < len(pairs))
    assert found is None or [name for name, _ in pairs].count(found) > 1


def stored(engine: Engine, index: int) -> bytes:
    partition = engine.partitions["p"]
    return partition.custom_meta_of(partition.rows.locate(np.array([index])))[0]


def test_what_an_old_journal_holds_is_replayed_and_the_next_merge_leaves_it_once() -> None:
    old = b'{"x":1,"x":2}'
    book, engine = Book(), new_engine()
    (index,) = add(engine, "p", custom_meta=[b"{}"])
    engine.commit(CustomMetaSet("p", index.to_bytes(8, "little"), [old]))
    book.take(engine)
    again = book.replayed()
    assert stored(again, index) == old
    patch_custom_meta(again, "p", RowWrite(indexes=[index], custom_meta=[b'{"y":3}']))
    assert stored(again, index) == b'{"x":2,"y":3}'


def test_a_merge_makes_no_member_twice() -> None:
    assert patched(b'{"x":1}', b'{"\\u0078":2}', "x", 300) == b'{"x":2}'
