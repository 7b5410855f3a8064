"""Columns that are told once: with the references put back, a reply is byte for byte the one without them."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.routes import batch_meta_render, tasks_render
from batchmeta import BatchMeta
from core.engine import Engine
from core.operations.claim import ClaimRequest, claim_now
from core.operations.delete import delete
from core.operations.produce import RowWrite, patch_backend_meta
from core.operations.read import read
from core.operations.revoke import revoke
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import Sequential
from core.state.cells import earlier_columns
from core.state.cells.json_cells import Column, Const
from tests.columns import in_full, told_twice
from tests.core.world import MANY, Schema, add, new_engine, write

P = "p"
LENGTHS = ([3, 4, 5, 6, 7, 8], [9, 9, 9, 9, 9, 9], [3, 4, 5, 6, 7, 9])
CELLS: tuple[list[bytes] | None, ...] = (
    None,
    [b'"1"'] * 6,
    [b'{"const":%d}' % n for n in range(6)],
    [b'{"x":"%s"}' % (b"y" * 200 + b"%d" % n) for n in range(6)],  # alike at their ends
    [b'{"x":"%s"}' % (b"y" * 100 + b"%d" % n + b"y" * 99) for n in range(6)],
    [b"null"] * 6,
)
MOST = settings(max_examples=100, deadline=None, derandomize=True)


def grown(seed: int) -> Engine:
    """Six rows of fields that are alike in some columns: of all kinds, written in part, revoked, patched, deleted."""
    chance, engine = random.Random(seed), new_engine()
    rows = add(engine, P, 6)
    for number in range(chance.randrange(9)):
        name, lengths, cells = f"f{number}", chance.choice(LENGTHS), chance.choice(CELLS)
        some = sorted(chance.sample(rows, 6 if chance.random() < 0.6 else chance.randrange(1, 6)))
        of_each = None if cells is None else [cells[row] for row in some]
        backend: dict[str, Column] = {} if of_each is None else {name: of_each}
        write(engine, P, some, {name: _schema(chance, [lengths[row] for row in some])}, backend)
        if chance.random() < 0.2:
            revoke(engine, P, Selector(indexes=some[:2]), (name,))
        if chance.random() < 0.2:
            patch_backend_meta(engine, P, RowWrite(rows[:3]), {name: Const(b'"moved"')})
    if chance.random() < 0.3:
        delete(engine, P, Selector(indexes=rows[1:3]))
    return engine


def _schema(chance: random.Random, lengths: list[int]) -> Schema:
    dtype = chance.choice(["int64", "bool", "float32"])
    return chance.choice(
        [
            Schema(dtype, lengths=lengths),
            Schema(dtype, shapes=[[length] for length in lengths]),
            Schema(dtype, shapes=[[length, 2] for length in lengths]),
            Schema(dtype, [4]),
            Schema(kind="object"),
        ]
    )


def asked(engine: Engine, indexes: list[int] | None, names: tuple[str, ...] | None, **how: bool) -> bytes:
    batch = read(engine, P, Selector(indexes=indexes), View(names, **how), False, MANY, None)
    return batch_meta_render.page(batch).body


names = st.none() | st.lists(st.sampled_from([f"f{n}" for n in range(9)]), max_size=9).map(tuple)
indexes = st.none() | st.lists(st.integers(0, 7), max_size=8)


@MOST
@given(st.integers(0, 10_000), indexes, names, st.booleans(), st.booleans())
def test_with_the_references_put_back_it_is_the_reply_without(
    seed: int, rows: list[int] | None, fields: tuple[str, ...] | None, expand: bool, compact: bool
) -> None:
    engine = grown(seed)
    for _ in range(2):  # the second time from what was worked out for these fields
        plain = asked(engine, rows, fields, expand=expand, compact=compact)
        shared = asked(engine, rows, fields, expand=expand, compact=compact, share=True)
        assert in_full(json.loads(shared)) == json.loads(plain)
        assert json.loads(shared)["size"] > 1 or shared == plain
        assert json.loads(shared)["size"] < 2 or not _told_twice(json.loads(shared))
        assert not expand or b'{"const":"1"}' not in shared
        there, meant = BatchMeta.from_json(shared), BatchMeta.from_json(plain)
        assert there == meant
        assert there.to_json() == meant.to_json() == plain.replace(b',"next_cursor":null', b"")


def _told_twice(body: Any) -> list[Any]:
    schemas = body["field_schema"]
    members = [
        {name: one[member] for name, one in schemas.items() if member in one} for member in ("lengths", "shapes")
    ]
    return [column for columns in (body["backend_meta"], *members) for column in told_twice(columns)]


@MOST
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_a_claim_tells_its_batch_in_the_same_way(seed: int, size: int) -> None:
    found = []
    for share in (False, True):
        engine = grown(seed)
        known = tuple(engine.partitions[P].fields) or ("none",)
        wanted = ClaimRequest("t", known, size, 1, 0, Sequential(), View(known, share=share))
        found.append(json.loads(tasks_render.claim(claim_now(engine, P, wanted)).body))
    plain, shared = found
    assert {**shared, "batch": in_full(shared["batch"])} == plain


def test_some_of_these_replies_have_references_of_each_kind() -> None:
    kinds: set[str] = set()
    for seed in range(40):
        body = json.loads(asked(grown(seed), None, None, compact=seed % 2 == 0, share=True))
        kinds |= {"backend" for column in body["backend_meta"].values() if "same_as" in column}
        schemas = body["field_schema"].values()
        kinds |= {member for one in schemas for member, told in one.items() if "same_as" in str(told)}
    assert kinds == {"backend", "lengths", "shapes"}


def test_fields_of_other_dtypes_share_their_lengths_alone() -> None:
    engine = new_engine()
    rows = add(engine, P, 2)
    schemas = {"a": Schema("int64", lengths=[1, 2]), "b": Schema("bool", lengths=[1, 2])}
    write(engine, P, rows, schemas)
    body = json.loads(asked(engine, None, None, compact=True, share=True))
    head = {"kind": "tensor", "ragged": True}
    assert body["field_schema"] == {
        "a": {**head, "dtype": "int64", "lengths": [1, 2]},
        "b": {**head, "dtype": "bool", "lengths": {"same_as": "a"}},
    }


def test_a_change_of_a_field_is_seen_by_the_next_read() -> None:
    engine = new_engine()
    rows = add(engine, P, 2)
    write(engine, P, rows, {"a": Schema("int64", [1]), "b": Schema("int64", [1])}, {"a": Const(b"1"), "b": Const(b"1")})
    first = json.loads(asked(engine, None, None, share=True))
    assert first["backend_meta"] == {"a": {"const": 1}, "b": {"same_as": "a"}}
    write(engine, P, rows[:1], {"b": Schema("int64", [2])})
    write(engine, P, rows, {"a": Schema("int64", [1])}, {"a": Const(b"2")})
    body = json.loads(asked(engine, None, None, share=True))
    assert body["backend_meta"] == {"a": {"const": 2}, "b": [None, 1]}
    assert (body["field_schema"]["a"]["ragged"], body["field_schema"]["b"]["shapes"]) == (False, [[2], [1]])
    write(engine, P, rows, {"c": Schema("int64", [2])})
    assert json.loads(asked(engine, None, None, share=True))["fields"] == ["a", "b", "c"]
    patch_backend_meta(engine, P, RowWrite(rows), {"b": Const(b"1")})
    assert json.loads(asked(engine, None, ("a", "b"), share=True))["backend_meta"]["b"] == {"const": 1}


def test_columns_alike_at_their_ends_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(earlier_columns, "_ENDS", 1)
    engine = new_engine()
    rows = add(engine, P, 3)
    for name, middle in zip("abcdef", b"121323", strict=True):
        cells: Any = [b"1", bytes([middle]), b"1"]
        write(engine, P, rows, (name,), {name: cells})
    told = json.loads(asked(engine, None, None, share=True))["backend_meta"]
    one = {"const": 1}
    assert told == {
        "a": one, "b": [1, 2, 1], "c": {"same_as": "a"}, "d": [1, 3, 1], "e": {"same_as": "b"}, "f": {"same_as": "d"},
    }  # fmt: skip
