"""Revoking production: only readiness falls. What a row has, and until when a field is known, stays as it was."""

import json
from typing import Any

import pytest

from core.engine import Engine
from core.errors import DtypeConflict, FieldNotFound, Invalid, PartitionCleared, PartitionNotFound
from core.operations.claim import Claimed, ClaimRequest, NotClaimed, claim_now
from core.operations.clears import ClearRequest, abort_clear, commit_clear, plan_clear
from core.operations.delete import delete
from core.operations.leases import Ack, ack
from core.operations.partitions import delete_partition, get_partition, put_partition
from core.operations.produce import RowWrite, patch_backend_meta, produce
from core.operations.read import read_production
from core.operations.revoke import revoke
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import sampler
from core.state.cells.json_cells import Const
from tests.core.world import MANY, OBJECT, TENSOR, Book, Schema, add, add_keys, look, new_engine, write
from tests.model.compare import dump

P = "p"
RAGGED = Schema("int64", lengths=[1, 2, 3])


def three() -> Engine:
    """Rows a, b, c with f (fixed shape) and r (ragged), each with cells of its own."""
    engine = new_engine()
    rows = add_keys(engine, P, ["a", "b", "c"])
    write(engine, P, rows, {"f": TENSOR, "r": RAGGED}, {"f": [b"1", b"2", b"3"], "r": Const(b'"x"')})
    return engine


def take(engine: Engine, size: int = 1, length_s: float | None = None, **how: Any) -> Claimed | NotClaimed:
    chosen = sampler(how.pop("name", "sequential"), how)
    answer = claim_now(engine, P, ClaimRequest("t", ("f",), size, size, 0, chosen, View(("f",)), length_s))
    assert isinstance(answer, Claimed | NotClaimed)
    return answer


def rows_of(answer: Claimed | NotClaimed) -> list[int]:
    assert answer.batch is not None
    return answer.batch.global_indexes.tolist()


def members(engine: Engine) -> dict[str, Any]:
    """Batch meta of all rows, without what says how ready they are."""
    batch = look(engine, P, expand=True)
    names = ("keys", "group_ids", "field_schema", "custom_meta")
    found = {name: json.loads(getattr(batch, name)) for name in names}
    return found | {"backend_meta": json.loads(b"".join(batch.backend_meta or []))}


def test_only_readiness_falls() -> None:
    engine = three()
    before = members(engine)
    assert revoke(engine, P, Selector([0, 2]), ("r", "f")) == (4, engine.revision)
    assert members(engine) == before
    assert read_production(engine, P, ("f", "r"), MANY, None).matrix.tolist() == [[0, 0], [1, 1], [0, 0]]
    assert json.loads(look(engine, P, expand=True).field_status or b"")["f"] == [0, 1, 0]
    assert look(engine, P).status.tolist() == [0, 1, 0]
    assert [made for _, made in get_partition(engine, P).fields] == [1, 1]


def test_a_row_whose_cells_fell_has_another_revision_and_no_other_row() -> None:
    engine = three()
    revoke(engine, P, Selector([1]), ("f",))
    revisions = engine.partitions[P].rows.revision[1:4].tolist()
    assert revisions == [2, engine.revision, 2]


@pytest.mark.parametrize("selector", [Selector([77, 2**62]), Selector(keys=["nobody"]), Selector([])])
def test_rows_that_are_not_held_count_nothing_and_that_is_no_change(selector: Selector) -> None:
    engine = three()
    before = dump(engine)
    assert revoke(engine, P, selector, ("f",)) == (0, engine.revision)
    assert dump(engine) == before


def test_a_cell_falls_once() -> None:
    engine = three()
    assert revoke(engine, P, Selector([0, 0, 1]), ("f", "f"))[0] == 2
    before = dump(engine)
    assert revoke(engine, P, Selector(keys=["a", "b"]), ("f",))[0] == 0
    assert dump(engine) == before
    assert revoke(engine, P, Selector(keys=["a", "b", "c"]), ("f", "r"))[0] == 4


def test_what_cannot_be_revoked_is_refused_and_changes_nothing() -> None:
    engine = three()
    before = dump(engine)
    with pytest.raises(FieldNotFound) as refused:
        revoke(engine, P, Selector([0]), ("f", "unknown"))
    assert refused.value.fields == ["unknown"]
    with pytest.raises(Invalid, match="named"):
        revoke(engine, P, Selector(), ("f",))
    with pytest.raises(PartitionNotFound):
        revoke(engine, "other", Selector([0]), ("f",))
    assert dump(engine) == before
    delete_partition(engine, P, None)
    with pytest.raises(PartitionCleared):
        revoke(engine, P, Selector([0]), ("f",))


def test_revoked_rows_leave_the_supplies_of_the_field_and_come_back_when_it_is_written_again() -> None:
    engine = three()
    assert rows_of(take(engine)) == [0]
    revoke(engine, P, Selector([0, 1]), ("f",))
    assert rows_of(take(engine)) == [2]
    assert rows_of(take(engine)) == []
    write(engine, P, [0, 1], ["f"])
    assert rows_of(take(engine)) == [1]
    assert rows_of(take(engine)) == []


def test_a_field_that_the_task_does_not_need_may_fall() -> None:
    engine = three()
    take(engine)
    revoke(engine, P, Selector([1, 2]), ("r",))
    assert rows_of(take(engine, 2)) == [1, 2]


def test_a_group_with_a_revoked_row_is_not_whole() -> None:
    engine = new_engine()
    rows = add(engine, P, 4, group_ids=["g", "h", "g", "h"])
    write(engine, P, rows, ["f"])
    whole = {"name": "grpo_group", "n_samples_per_prompt": 2}
    take(engine, 6, **whole)
    revoke(engine, P, Selector(rows[:1]), ("f",))
    assert rows_of(take(engine, 2, **whole)) == [rows[1], rows[3]]
    write(engine, P, rows[:1], ["f"])
    assert rows_of(take(engine, 2, **whole)) == [rows[0], rows[2]]


def test_a_lease_outlives_the_bytes_of_its_rows() -> None:
    engine = three()
    held = take(engine, 3, 10.0)
    assert isinstance(held, Claimed)
    assert held.lease is not None
    revoke(engine, P, Selector([0, 1]), ("f",))
    said = Ack(held.lease.token, [0], [1, 2], ())
    assert ack(engine, held.claim_id, said).accepted == 1
    assert rows_of(take(engine, 1)) == [2]
    write(engine, P, [0, 1], ["f"])
    assert rows_of(take(engine, 1)) == [1]


def test_what_was_said_of_a_revoked_field_is_said_of_it_still() -> None:
    engine = three()
    revoke(engine, P, Selector([0, 1, 2]), ("f",))
    with pytest.raises(DtypeConflict):
        write(engine, P, [0], {"f": Schema("float32", [4])})
    write(engine, P, [0], {"f": Schema("int64", [5])}, {"f": [b"9"]})
    schema = json.loads(look(engine, P, expand=True).field_schema or b"")["f"]
    assert (schema["ragged"], schema["shapes"]) == (True, [[5], [4], [4]])
    assert members(engine)["backend_meta"]["f"] == [9, 2, 3]


def test_the_cell_that_all_rows_share_stays_that_of_the_revoked_ones() -> None:
    engine = three()
    revoke(engine, P, Selector([0, 1]), ("r",))
    write(engine, P, [2], {"r": Schema("int64", lengths=[3])}, {"r": [b'"y"']})
    patch_backend_meta(engine, P, RowWrite([1]), {"r": [b'"z"']})
    assert members(engine)["backend_meta"]["r"] == ["x", "z", "y"]


def test_the_same_write_again_makes_a_revoked_cell_ready() -> None:
    engine = three()
    revoke(engine, P, Selector([1]), ("f",))
    write(engine, P, [0, 1, 2], {"f": TENSOR}, {"f": [b"1", b"2", b"3"]})
    assert look(engine, P).status.tolist() == [1, 1, 1]
    assert engine.partitions[P].rows.revision[1:4].tolist() == [2, engine.revision, 2]
    assert not engine.partitions[P].grid.revoked.count.any()


def test_a_field_is_forgotten_with_the_last_row_that_has_it_revoked_or_not() -> None:
    engine = three()
    revoke(engine, P, Selector([0, 1, 2]), ("f", "r"))
    write(engine, P, [0], {"r": Schema("int64", lengths=[1])})
    delete(engine, P, Selector([0, 1]))
    assert list(engine.partitions[P].fields) == ["f", "r"]
    write(engine, P, add(engine, P), {"o": OBJECT})
    delete(engine, P, Selector([2]))
    assert list(engine.partitions[P].fields) == ["o"]
    write(engine, P, add(engine, P), {"f": Schema("float32", [1])})


def test_a_declared_field_goes_back_to_its_declaration() -> None:
    engine = new_engine()
    put_partition(engine, P, None, None, None, {"f": Schema("int64")})
    assert revoke(engine, P, Selector([0]), ("f",))[0] == 0
    write(engine, P, add(engine, P), ["f"])
    revoke(engine, P, Selector([0]), ("f",))
    write(engine, P, add(engine, P), {"o": OBJECT})
    delete(engine, P, Selector([0]))
    write(engine, P, [1], {"f": Schema("int64", [2, 2])})


def test_many_fields_and_closed_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.state.partition.GAPS", 1)
    engine = new_engine()
    rows = add(engine, P, 40)
    write(engine, P, rows, ["f0"])
    revoke(engine, P, Selector(rows[1:]), ("f0",))
    write(engine, P, rows, [f"f{i}" for i in range(1, 130)])
    revoke(engine, P, Selector(rows[:2]), ("f1", "f129"))
    delete(engine, P, Selector(rows[2:35]))
    assert engine.partitions[P].rows.capacity < 40
    matrix = read_production(engine, P, ("f0", "f1", "f129"), MANY, None).matrix.tolist()
    assert matrix == [[1, 0, 0], [0, 0, 0], *[[0, 1, 1]] * 5]
    assert members(engine)["field_schema"]["f0"]["shape"] == [4]


def test_a_clear_names_what_was_revoked_as_written_and_what_is_clearing_is_not_revoked() -> None:
    engine = three()
    revoke(engine, P, Selector(keys=["a"]), ("f",))
    seen = plan_clear(engine, P, ClearRequest(Selector(key_prefix="a")))
    assert seen.plan is not None
    assert json.loads(b"".join(seen.plan.fields))["f"] == {"written": [1], "backend_meta": [1]}
    assert revoke(engine, P, Selector([0, 1]), ("f", "r"))[0] == 2
    abort_clear(engine, seen.clear.clear_id)
    assert [made for _, made in get_partition(engine, P).fields] == [1, 2]
    assert revoke(engine, P, Selector(key_prefix=""), ("r",))[0] == 2
    seen = plan_clear(engine, P, ClearRequest(Selector(), is_all=True))
    commit_clear(engine, seen.clear.clear_id)
    assert list(engine.partitions[P].fields) == []


def test_a_restart_brings_it_back() -> None:
    engine, book = three(), Book()
    revoke(engine, P, Selector([0, 2]), ("f", "r"))
    write(engine, P, [2], {"f": TENSOR})
    delete(engine, P, Selector([1]))
    produce(engine, P, RowWrite(keys=["d"]), True, {"f": TENSOR}, {})
    book.take(engine)
    assert dump(book.replayed()) == dump(engine)
