"""Field schemas of TransferQueue to the wire and back."""

import pytest
import torch

from batchmeta.batch import BatchMeta
from batchmeta.columns import Array, Const
from batchmeta.schema import FieldSchema
from batchmeta.transferqueue.batches import backend_rows, common_fields, made, members, tags_of
from batchmeta.transferqueue.schemas import TheirSchemas, conflict, own_schema, wire_schema

DENSE = {"dtype": torch.float32, "shape": torch.Size([3, 4]), "is_nested": False, "is_non_tensor": False}
RAGGED = {"dtype": torch.int64, "shape": torch.Size([2]), "is_nested": True, "is_non_tensor": False}
OBJECT = {"dtype": None, "shape": None, "is_nested": False, "is_non_tensor": True}


def test_to_the_wire() -> None:
    assert wire_schema(DENSE, [7, 8]) == {"dtype": "float32", "shape": [3, 4]}
    assert wire_schema(OBJECT, [7, 8]) == {"kind": "object"}
    assert wire_schema({**RAGGED, "per_sample_shapes": [(2,), (3,)]}, [7, 8]) == {"dtype": "int64", "lengths": [2, 3]}
    by_index = {8: (3, 1), 7: (2, 1)}
    assert wire_schema({**RAGGED, "per_sample_shapes": by_index}, [7, 8])["shapes"] == [[2, 1], [3, 1]]
    with pytest.raises(ValueError, match="2 shapes for 3"):
        wire_schema({**RAGGED, "per_sample_shapes": [(2,), (3,)]}, [7, 8, 9])


def test_back_again() -> None:
    schemas = TheirSchemas()
    assert schemas.of(FieldSchema("object")) == OBJECT
    assert schemas.of(FieldSchema("tensor", "float32", shape=(3, 4))) == DENSE
    lengths = Array([2, None])
    one = schemas.of(FieldSchema("tensor", "int64", ragged=True, lengths=lengths))
    two = schemas.of(FieldSchema("tensor", "float32", ragged=True, lengths=lengths))
    assert one["per_sample_shapes"] == [(2,), None]
    assert (one["shape"], one["is_nested"], one["dtype"]) == (None, True, torch.int64)
    assert two["per_sample_shapes"] is one["per_sample_shapes"]  # equal columns are made once
    shapes = schemas.of(FieldSchema("tensor", "bool", ragged=True, shapes=Array([[2, 3], [1, 1]])))
    assert shapes["per_sample_shapes"] == [(2, 3), (1, 1)]


def test_conflicts_are_seen_before_a_byte_is_written() -> None:
    known = own_schema(DENSE)
    assert conflict("x", torch.ones(5, 3, 4), known) is None
    assert "float32" in str(conflict("x", torch.ones(5, 3, 4, dtype=torch.int64), known))
    assert "rank 2" in str(conflict("x", torch.ones(5, 3), known))
    assert "tensors" in str(conflict("x", ["text"], known))
    assert "objects" in str(conflict("x", torch.ones(1), own_schema(OBJECT)))
    assert conflict("x", ["text"], own_schema(OBJECT)) is None
    assert conflict("x", torch.ones(5), FieldSchema("tensor", "float32", shape=(1,))) is None  # a dense row of one
    ragged = FieldSchema("tensor", "float32", ragged=True, shapes=Array([None, [2, 3]]))
    assert "rank 2" in str(conflict("x", torch.ones(5, 3), ragged))


def batch(**more: object) -> BatchMeta:
    return BatchMeta.from_dict(
        {
            "partition_id": "p", "revision": 1, "size": 2, "is_ready": False, "global_indexes": [7, 9],
            "fields": ["a", "b"], "missing_fields": [], "production_status": [1, 0],
            "field_schema": {"a": {"kind": "object"}, "b": {"kind": "object"}},
            "custom_meta": [{"n": 1}, None], "backend_meta": {"a": {"const": "2"}, "b": [None, {"n_chunks": 3}]},
            "field_status": {"a": {"const": 1}, "b": [1, 0]}, **more,
        }
    )  # fmt: skip


def test_members_of_a_batch() -> None:
    found = members(batch(), "theirs", ["a"], [1, 1], absent=["later"])
    assert found["global_indexes"] == [7, 9]
    assert found["partition_ids"] == ["theirs", "theirs"]
    assert list(found["field_schema"]) == ["a", "later"]
    assert found["production_status"].tolist() == [1, 1]
    assert found["custom_meta"] == [{"n": 1}, {}]
    assert found["_custom_backend_meta"] == [{"a": "2"}, {"a": "2"}]
    assert (found["_size"], found["_field_names"], found["_is_ready"]) == (2, ["a", "later"], True)


def test_fields_that_all_rows_have() -> None:
    assert common_fields(batch()) == ["a"]
    without = BatchMeta.from_dict({name: value for name, value in batch().to_dict().items() if name != "field_status"})
    assert common_fields(without) == []
    assert common_fields(batch(created=2)) == []  # new rows have none


def test_rows_are_nobody_elses() -> None:
    for value in ({"n": 1}, {"deep": {"n": [1]}}):
        one, two = tags_of(Const(value, 2))
        assert one == two == value
        assert one is not two
        assert one.get("deep") is not two.get("deep") or "deep" not in one
    rows = backend_rows({"a": Const("2", 2), "b": Array([None, {"n": 1}]), "c": Const(None, 2)}, ["b", "a", "c"], 2)
    assert rows == [{"a": "2"}, {"a": "2", "b": {"n": 1}}]
    assert rows[0] is not rows[1]


def test_the_object_is_made_of_the_members() -> None:
    class Theirs:
        __slots__ = ("_is_ready", "global_indexes")

        def __setstate__(self, state: tuple[object, ...]) -> None:
            for name, value in zip(self.__slots__, state, strict=True):
                setattr(self, name, value)

    found = made(Theirs, {"global_indexes": [7], "_is_ready": True, "more": 1})
    assert (found.global_indexes, found._is_ready) == ([7], True)
