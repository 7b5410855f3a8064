"""What becomes of a field's schema when batches with other shapes are joined."""

from typing import Any

import pytest

from batchmeta import BatchMeta
from tests.client.service import batch


def _with_schema(indexes: list[int], **schema: Any) -> BatchMeta:
    return BatchMeta.from_dict(batch(indexes, field_schema={"x": {"kind": "tensor", "dtype": "int64", **schema}}))


def test_a_field_that_became_ragged_keeps_the_shape_of_every_row() -> None:
    fixed = _with_schema([0, 1], ragged=False, shape=[5])
    for ragged in ({"lengths": [7, None]}, {"shapes": [[7], None]}):
        joined = BatchMeta.concat([fixed, _with_schema([2, 3], ragged=True, **ragged)])
        assert joined.field_schema is not None
        assert [joined.field_schema["x"].shape_of(row) for row in range(4)] == [(5,), (5,), (7,), None]


def test_two_shapes_make_a_field_ragged_and_an_unknown_one_does_not() -> None:
    unknown, two = _with_schema([0], ragged=False, shape=None), _with_schema([1], ragged=False, shape=[2])
    scalar = _with_schema([2], ragged=False, shape=[])
    schema = BatchMeta.concat([unknown, two]).field_schema
    assert schema is not None
    assert (schema["x"].ragged, schema["x"].shape) == (False, (2,))
    schema = BatchMeta.concat([two, scalar]).field_schema
    assert schema is not None
    assert [schema["x"].shape_of(row) for row in range(2)] == [(2,), ()]


def test_two_dtypes_of_one_field_are_refused() -> None:
    other = batch([1], field_schema={"x": {"kind": "tensor", "dtype": "int8", "ragged": False, "shape": [2]}})
    with pytest.raises(ValueError, match="int64 and int8"):
        BatchMeta.concat([_with_schema([0], ragged=False, shape=[2]), BatchMeta.from_dict(other)])
