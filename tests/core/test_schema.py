"""Field schemas (contract#field-schema): every form in and out, when a field is ragged, what conflicts, what is
forgotten. A refused write leaves nothing behind.
"""

import json
from typing import Any

import pytest
import torch

from batchmeta.wire.types import DTYPES
from core.engine import Engine
from core.errors import DtypeConflict, Invalid, KindConflict, PartitionConflict, Refused
from core.operations.delete import delete
from core.operations.partitions import get_partition, put_partition
from core.operations.produce import RowWrite, produce
from core.reading.selectors import Selector
from tests.core.world import OBJECT, Same, Schema, add, look, new_engine, write
from tests.model.compare import dump

P, F = "p", "f"
FIXED, RAGGED = Schema("int64", [4]), Schema("int64", lengths=[1, 2])


def out(engine: Engine, indexes: list[int] | None = None, field: str = F, **view: bool) -> dict[str, Any]:
    """A field's schema as a reply has it."""
    schema = look(engine, P, indexes, [field], frozenset({"field_schema"}), **view).field_schema
    assert schema is not None
    return json.loads(schema)[field]  # type: ignore[no-any-return]


def tensor(**members: Any) -> dict[str, Any]:
    return {"kind": "tensor", "dtype": "int64", "ragged": "shape" not in members, **members}


def written(*schemas: Schema, rows: int = 2) -> Engine:
    """A partition of `rows` rows, the field written for all of them once per schema."""
    engine = new_engine()
    indexes = add(engine, P, rows)
    for schema in schemas:
        write(engine, P, indexes, {F: schema})
    return engine


FORMS = [
    (Schema("int64", [1024]), tensor(shape=[1024]), None),
    (Schema("int64", []), tensor(shape=[]), None),
    (Schema("int64", [0]), tensor(shape=[0]), None),
    (Schema("int64", [2**31 - 1] * 8), tensor(shape=[2**31 - 1] * 8), None),
    (Schema("int64", [5], False), tensor(shape=[5]), None),
    (Schema("int64", [5], True), tensor(shapes={"const": [5]}), tensor(lengths={"const": 5})),
    (Schema("int64", [], True), tensor(shapes={"const": []}), None),
    (Schema("int64", [2, 0], True), tensor(shapes={"const": [2, 0]}), None),
    (Schema("int64", shapes=[[812], [5310]]), tensor(shapes=[[812], [5310]]), tensor(lengths=[812, 5310])),
    (Schema("int64", ragged=True, shapes=[[3], [3]]), tensor(shapes={"const": [3]}), tensor(lengths={"const": 3})),
    (Schema("int64", shapes=[[2, 3], [4, 0]]), tensor(shapes=[[2, 3], [4, 0]]), None),
    (Schema("int64", shapes=Same([7, 8])), tensor(shapes={"const": [7, 8]}), None),
    (Schema("int64", lengths=[812, 5310]), tensor(shapes=[[812], [5310]]), tensor(lengths=[812, 5310])),
    (Schema("int64", lengths=[0, 2**31 - 1]), tensor(shapes=[[0], [2**31 - 1]]), tensor(lengths=[0, 2**31 - 1])),
    (Schema("int64", lengths=Same(9)), tensor(shapes={"const": [9]}), tensor(lengths={"const": 9})),
    (OBJECT, {"kind": "object"}, None),
]


@pytest.mark.parametrize(("given", "plain", "compact"), FORMS)
def test_every_form_goes_in_and_comes_out(given: Schema, plain: dict[str, Any], compact: dict[str, Any] | None) -> None:
    engine = written(given)
    assert out(engine) == plain
    assert out(engine, compact=True) == (compact or plain)
    expanded = out(engine, expand=True, compact=True)
    assert not any(isinstance(member, dict) for member in expanded.values())


@pytest.mark.parametrize(("given", "plain", "compact"), FORMS)
def test_what_came_out_is_accepted_again_and_changes_nothing(
    given: Schema, plain: dict[str, Any], compact: dict[str, Any] | None
) -> None:
    engine = written(given)
    for reply in (plain, compact or plain):
        members = {k: Same(v["const"]) if isinstance(v, dict) else v for k, v in reply.items()}
        before = dump(engine)
        write(engine, P, [0, 1], {F: Schema(**members)})
        assert dump(engine) == before


def test_a_row_that_lacks_the_field_and_one_that_is_not_held_are_null() -> None:
    engine = written(RAGGED)
    add(engine, P)
    assert out(engine, [0, 2, 1, 99]) == tensor(shapes=[[1], None, [2], None])
    assert out(engine, [0, 2, 1, 99], compact=True) == tensor(lengths=[1, None, 2, None])
    assert out(engine, [2, 99], compact=True) == tensor(lengths={"const": None})
    assert out(engine, [2]) == tensor(shapes=[None])
    assert out(engine, []) == tensor(shapes=[])
    assert out(written(Schema("int64", shapes=[[1, 2], [3, 4]])), [1, 9]) == tensor(shapes=[[3, 4], None])


def test_a_field_is_ragged_once_two_samples_differ() -> None:
    engine = written(FIXED)
    write(engine, P, [1], {F: Schema("int64", [3])})
    assert out(engine) == tensor(shapes=[[4], [3]])


def test_a_field_is_ragged_once_a_sample_differs_from_the_declared_shape() -> None:
    engine = new_engine()
    put_partition(engine, P, None, None, None, {F: FIXED})
    assert out(engine) == tensor(shape=[4])
    write(engine, P, add(engine, P), {F: Schema("int64", [3])})
    assert out(engine) == tensor(shapes=[[3]])


def test_it_stays_ragged_while_any_sample_has_it() -> None:
    engine = written(RAGGED)
    write(engine, P, [0, 1], {F: FIXED})
    assert out(engine) == tensor(shapes={"const": [4]})
    delete(engine, P, Selector(indexes=[0]))
    assert out(engine) == tensor(shapes=[[4]])


def test_a_new_shape_for_all_samples_at_once_makes_nothing_ragged() -> None:
    engine = written(FIXED, Schema("int64", [9]))
    assert out(engine) == tensor(shape=[9])


CONFLICTS = [
    (FIXED, Schema("int32", [4]), DtypeConflict),
    (FIXED, Schema("int64", [4, 1]), DtypeConflict),
    (FIXED, Schema("int64", []), DtypeConflict),
    (RAGGED, Schema("int64", shapes=[[1, 1], [2, 2]]), DtypeConflict),
    (Schema("int64", []), Schema("int64", lengths=[1, 2]), DtypeConflict),
    (FIXED, OBJECT, KindConflict),
    (OBJECT, FIXED, KindConflict),
    (OBJECT, RAGGED, KindConflict),
]


@pytest.mark.parametrize(("there", "given", "error"), CONFLICTS)
def test_another_dtype_rank_or_kind_is_refused_and_nothing_of_the_call_is_applied(
    there: Schema, given: Schema, error: type[Refused]
) -> None:
    engine = written(there)
    before = dump(engine)
    rows = RowWrite([0, 1], custom_meta=[b'{"a":1}', b"{}"], group_ids=["g", "g"])
    with pytest.raises(error) as refused:
        produce(engine, P, rows, False, {"other": FIXED, F: given, "third": OBJECT}, {"other": [b"1", b"2"]})
    assert list(refused.value.fields) == [F]
    assert dump(engine) == before


@pytest.mark.parametrize(("declared", "given", "error"), CONFLICTS)
def test_a_declaration_is_held_to_as_a_write_is(declared: Schema, given: Schema, error: type[Refused]) -> None:
    engine = new_engine()
    without = Schema(declared.dtype, declared.shape or ([1] if declared.lengths else []), kind=declared.kind)
    put_partition(engine, P, None, None, None, {F: OBJECT if declared is OBJECT else without})
    indexes = add(engine, P, 2)
    with pytest.raises(error):
        write(engine, P, indexes, {F: given})


def test_ranks_that_differ_within_a_write_are_refused() -> None:
    engine = written()
    with pytest.raises(DtypeConflict, match="one rank"):
        write(engine, P, [0, 1], {F: Schema("int64", shapes=[[1], [1, 2]])})


MALFORMED = [
    Schema(),
    Schema("int64"),
    Schema(shape=[4]),
    Schema("int64", [4], lengths=[1, 2]),
    Schema(kind="tensor"),
    Schema("int64", shapes=[[1], [2]], lengths=[1, 2]),
    Schema("int64", ragged=False, lengths=[1, 2]),
    Schema("int64", ragged=False, shapes=Same([1])),
    Schema("int64", lengths=[1]),
    Schema("int64", shapes=[[1]] * 3),
    Schema("int64", lengths=[]),
    Schema("int64", kind="object"),
    Schema(shape=[], kind="object"),
    Schema(lengths=[1, 2], kind="object"),
    Schema(shapes=Same([1]), kind="object"),
    Schema(ragged=True, kind="object"),
]


@pytest.mark.parametrize("given", MALFORMED)
def test_a_schema_that_says_too_little_or_too_much_is_refused(given: Schema) -> None:
    engine = written(rows=2)
    before = dump(engine)
    with pytest.raises(Invalid, match=r"body\.field_schema\.f"):
        write(engine, P, [0, 1], {F: given})
    assert dump(engine) == before


@pytest.mark.parametrize("given", [Schema("int64", shapes=[]), Schema("int64", lengths=[]), FIXED, OBJECT])
def test_a_write_of_no_rows_changes_nothing(given: Schema) -> None:
    for engine in (written(), written(OBJECT if given is OBJECT else FIXED)):
        before = dump(engine)
        assert write(engine, P, [], {F: given}).global_indexes.tolist() == []
        assert dump(engine) == before


def test_a_field_that_nobody_has_any_more_is_forgotten_and_may_come_back_different() -> None:
    engine = written(FIXED)
    delete(engine, P, Selector(indexes=[0]))
    assert out(engine) == tensor(shape=[4])
    delete(engine, P, Selector(indexes=[1]))
    assert get_partition(engine, P).fields == []
    assert list(look(engine, P, [], [F]).missing_fields) == [F]
    write(engine, P, add(engine, P), {F: OBJECT})
    assert out(engine) == {"kind": "object"}


def test_a_declared_field_goes_back_to_its_declaration() -> None:
    engine = new_engine()
    put_partition(engine, P, None, None, None, {F: Schema("int64")})
    assert out(engine) == tensor(shape=None)
    write(engine, P, add(engine, P, 2), {F: RAGGED})
    assert out(engine) == tensor(shapes=[[1], [2]])
    delete(engine, P, Selector(indexes=[0, 1]))
    assert out(engine) == tensor(shape=None)
    write(engine, P, add(engine, P), {F: Schema("int64", [2, 2])})
    assert out(engine) == tensor(shape=[2, 2])


def test_a_declaration_may_come_after_the_first_write() -> None:
    for late, reply in [(FIXED, tensor(shape=[4])), (Schema("int64", [3]), tensor(shapes={"const": [4]}))]:
        engine = written(FIXED)
        put_partition(engine, P, None, None, None, {F: late})
        assert out(engine) == reply
        with pytest.raises(PartitionConflict):
            put_partition(engine, P, None, None, None, {F: Schema("int64", [8])})
    engine = written(FIXED)
    for late, error in [(Schema("int8", [4]), DtypeConflict), (Schema("int64", []), DtypeConflict)]:
        with pytest.raises(error):
            put_partition(engine, P, None, None, None, {F: late})
    with pytest.raises(KindConflict):
        put_partition(engine, P, None, None, None, {F: OBJECT})


def test_a_declared_ragged_field_is_ragged_before_anyone_has_it() -> None:
    engine = new_engine()
    put_partition(engine, P, None, None, None, {F: Schema("int64", ragged=True)})
    assert out(engine, [0, 1], compact=True) == tensor(lengths={"const": None})
    write(engine, P, add(engine, P), {F: Schema("int64", [2, 3])})
    assert out(engine, compact=True) == tensor(shapes=[[2, 3]])


def test_the_dtypes_of_the_wire_are_torchs_own_names() -> None:
    assert {str(held)[len("torch.") :] for held in vars(torch).values() if isinstance(held, torch.dtype)} == DTYPES
