"""What the methods of a batch take: masks, positions and names as Python, numpy and torch hold them."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from batchmeta import Array, BatchMeta, Column, Const, FieldSchema
from tests.client import given
from tests.client.given import NAN, Int, Number, Text, Word
from tests.client.service import batch

ROWS = BatchMeta.from_dict(batch([10, 11, 12], fields=["a", "b"], custom_meta=[{}, {"n": 1}, {}]))
MASKS: list[Any] = [[False, True, True], (False, True, True), Array([False, True, True])]
POSITIONS: list[Any] = [[1, 2], (1, Int(2)), range(1, 3), Array([1, 2])]
ORDERS: list[Any] = [[2, 0, 1], (2, Int(0), True + 0), Array([2, 0, 1])]
if given.np is not None:
    MASKS += [given.np.array(MASKS[0]), [given.np.bool_(each) for each in MASKS[0]]]
    POSITIONS += [given.np.array([1, 2]), [given.np.int64(1), 2]]
    ORDERS += [given.np.array([2, 0, 1], given.np.uint8), given.np.argsort([5, 6, 4])]
if given.torch is not None:
    MASKS += [given.torch.tensor(MASKS[0]), [given.torch.tensor(each) for each in MASKS[0]]]
    POSITIONS += [given.torch.tensor([1, 2]), [given.torch.tensor(1), 2]]
    ORDERS += [given.torch.tensor([2, 0, 1])]
NO_POSITIONS: list[tuple[Any, type[Exception]]] = [
    *((value, TypeError) for value in ("ab", b"\0\1", {0: 1}, 1, None, NAN, slice(1), [0.5], ["0"], [None], [[0]])),
    *((value, TypeError) for value in ([True, 1, 2], [1, False, True], given.Data(), [given.Odd.A])),
    *((value, ValueError) for value in ([NAN], [2**64])),
]
TRIED: dict[str, set[str]] = {
    "select_fields": {"names"},
    "select_samples": {"positions"},
    "reorder": {"positions"},
    "chunk": {"n"},
    "concat": {"batches"},
    "from_dict": {"plain"},
    "from_json": {"body"},
    "to_dict": set(),
    "to_json": set(),
    # The two between a value and a reply of the wire, which the client alone calls.
    "from_wire": {"reply"},
    "to_wire": set(),
}


def test_every_argument_of_a_batch_is_tried_here() -> None:
    methods = {name: call for name, call in inspect.getmembers(BatchMeta, callable) if name[0] != "_"}
    found = {name: set(inspect.signature(call).parameters) - {"self"} for name, call in methods.items()}
    assert found == TRIED


@pytest.mark.parametrize("mask", MASKS)
def test_a_mask_selects_the_rows_where_it_is_true(mask: Any) -> None:
    assert ROWS.select_samples(mask).global_indexes == [11, 12]


@pytest.mark.parametrize("positions", POSITIONS)
def test_positions_of_all_kinds_select_their_rows(positions: Any) -> None:
    assert ROWS.select_samples(positions).global_indexes == [11, 12]


def test_iterators_are_taken_too() -> None:
    assert ROWS.select_samples(iter([False, True, True])).global_indexes == [11, 12]
    assert ROWS.select_samples(iter([1, 2])).global_indexes == [11, 12]
    assert ROWS.reorder(iter([2, 0, 1])).global_indexes == [12, 10, 11]


@pytest.mark.parametrize("order", ORDERS)
def test_orders_of_all_kinds(order: Any) -> None:
    assert ROWS.reorder(order).global_indexes == [12, 10, 11]


@pytest.mark.parametrize("mask", [[True], [True, False], [True] * 4])
def test_a_mask_has_one_value_per_row(mask: list[bool]) -> None:
    with pytest.raises(ValueError, match=f"positions: a mask of {len(mask)} values for 3 rows"):
        ROWS.select_samples(mask)


@pytest.mark.parametrize("mask", MASKS)
def test_a_mask_is_no_order(mask: Any) -> None:
    with pytest.raises(TypeError, match=r"positions\[0\]: a whole number is wanted"):
        ROWS.reorder(mask)
    with pytest.raises(TypeError, match=r"positions\[0\]: a whole number is wanted"):
        BatchMeta.from_dict(batch([10, 11])).reorder([False, True])


@pytest.mark.parametrize(("positions", "error"), NO_POSITIONS)
@pytest.mark.parametrize("call", [ROWS.select_samples, ROWS.reorder, Array([1, 2, 3]).take, Const(1, 3).take])
def test_what_are_no_positions(call: Callable[[Any], object], positions: Any, error: type[Exception]) -> None:
    if isinstance(positions, slice) and isinstance(getattr(call, "__self__", None), Column):
        assert call(positions) == [1]  # a column is cut by slices too
        return
    with pytest.raises(error, match="positions"):
        call(positions)


@pytest.mark.parametrize("mask", [[False, True, True], Array([False, True, True])])
def test_columns_and_schemas_take_masks_too(mask: Any) -> None:
    assert Array([1, 2, 3]).take(mask) == [2, 3]
    assert Const(1, 3).take(mask) == [1, 1]
    assert FieldSchema("tensor", "int8", ragged=True, lengths=Array([1, 2, 3])).take(mask).lengths == [2, 3]


def test_names_of_all_kinds() -> None:
    assert ROWS.select_fields(each for each in ("b", Text("a"))).fields == ("b", "a")
    assert ROWS.select_fields([Word.A]).fields == ("a",)
    for names in ([Text("b")], [Word.A]):
        assert [type(name) for name in ROWS.select_fields(names).fields] == [str]
    held = BatchMeta(Text("p"), Int(1), Array([Int(4)]), (Text("a"),), (Word.A,), Const(Number.THREE, 1))
    again = BatchMeta.from_json(held.to_json())
    assert (again.partition_id, again.revision, again.global_indexes, again.fields) == ("p", 1, [4], ("a",))
    for value, error, where in given.TEXTS.refused:
        with pytest.raises(error) as raised:
            ROWS.select_fields(value)
        assert f"names{where}" in str(raised.value)


def test_numbers_of_chunks() -> None:
    assert [part.size for part in ROWS.chunk(Number.THREE)] == [1, 1, 1]
    for value, error, where in given.WHOLE.refused:
        with pytest.raises(error) as raised:
            ROWS.chunk(value)
        assert f"n{where}" in str(raised.value)


@pytest.mark.parametrize("batches", [ROWS, [ROWS, None], [[ROWS]], "ab", {ROWS.partition_id: ROWS}, 5])
def test_what_are_no_batches(batches: Any) -> None:
    with pytest.raises(TypeError, match="batches"):
        BatchMeta.concat(batches)


def test_fields_in_another_order_are_joined_in_the_order_of_the_first() -> None:
    cells = {"backend_meta": {"a": ["a0"], "b": ["b0"]}, "field_status": {"a": [1], "b": [1]}}
    cells["field_schema"] = {
        "a": {"kind": "object"},
        "b": {"kind": "tensor", "dtype": "int8", "ragged": False, "shape": [2]},
    }  # type: ignore[assignment]  # another member
    one = BatchMeta.from_dict(batch([1], fields=["a", "b"], **cells))
    other = BatchMeta.from_dict(batch([2], fields=["b", "a"], **cells))
    joined = BatchMeta.concat(iter([one, other]))
    assert joined.fields == ("a", "b")
    assert (joined.backend_meta, joined.global_indexes) == ({"a": ["a0", "a0"], "b": ["b0", "b0"]}, [1, 2])
    assert [*joined.to_dict()["field_schema"]] == ["a", "b"]
    assert BatchMeta.concat([other, one]).fields == ("b", "a")


@pytest.mark.parametrize(("value", "error"), given.NO_CELL)
def test_what_is_no_json_gets_into_no_batch_and_out_of_none(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"plain\.custom_meta\[0\]\.n"):
        BatchMeta.from_dict(batch([1], custom_meta=[{"n": value}]))
    held = BatchMeta("p", 1, Array([1]), (), (), Array([0]), custom_meta=Array([{"n": value}]))
    with pytest.raises(error, match=r"custom_meta\[0\]\.n"):
        held.to_json()


@pytest.mark.parametrize(
    ("body", "told"), [(b"", "truncated"), (b"[]", "got `array`"), (b"\xff", "malformed"), ("{}", "partition_id")]
)
def test_what_is_no_body_of_a_batch(body: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        BatchMeta.from_json(body)
