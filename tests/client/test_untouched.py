"""Nothing of a batch is built that nobody looks at: the JSON of a column is decoded at its first use, or never."""

import pickle
from typing import Any

import msgspec
import pytest

from batchmeta import Array, BatchMeta, Const, FieldSchema
from batchmeta.columns import Cells
from batchmeta.lazy_fields import Columns
from tests.client.service import batch

# Of no such column the JSON is what it has to be: who decodes it, finds out.
WRONG = {"const": "no number"}


def _batch(indexes: list[int], **more: Any) -> BatchMeta:
    size = len(indexes)
    schema = {"kind": "tensor", "dtype": "int64", "ragged": True, "lengths": ["no number"] * size}
    return BatchMeta.from_dict(
        batch(indexes, field_schema={"x": schema}, field_status={"x": WRONG}, keys=[7] * size, **more)
    )


@pytest.mark.parametrize(
    "derive",
    [
        lambda meta: meta,
        lambda meta: meta.select_samples([1, 0]),
        lambda meta: meta.reorder([2, 0, 1]),
        lambda meta: meta.chunk(2)[1],
        lambda meta: meta.select_fields(["x"]),
        lambda meta: BatchMeta.concat([meta, meta.chunk(3)[0]]),
        lambda meta: pickle.loads(pickle.dumps(meta)),
    ],
    ids=["read", "select_samples", "reorder", "chunk", "select_fields", "concat", "pickle"],
)
def test_no_column_is_decoded_before_somebody_looks_at_it(derive: Any) -> None:
    meta = derive(_batch([5, 6, 7]))
    assert meta.size == len(meta.keys) == len(meta.global_indexes)
    with pytest.raises(ValueError, match="Expected"):
        meta.keys.to_list()
    with pytest.raises(ValueError, match="Expected"):
        meta.field_schema["x"].lengths.to_list()
    with pytest.raises(ValueError, match="Expected"):
        meta.field_status["x"].to_list()


def test_a_schema_and_a_column_are_made_once_and_the_others_never(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    schema, column = FieldSchema.from_wire, Cells.column
    monkeypatch.setattr(FieldSchema, "from_wire", lambda *given: (made.append("schema"), schema(*given))[1])
    monkeypatch.setattr(Cells, "column", lambda *given: (made.append("column"), column(*given))[1])
    names = ["x", "y", "z"]
    parts = {"field_schema": {n: {"kind": "object"} for n in names}, "backend_meta": {n: {"const": 1} for n in names}}
    meta = BatchMeta.from_dict(batch([0, 1], fields=names, **parts))
    assert (meta.field_schema is not None, meta.backend_meta is not None) == (True, True)
    assert made == ["column"] * 2  # the indexes and the status
    for _ in range(2):
        assert meta.field_schema is not None
        assert meta.backend_meta is not None
        assert list(meta.field_schema) == names
        assert "y" in meta.backend_meta
        assert "w" not in meta.backend_meta
        assert meta.field_schema["y"].kind == "object"
        assert meta.backend_meta["y"] is meta.backend_meta["y"]
    assert made == ["column"] * 2 + ["schema", "column"]


def test_columns_by_field_are_a_mapping_like_any_other() -> None:
    columns = Columns({"a": 1, "b": 2}, lambda part: Const(part, 2))
    assert columns == {"a": Const(1, 2), "b": [2, 2]}
    assert {"a": Const(1, 2), "b": Const(2, 2)} == columns
    assert columns != {"a": Const(1, 2)}
    assert repr(columns) == "{'a': Const(1, 2), 'b': Const(2, 2)}"
    assert pickle.loads(pickle.dumps(columns)) == columns
    with pytest.raises(KeyError, match="c"):
        columns["c"]


def test_a_cut_column_lets_go_of_what_it_was_cut_out_of() -> None:
    whole = Array([1, 2, 3])
    cut = whole.at([2, 0])
    assert len(cut) == 2
    assert cut.to_list() == [3, 1]
    assert cut._later is None


def test_a_position_that_is_not_there_is_told_when_the_rows_are_taken() -> None:
    with pytest.raises(IndexError):
        Array([1, 2]).take([0, 2])
    assert Array([1, 2]).take([-1]) == [2]


def test_what_was_cut_or_joined_goes_out_as_its_values() -> None:
    meta = BatchMeta.from_dict(batch([5, 6], custom_meta=[{"a": 1}, None])).reorder([1, 0])
    assert msgspec.json.decode(meta.to_json())["custom_meta"] == [None, {"a": 1}]
