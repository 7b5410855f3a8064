"""The algebra of batches: a batch that is split and joined again is the same, and each part describes itself truly."""

import json
import pickle
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchmeta import BatchMeta, Column
from tests.client.service import batch

NAMES = ["a", "b", "c"]
TEXT = st.text(alphabet='aé"\\\n\U0001f600', max_size=3)
# The machine may be shared and slow; nothing here is about time.
SMALL = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CELLS = st.one_of(st.none(), TEXT, st.integers(-9, 9), st.floats(allow_nan=False, allow_infinity=False))
OBJECTS = st.dictionaries(TEXT, CELLS, max_size=3)


def _column(cells: st.SearchStrategy[Any], size: int) -> st.SearchStrategy[Any]:
    return st.lists(cells, min_size=size, max_size=size) | st.fixed_dictionaries({"const": cells})


@st.composite
def _schema(draw: st.DrawFn, size: int) -> dict[str, Any]:
    ragged = {"kind": "tensor", "dtype": "int64", "ragged": True}
    kind = draw(st.sampled_from(["object", "shape", "shapes", "lengths"]))
    sizes = st.integers(0, 9)
    if kind == "object":
        return {"kind": "object"}
    if kind == "shape":
        shape = draw(st.none() | st.lists(sizes, max_size=2))
        return {"kind": "tensor", "dtype": "float32", "ragged": False, "shape": shape}
    if kind == "shapes":
        return {**ragged, "shapes": draw(_column(st.none() | st.lists(sizes, min_size=2, max_size=2), size))}
    return {**ragged, "lengths": draw(_column(st.none() | sizes, size))}


@st.composite
def plain_batches(draw: st.DrawFn) -> dict[str, Any]:
    """The wire form of any batch of up to six rows, as a service could send it."""
    size = draw(st.integers(0, 6))
    fields = draw(st.lists(st.sampled_from(NAMES), unique=True))
    bits = st.integers(0, 1)
    cells = {name: draw(st.lists(bits, min_size=size, max_size=size)) for name in fields}
    status = [int(bool(fields) and all(cells[name][row] for name in fields)) for row in range(size)]
    plain: dict[str, Any] = {
        "partition_id": "train@0",
        "revision": draw(st.integers(0, 99)),
        "size": size,
        "is_ready": size > 0 and all(status),
        "global_indexes": draw(st.lists(st.integers(0, 2**63 - 1), min_size=size, max_size=size)),
        "fields": fields,
        "missing_fields": draw(st.lists(st.sampled_from(["y", "z"]), unique=True)),
        "production_status": status,
    }
    extra: dict[str, Any] = {
        "keys": draw(_column(st.none() | TEXT, size)),
        "group_ids": draw(_column(st.none() | TEXT | st.integers(0, 9), size)),
        "custom_meta": draw(_column(st.none() | OBJECTS, size)),
        "field_schema": {name: draw(_schema(size)) for name in fields},
        "backend_meta": {name: draw(_column(CELLS | OBJECTS, size)) for name in fields},
        "field_status": cells,
    }
    kept = draw(st.sets(st.sampled_from(sorted(extra))))
    return {**plain, **{name: extra[name] for name in kept}}


BATCHES = plain_batches().map(BatchMeta.from_dict)


def _rows(meta: BatchMeta) -> list[Any]:
    """What is said of each row, whatever the form of the columns."""
    columns: list[Column[Any]] = [meta.global_indexes, meta.production_status]
    columns += [column for column in (meta.keys, meta.group_ids, meta.custom_meta) if column is not None]
    for each in (meta.backend_meta, meta.field_status):
        columns += [each[name] for name in meta.fields] if each is not None else []
    shapes = meta.field_schema or {}
    return [[c[row] for c in columns] + [shapes[n].shape_of(row) for n in shapes] for row in range(meta.size)]


@SMALL
@given(plain_batches())
def test_the_wire_form_round_trips_exactly(plain: dict[str, Any]) -> None:
    back = BatchMeta.from_dict(plain).to_dict()
    assert json.dumps(back, sort_keys=True) == json.dumps(plain, sort_keys=True)


@SMALL
@given(BATCHES)
def test_pickled_and_back_it_is_the_same(meta: BatchMeta) -> None:
    assert pickle.loads(pickle.dumps(meta)) == meta


@SMALL
@given(BATCHES, st.integers(1, 9))
def test_chunk_then_concat_is_the_identity(meta: BatchMeta, n: int) -> None:
    chunks = meta.chunk(n)
    assert len(chunks) == n
    sizes = [chunk.size for chunk in chunks]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1
    joined = BatchMeta.concat(chunks)
    assert joined == meta
    assert joined.to_dict() == meta.to_dict()


@SMALL
@given(BATCHES, st.data())
def test_reorder_then_its_inverse_is_the_identity(meta: BatchMeta, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(meta.size)))
    inverse = [order.index(row) for row in range(meta.size)]
    moved = meta.reorder(order)
    assert _rows(moved) == [_rows(meta)[row] for row in order]
    assert moved.reorder(inverse) == meta


@SMALL
@given(BATCHES, st.data())
def test_select_fields_and_select_samples_commute(meta: BatchMeta, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from([*meta.fields, *meta.missing_fields]))) if meta.fields else []
    rows = data.draw(st.lists(st.integers(0, meta.size - 1), max_size=6)) if meta.size else []
    try:
        fields_first = meta.select_fields(names).select_samples(rows)
    except ValueError:  # some row is not ready and what it lacks is not known; without that row it may be
        return
    assert meta.select_samples(rows).select_fields(names) == fields_first


@SMALL
@given(BATCHES, st.data())
def test_select_samples_twice_is_once_with_the_composed_positions(meta: BatchMeta, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, meta.size - 1), max_size=6)) if meta.size else []
    again = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)) if rows else []
    assert meta.select_samples(rows).select_samples(again) == meta.select_samples([rows[row] for row in again])


@SMALL
@given(st.tuples(plain_batches(), plain_batches(), plain_batches()))
def test_concat_keeps_every_row_and_is_associative(three: tuple[dict[str, Any], ...]) -> None:
    parts = [BatchMeta.from_dict(_bare(plain)) for plain in three]
    all_at_once = BatchMeta.concat(parts)
    assert _rows(all_at_once) == [row for part in parts for row in _rows(part)]
    assert BatchMeta.concat([BatchMeta.concat(parts[:2]), parts[2]]) == all_at_once
    assert BatchMeta.concat([parts[0], BatchMeta.concat(parts[1:])]) == all_at_once
    assert all_at_once.revision == min(part.revision for part in parts)


def _bare(plain: dict[str, Any]) -> dict[str, Any]:
    """The same rows with custom meta and without fields: any such batches can be joined."""
    columns = ("keys", "group_ids", "field_schema", "backend_meta", "field_status")
    bare = {name: value for name, value in plain.items() if name not in columns}
    return {**bare, "fields": [], "missing_fields": [], "custom_meta": plain.get("custom_meta", {"const": {}})}


def test_select_fields_computes_the_status_from_field_status() -> None:
    status = {"x": [1, 1, 0], "y": {"const": 1}}
    meta = BatchMeta.from_dict(batch([0, 1, 2], fields=["x", "y"], production_status=[1, 1, 0], field_status=status))
    assert meta.select_fields(["y"]).production_status == [1, 1, 1]
    assert meta.select_fields(["x"]).production_status == [1, 1, 0]
    assert meta.select_fields([]).production_status == [0, 0, 0]


def test_select_fields_without_field_status_keeps_ready_rows_and_refuses_to_guess() -> None:
    ready = BatchMeta.from_dict(batch([0, 1], fields=["x", "y"]))
    assert ready.select_fields(["y"]).is_ready
    half = BatchMeta.from_dict(batch([0, 1], fields=["x", "y"], production_status=[1, 0], is_ready=False))
    with pytest.raises(ValueError, match="include field_status"):
        half.select_fields(["y"])
    assert half.select_fields(["y", "x", "y"]).production_status == [1, 0]


def test_select_fields_takes_missing_ones_along_and_refuses_unknown_ones() -> None:
    meta = BatchMeta.from_dict(batch([0], missing_fields=["later"]))
    assert meta.select_fields(["later", "x"]).missing_fields == ("later",)
    assert meta.select_fields(["x"]).missing_fields == ()
    with pytest.raises(KeyError, match="typo"):
        meta.select_fields(["typo"])


@pytest.mark.parametrize("positions", [[2], [-1], [0, 2]])
def test_positions_outside_are_refused(positions: list[int]) -> None:
    with pytest.raises(IndexError):
        BatchMeta.from_dict(batch([5, 6])).select_samples(positions)


@pytest.mark.parametrize("positions", [[0], [0, 0], [1, 2], [0, 1, 1]])
def test_reorder_takes_each_row_once(positions: list[int]) -> None:
    with pytest.raises(ValueError, match="each once"):
        BatchMeta.from_dict(batch([5, 6])).reorder(positions)


@pytest.mark.parametrize(
    "other",
    [{"partition_id": "q"}, {"fields": ["y"]}, {"custom_meta": [{}]}, {"field_schema": {"x": {"kind": "object"}}}],
)
def test_concat_refuses_what_does_not_belong_together(other: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"different|some do not"):
        BatchMeta.concat([BatchMeta.from_dict(batch([0])), BatchMeta.from_dict(batch([1], **other))])


def test_concat_of_nothing_and_chunks_of_none_are_refused() -> None:
    with pytest.raises(ValueError, match="no batch"):
        BatchMeta.concat([])
    with pytest.raises(ValueError, match="at least 1"):
        BatchMeta.from_dict(batch([0])).chunk(0)


def test_concat_fills_absent_keys_up() -> None:
    joined = BatchMeta.concat([BatchMeta.from_dict(batch([0, 1])), BatchMeta.from_dict(batch([2], keys=["k"]))])
    assert joined.keys == [None, None, "k"]


def test_what_belongs_to_the_call_stays_behind() -> None:
    meta = BatchMeta.from_dict(batch([0, 1], created=2, missing_keys=["gone"], next_cursor="c"))
    assert (meta.created, meta.missing_keys) == (2, ("gone",))
    for derived in (meta.chunk(1)[0], meta.select_fields(["x"]), meta.reorder([1, 0]), BatchMeta.concat([meta])):
        assert (derived.created, derived.missing_keys) == (None, None)
    assert "next_cursor" not in meta.to_dict()


def test_what_is_no_batch_meta_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="partition_id"):
        BatchMeta.from_dict({"size": 1})


def test_the_text_of_a_batch_is_short() -> None:
    assert repr(BatchMeta.from_dict(batch([0] * 1000))) == "<BatchMeta of 'p', 1000 rows, 1 fields, ready>"
