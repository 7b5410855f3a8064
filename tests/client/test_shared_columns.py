"""Columns that the service told once: the caller of the client sees none of it."""

import pickle
from typing import Any

import msgspec
import pytest

from batchmeta import BatchMeta
from batchmeta.lazy_columns import Encoded
from tests.client.service import batch
from tests.columns import in_full

SAME: Any = {"same_as": "a"}
HEAD = {"kind": "tensor", "ragged": True}
TOLD = batch(
    [5, 6],
    fields=["a", "b", "c"],
    field_schema={
        "a": {**HEAD, "dtype": "int64", "lengths": [3, 4]},
        "b": {**HEAD, "dtype": "bool", "lengths": SAME},
        "c": {**HEAD, "dtype": "int8", "shapes": [[3, 1], [4, 1]]},
    },
    backend_meta={"a": [{"at": 1}, {"at": 2}], "b": SAME, "c": {"const": {"same_as": "a"}}},
)


def test_a_batch_is_the_one_that_was_told_in_full() -> None:
    told, meant = BatchMeta.from_dict(TOLD), BatchMeta.from_dict(in_full(TOLD))
    assert told.field_schema is not None
    assert (told.field_schema["b"].dtype, told.field_schema["b"].lengths) == ("bool", [3, 4])
    assert told == meant
    for there in (told, BatchMeta.from_dict(TOLD), pickle.loads(pickle.dumps(BatchMeta.from_dict(TOLD)))):
        assert there.to_dict() == meant.to_dict()
        assert there == meant
    assert BatchMeta.concat([told.select_fields(["b"]), meant.select_fields(["b"])]).to_dict()["backend_meta"] == {
        "b": [{"at": 1}, {"at": 2}] * 2
    }
    assert told.select_samples([1]).to_dict() == meant.select_samples([1]).to_dict()
    assert told.chunk(2)[1].to_dict() == meant.chunk(2)[1].to_dict()


def test_the_json_of_equal_columns_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    meta = BatchMeta.from_dict(TOLD)
    decoded: list[str] = []
    values = Encoded.values
    monkeypatch.setattr(
        Encoded, "values", lambda column: (decoded.append(bytes(column.raw).decode()), values(column))[1]
    )
    assert meta.field_schema is not None
    assert meta.backend_meta is not None
    assert meta.field_schema["b"].lengths is meta.field_schema["a"].lengths
    assert meta.backend_meta["b"] is meta.backend_meta["a"]
    for name in "ab":
        assert meta.field_schema[name].lengths == [3, 4]
        assert meta.backend_meta[name] == [{"at": 1}, {"at": 2}]
    assert decoded == ["[3,4]", '[{"at":1},{"at":2}]']


def test_lists_of_equal_columns_are_the_callers_own() -> None:
    meta = BatchMeta.from_dict(TOLD)
    assert meta.backend_meta is not None
    for name in "ab":
        meta.backend_meta[name].to_list().append("mine")
    assert meta.backend_meta["a"].to_list() == meta.backend_meta["b"].to_list() == [{"at": 1}, {"at": 2}]


@pytest.mark.parametrize("wrong", ["nobody", "b", "c"])
def test_a_reference_to_no_full_column_is_an_error_and_no_endless_search(wrong: str) -> None:
    backend = {"a": [1, 2], "b": {"same_as": wrong}, "c": {"same_as": "b"}}
    meta = BatchMeta.from_dict({**TOLD, "backend_meta": backend})
    assert meta.backend_meta is not None
    assert meta.backend_meta["a"] == [1, 2]
    with pytest.raises(ValueError, match="none of its own"):
        meta.backend_meta["b"]
    with pytest.raises(ValueError, match="none of its own"):
        meta.to_json()


def test_lengths_are_not_told_as_shapes() -> None:
    schema = {**TOLD["field_schema"], "c": {**HEAD, "dtype": "int8", "shapes": SAME}}
    meta = BatchMeta.from_dict({**TOLD, "field_schema": schema})
    assert meta.field_schema is not None
    with pytest.raises(ValueError, match="none of its own"):
        meta.field_schema["c"]
    with pytest.raises(ValueError, match="none of its own"):
        msgspec.json.decode(meta.to_json())
