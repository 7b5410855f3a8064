"""A partition takes the fields of its first write from those of an earlier one like it: nothing tells them apart."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.arrays import Ints
from core.engine import Engine
from core.events import Produced
from core.state.cells.grid import Grid
from core.state.cells.readiness import HostWords
from core.state.cells.signatures import FieldSignature, to_bytes
from tests.core.test_schema import FIXED, RAGGED, F, P, out, tensor
from tests.core.world import Schema, add, look, new_engine, write
from tests.model.compare import dump

CAPACITY, ROWS = 16, np.array([1, 3])
CELLS = st.sampled_from([b"1", b"null", [b"1", b"2"], [b"null", b"null"]])
TENSORS = st.builds(
    lambda ragged, rank: ("tensor", "int64", ragged, rank), st.booleans(), st.integers(min_value=0, max_value=3)
)
FIELDS = st.lists(st.one_of(TENSORS, st.just(("object", None, False, None))), min_size=1, max_size=70)


@st.composite
def writes(draw: st.DrawFn) -> Produced:
    signatures = [FieldSignature(f"f{at}", *field) for at, field in enumerate(draw(FIELDS))]
    sizes: list[int] = []
    per_row: list[int] = []
    for one in signatures:
        of_field = draw(st.lists(st.integers(0, 9), min_size=one.rank or 0, max_size=one.rank or 0))
        sizes += of_field
        per_row += [size + one.ragged for size in of_field]
    cells = [draw(CELLS) for _ in signatures]
    return Produced("p", b"", to_bytes(signatures), np.array([sizes, per_row], "<i4").tobytes(), cells)


@given(writes())
def test_it_leaves_what_an_ordinary_write_leaves(event: Produced) -> None:
    first, ordinary = Grid(HostWords, CAPACITY), Grid(HostWords, CAPACITY)
    ordinary._place(event.signature)  # from now on it has its fields
    for grid in (first, ordinary):
        assert grid.produce(ROWS, event) == (1 << len(grid.fields)) - 1
    assert dump(first) == dump(ordinary)


@given(writes())
def test_one_that_is_like_it_leaves_the_same_again_though_the_first_has_changed(event: Produced) -> None:
    first = Grid(HostWords, CAPACITY)
    first.produce(ROWS, event)
    meant = dump(first)
    for field in first.fields.values():
        field.become_ragged()
        field.backend.put(ROWS, [b"8", b"9"], nobody, CAPACITY)
    second = Grid(HostWords, CAPACITY)
    second.produce(ROWS, event)
    assert dump(second) == meant


def nobody() -> Ints:
    return np.empty(0, np.int64)


def made(partition: str, engine: Engine) -> None:
    write(engine, partition, add(engine, partition, 2), {F: FIXED})


def schema(engine: Engine, partition: str) -> Any:
    return look(engine, partition, None, [F], frozenset({"field_schema"})).field_schema


def test_a_schema_that_was_told_is_told_of_its_own_partition_alone() -> None:
    engine = new_engine()
    made(P, engine)
    made("q", engine)
    assert out(engine) == tensor(shape=[4])
    write(engine, P, add(engine, P, 2), {F: RAGGED})
    assert out(engine) == tensor(shapes=[[4], [4], [1], [2]])
    before = schema(engine, "q")
    made("r", engine)
    assert schema(engine, "r") == before == b'{"f":{"kind":"tensor","dtype":"int64","ragged":false,"shape":[4]}}'


def test_another_shape_is_another_schema() -> None:
    engine = new_engine()
    made("q", engine)
    write(engine, P, add(engine, P, 2), {F: Schema("int64", [2])})
    assert out(engine) == tensor(shape=[2])
