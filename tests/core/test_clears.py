"""Two-step clears: rows that are hidden, brought back or removed, and the account at every step."""

import json
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from core.engine import Engine
from core.errors import ClearClosed, ClearNotFound, Invalid, LeaseLost, SampleCleared, SampleClearing, TooManySamples
from core.operations.claim import Claimed, ClaimRequest, NotClaimed, claim_now
from core.operations.clears import (
    ClearRequest,
    SeenClear,
    abort_clear,
    commit_clear,
    get_clear,
    list_clears,
    plan_clear,
)
from core.operations.consumption import counts_of, read_consumption, reset_consumption
from core.operations.delete import delete
from core.operations.leases import Ack, ack, expire, get_claim, list_dead
from core.operations.partitions import delete_partition, put_partition, seal_partition, summarise
from core.operations.produce import RowWrite, insert, patch_backend_meta, patch_custom_meta, produce
from core.operations.read import list_keys, lookup_keys
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import sampler
from core.state.supply.supplies import Supplies
from core.state.transitions import CLEARING, HELD, LEASED, LIVE
from core.state.where import where
from tests.core.test_where import parsed
from tests.core.world import MANY, OBJECT, TENSOR, Book, Clock, Schema, add, add_keys, look, new_engine, write
from tests.model.compare import dump

P = "p"


def plan(engine: Engine, *indexes: int, **more: Any) -> SeenClear:
    """A clear of these rows."""
    return plan_clear(engine, P, ClearRequest(Selector(list(indexes)), **more))


def planned(seen: SeenClear) -> dict[str, Any]:
    """The plan as plain values."""
    assert seen.plan is not None
    keys, fields = json.loads(seen.plan.keys), json.loads(b"".join(seen.plan.fields))
    return {"rows": seen.plan.global_indexes.tolist(), "keys": keys, "fields": fields}


def claim(engine: Engine, rows: int = 1, lease_s: float | None = None, task: str = "t", **by: Any) -> list[int] | None:
    wanted = ClaimRequest(task, ("n",), rows, rows, 0, sampler(by.pop("name", "sequential"), by), View(("n",)), lease_s)
    found = claim_now(engine, P, wanted)
    return found.batch.global_indexes.tolist() if isinstance(found, Claimed) else None


def lease(engine: Engine, rows: int = 1, length_s: float = 10.0) -> Any:
    """The lease of the next rows."""
    wanted = ClaimRequest("t", ("n",), rows, rows, 0, sampler("sequential", {}), View(("n",)), length_s)
    found = claim_now(engine, P, wanted)
    assert isinstance(found, Claimed)
    return found.lease


def refusal(engine: Engine) -> NotClaimed:
    wanted = ClaimRequest("t", ("n",), 100, 100, 0, sampler("sequential", {}), View(("n",)))
    found = claim_now(engine, P, wanted)
    assert isinstance(found, NotClaimed)
    return found


def ready(rows: int) -> Engine:
    engine = new_engine()
    write(engine, P, add(engine, P, rows), ["n"])
    return engine


def account(engine: Engine, task: str = "t") -> dict[str, int]:
    """Every row ever inserted is in exactly one of these for the task; the sum is checked here."""
    rows, counts = engine.partitions[P].rows, counts_of(engine.partitions[P], task)
    known = engine.partitions[P].tasks.get(task)
    consumed = known.consumed_live if known else 0
    found = {
        "waiting": rows.live_count - consumed - counts.leased - counts.dead,
        "leased": counts.leased,
        "consumed": consumed,
        "dead": counts.dead,
        "clearing": rows.clearing_count,
        "cleared": rows.inserted - rows.live_count - rows.clearing_count,
    }
    assert sum(found.values()) == rows.inserted
    assert counts.total - max(0, (engine.partitions[P].limits.expected_samples or 0) - rows.inserted) == (
        rows.live_count + counts.consumed - consumed
    )
    if "n" in engine.partitions[P].fields:
        assert engine.partitions[P].supply(task, ("n",)).ready.count <= found["waiting"]
    return {name: count for name, count in found.items() if count}


def test_the_plan_names_what_each_row_was_written_with_and_where() -> None:
    engine = new_engine()
    a, b, c = add_keys(engine, P, ["a", "b", "c"])
    write(engine, P, [a], {"x": TENSOR}, {"x": [b'"at a"']})
    write(engine, P, [a, b], {"y": OBJECT}, {"y": [b"1", b"2"]})
    write(engine, P, [c], ["other"])
    assert planned(plan(engine, b, a, 99)) == {
        "rows": [a, b],
        "keys": ["a", "b"],
        "fields": {
            "x": {"written": [1, 0], "backend_meta": ['"at a"'[1:-1], None]},
            "y": {"written": {"const": 1}, "backend_meta": [1, 2]},
        },
    }


def test_a_cell_recorded_for_a_row_without_the_field_is_in_the_plan_too() -> None:
    engine = new_engine()
    a, b = add(engine, P, 2)
    write(engine, P, [a], ["x"])
    patch_backend_meta(engine, P, RowWrite([b]), {"x": [b'"somewhere"']})
    assert planned(plan(engine, b))["fields"] == {"x": {"written": [0], "backend_meta": ["somewhere"]}}


def test_rows_that_are_clearing_are_in_no_read_claim_or_list() -> None:
    engine = new_engine()
    a, b = add_keys(engine, P, ["a", "b"], custom_meta=[b'{"n":1}', b"null"])
    write(engine, P, [a, b], ["n"])
    plan(engine, a)
    batch = look(engine, P, [a, b])
    assert batch.status.tolist() == [0, 1]
    assert (batch.keys, batch.custom_meta) == (b'[null,"b"]', b"[null,{}]")
    assert look(engine, P).global_indexes.tolist() == [b]
    assert lookup_keys(engine, P, [a])[1] == [b"null"]
    assert [line.global_index for line in list_keys(engine, P, "", MANY, None)[1]] == [b]
    assert engine.partitions[P].rows.find([b'"a"']) == [None]
    summary = summarise(engine.partitions[P])
    assert (summary.num_samples, [made for _, made in summary.fields]) == (1, [1])
    assert claim(engine, 2) is None
    assert claim(engine) == [b]
    assert read_consumption(engine, P, "t", False, MANY, None).page.indexes.tolist() == [b]  # type: ignore[union-attr]


def test_without_a_key_left_to_show_the_default_reply_has_no_keys() -> None:
    engine = new_engine()
    (a,) = add_keys(engine, P, ["a"])
    add(engine, P)
    plan(engine, a)
    assert look(engine, P, include=None).keys is None


def test_an_abort_brings_back_every_byte() -> None:
    engine = new_engine()
    rows = add_keys(engine, P, ["a", "b", "c"], group_ids=["g", "g", None], custom_meta=[b'{"n":1}', b"null", b"null"])
    write(engine, P, rows, {"n": Schema("int64", shapes=[[1], [2], [3]])}, {"n": [b"1", b"2", b"3"]})
    claim(engine)
    before, past = dump(engine.partitions), deepcopy(engine.partitions[P].key_history)
    seen = plan(engine, rows[0], rows[1])
    assert abort_clear(engine, seen.clear.clear_id).clear.state == "aborted"
    partition = engine.partitions[P]
    assert partition.rows.revision[1:4].tolist() == [partition.revision] * 2 + [partition.revision - 3]
    partition.revision -= 2
    partition.rows.revision[1:3] -= 3
    partition.key_history = past  # it tells of more now
    assert dump(engine.partitions) == before
    assert claim(engine, 2) == rows[1:]


def test_a_commit_leaves_what_a_delete_leaves() -> None:
    engines = [new_engine(), new_engine()]
    for engine in engines:
        rows = add_keys(engine, P, ["a", "b", "c"], group_ids=["g", "g", None])
        write(engine, P, rows[:2], ["n"])
        write(engine, P, rows[2:], ["only c"])
        claim(engine)
    cleared, deleted = engines
    seen = commit_clear(cleared, plan(cleared, 0, 2).clear.clear_id)
    assert (seen.clear.state, seen.clear.count, seen.plan) == ("committed", 2, None)
    delete(deleted, P, Selector([0, 2]))
    for engine in engines:
        engine.partitions[P].revision = 0
    assert dump(cleared.partitions) == dump(deleted.partitions)
    assert list(cleared.partitions[P].fields) == ["n"]


def test_saying_it_again_changes_nothing_and_saying_otherwise_is_refused() -> None:
    engine = ready(4)
    first, second = plan(engine, 0).clear.clear_id, plan(engine, 1).clear.clear_id
    commit_clear(engine, first)
    abort_clear(engine, second)
    before = engine.revision
    assert commit_clear(engine, first).clear.count == 1
    assert abort_clear(engine, second).clear.state == "aborted"
    for refused, name in ((abort_clear, first), (commit_clear, second)):
        with pytest.raises(ClearClosed):
            refused(engine, name)
    assert engine.revision == before
    assert [len(one.indexes) for one in engine.clears.closed.values()] == [0, 0]
    for name in ("x0", "xffff", "c1", "", "x01"):
        with pytest.raises(ClearNotFound):
            commit_clear(engine, name)


def test_what_is_clearing_is_skipped_by_the_next_clear_and_by_delete() -> None:
    engine = ready(4)
    plan(engine, 1, 2)
    second = plan(engine, 0, 1, 2, 99)
    assert (planned(second)["rows"], second.skipped) == ([0], (1, 2))
    assert delete(engine, P, Selector([1, 3, 3])) == (1, engine.revision, [1])
    everything = plan_clear(engine, P, ClearRequest(Selector(), is_all=True))
    assert (planned(everything), everything.skipped) == ({"rows": [], "keys": [], "fields": {}}, (0, 1, 2))


def test_a_write_to_what_is_clearing_waits_and_to_what_is_cleared_is_gone() -> None:
    engine = new_engine()
    a, b, c = add_keys(engine, P, ["a", "b", "c"])
    write(engine, P, [a, b, c], ["n"])
    seen = plan(engine, a, b)
    before = dump(engine.partitions)
    writes = [
        lambda: write(engine, P, [a, c], ["n", "late"]),
        lambda: produce(engine, P, RowWrite(keys=["a"]), False, {"late": TENSOR}, {}),
        lambda: produce(engine, P, RowWrite(keys=["a", "z"]), True, {"late": TENSOR}, {}),
        lambda: insert(engine, P, None, RowWrite(keys=["a", "y"]), View()),
        lambda: patch_custom_meta(engine, P, RowWrite([a], custom_meta=[b'{"n":1}'])),
        lambda: patch_backend_meta(engine, P, RowWrite(keys=["a"]), {"n": [b"1"]}),
    ]
    for one in writes:
        with pytest.raises(SampleClearing) as refused:
            one()
        assert refused.value.global_indexes == [a] or refused.value.keys == ["a"]
    assert dump(engine.partitions) == before
    commit_clear(engine, seen.clear.clear_id)
    before = dump(engine.partitions)
    with pytest.raises(SampleCleared) as gone:
        write(engine, P, [a, c], ["late"])
    assert gone.value.global_indexes == [a]
    assert dump(engine.partitions) == before
    assert add_keys(engine, P, ["a"]) == [3]


def test_what_is_cleared_is_told_before_what_is_clearing() -> None:
    engine = ready(3)
    delete(engine, P, Selector([0]))
    plan(engine, 1)
    with pytest.raises(SampleCleared) as refused:
        write(engine, P, [0, 1, 2], ["n"])
    assert refused.value.global_indexes == [0]


def test_cleared_rows_can_be_left_out_of_a_write() -> None:
    engine = ready(4)
    delete(engine, P, Selector([1, 2]))
    schemas = {"m": Schema("int64", shapes=[[1], [2], [3], [4]])}
    cells = {"m": [b"0", b"1", b"2", b"3"]}
    said = RowWrite([3, 2, 1, 0], group_ids=["d", "c", "b", "a"], custom_meta=[b'{"i":3}', b"null", b"null", b"{}"])
    done = produce(engine, P, said, False, schemas, cells, skip_cleared=True)
    assert (done.global_indexes.tolist(), done.skipped) == ([3, 0], [2, 1])
    batch = look(engine, P, [3, 0], expand=True)
    assert json.loads(batch.group_ids or b"") == ["d", "a"]
    assert json.loads(batch.custom_meta or b"") == [{"i": 3}, {}]
    assert json.loads(b"".join(batch.backend_meta or []))["m"] == [0, 3]
    assert json.loads(batch.field_schema or b"")["m"]["shapes"] == [[1], [4]]
    before = engine.revision
    nothing = produce(engine, P, RowWrite([1]), False, {"new": TENSOR}, {}, skip_cleared=True)
    assert (nothing.global_indexes.tolist(), nothing.skipped, engine.revision) == ([], [1], before)
    plan(engine, 0)
    with pytest.raises(SampleClearing):
        produce(engine, P, RowWrite([1, 0]), False, {"n": TENSOR}, {}, skip_cleared=True)


def test_columns_are_as_long_as_what_was_named_skipped_rows_too() -> None:
    engine = ready(2)
    delete(engine, P, Selector([0]))
    with pytest.raises(Invalid, match="1 values for 2 rows"):
        produce(engine, P, RowWrite([0, 1], custom_meta=[b"{}"]), False, {}, {}, skip_cleared=True)


def test_a_tombstone_keeps_a_key_from_coming_back() -> None:
    engine = new_engine()
    a, b = add_keys(engine, P, ["a", "b"])
    add(engine, P)
    seen = plan(engine, a, 2, with_tombstones=True)
    aborted = plan(engine, b, with_tombstones=True)
    abort_clear(engine, aborted.clear.clear_id)
    commit_clear(engine, seen.clear.clear_id)
    for one in (
        lambda: insert(engine, P, None, RowWrite(keys=["c", "a"]), View()),
        lambda: produce(engine, P, RowWrite(keys=["a"]), True, {}, {}),
        lambda: produce(engine, P, RowWrite(keys=["a"]), False, {}, {}),
    ):
        with pytest.raises(SampleCleared) as refused:
            one()
        assert refused.value.keys == ["a"]
    done = produce(engine, P, RowWrite(keys=["a", "b", "c"]), True, {"n": OBJECT}, {}, skip_cleared=True)
    assert (done.global_indexes.tolist(), done.created, done.skipped) == ([b, 3], 1, ["a"])
    delete_partition(engine, P, None)
    assert add_keys(engine, P, ["a"]) == [4]


def test_a_field_is_forgotten_with_its_last_cleared_row_not_with_a_clearing_one() -> None:
    engine = new_engine()
    a, b = add(engine, P, 2)
    write(engine, P, [a], {"x": Schema("int64", shapes=[[3]])})
    first = plan(engine, a).clear.clear_id
    assert list(engine.partitions[P].fields) == ["x"]
    with pytest.raises(Exception, match="dtype"):
        write(engine, P, [b], {"x": Schema("float32", [1])})
    write(engine, P, [b], {"x": Schema("int64", [4])}, {"x": [b'"b"']})
    second = plan(engine, b).clear.clear_id
    abort_clear(engine, first)
    assert json.loads(b"".join(look(engine, P, [a], expand=True).backend_meta or [])) == {"x": [None]}
    assert json.loads(look(engine, P, [a], expand=True).field_schema or b"")["x"]["shapes"] == [[3]]
    delete(engine, P, Selector([a]))
    assert list(engine.partitions[P].fields) == ["x"]
    commit_clear(engine, second)
    assert list(engine.partitions[P].fields) == []


def test_the_constant_cell_of_a_clearing_row_is_its_own_still() -> None:
    engine = new_engine()
    a, b = add(engine, P, 2)
    write(engine, P, [a, b], ["x"], {"x": [b"1", b"1"]})
    seen = plan(engine, a)
    write(engine, P, [b], ["x"], {"x": [b"2"]})
    assert planned(get_clear(engine, seen.clear.clear_id, False))["fields"]["x"]["backend_meta"] == [1]
    abort_clear(engine, seen.clear.clear_id)
    assert b"".join(look(engine, P).backend_meta or []) == b'{"x":[1,2]}'


def test_a_plan_leaves_leases_alone_and_an_accept_counts() -> None:
    engine = ready(4)
    held = lease(engine, 3)
    seen = plan(engine, 0, 1, 2)
    assert account(engine) == {"waiting": 1, "clearing": 3}
    assert get_claim(engine, held.claim_id).open == 3
    ack(engine, held.claim_id, Ack(held.token, [0], [1], [(2, "bad")]))
    assert counts_of(engine.partitions[P], "t").consumed == 1
    assert account(engine) == {"waiting": 1, "clearing": 3}
    assert list_dead(engine, P, "t")[1] == []
    assert claim(engine, 2) is None
    abort_clear(engine, seen.clear.clear_id)
    assert account(engine) == {"waiting": 2, "consumed": 1, "dead": 1}
    assert [dead.global_index for dead in list_dead(engine, P, "t")[1]] == [2]
    assert claim(engine, 2) == [1, 3]


def test_a_commit_ends_the_lease() -> None:
    engine = ready(2)
    held = lease(engine, 2)
    seen = plan(engine, 0, 1)
    ack(engine, held.claim_id, Ack(held.token, [0], (), ()))
    commit_clear(engine, seen.clear.clear_id)
    assert get_claim(engine, held.claim_id).open == 0
    with pytest.raises(LeaseLost) as lost:
        ack(engine, held.claim_id, Ack(held.token, [1], (), ()))
    assert lost.value.global_indexes == [1]
    counts = counts_of(engine.partitions[P], "t")
    assert (counts.consumed, counts.leased, counts.total) == (1, 0, 1)


def test_a_lease_on_a_clearing_row_expires_and_the_row_comes_back_free() -> None:
    engine = ready(1)
    lease(engine)
    seen = plan(engine, 0)
    assert isinstance(engine.clock, Clock)
    engine.clock.now = 10.0
    expire(engine, 10.0)
    assert account(engine) == {"clearing": 1}
    abort_clear(engine, seen.clear.clear_id)
    again = lease(engine)
    assert (again.indexes.tolist(), again.attempts.tolist()) == ([0], [2])


def test_a_row_leased_all_along_is_leased_when_it_is_back_and_a_reset_frees_it() -> None:
    engine = ready(2)
    lease(engine, 2)
    first = plan(engine, 0).clear.clear_id
    abort_clear(engine, first)
    assert account(engine) == {"leased": 2}
    second = plan(engine, 0).clear.clear_id
    assert reset_consumption(engine, P, "t")[0] == 1
    abort_clear(engine, second)
    assert claim(engine, 2) == [0, 1]


def test_what_is_consumed_and_clearing_counts_as_consumed() -> None:
    engine = ready(3)
    put_partition(engine, P, 3, None, None, {})
    claim(engine, 2)
    seen = plan(engine, 0, 2)
    counts = counts_of(engine.partitions[P], "t")
    assert (counts.consumed, counts.total, counts.done) == (2, 2, True)
    abort_clear(engine, seen.clear.clear_id)
    counts = counts_of(engine.partitions[P], "t")
    assert (counts.consumed, counts.total, counts.done) == (2, 3, False)


def test_a_claim_is_told_how_many_rows_a_clear_holds_back() -> None:
    engine = ready(4)
    assert claim(engine, 2) == [0, 1]

    def blocking() -> dict[str, tuple[int, tuple[int, ...]]]:
        return {one.reason: (one.count, one.global_indexes) for one in refusal(engine).blocking}

    seen = plan(engine, 0, 2)
    assert blocking() == {"consumed": (1, (1,)), "clearing": (1, (2,))}
    assert refusal(engine).ready == 1
    abort_clear(engine, seen.clear.clear_id)
    assert blocking() == {"consumed": (2, (0, 1))}


def test_groups_are_incomplete_while_one_of_them_is_clearing() -> None:
    engine = new_engine()
    write(engine, P, add(engine, P, 6, group_ids=["g", "g", "h", "h", "k", "k"]), ["n"])
    by = {"name": "grpo_group", "n_samples_per_prompt": 2}
    assert claim(engine, 2, task="warm", **by) == [0, 1]
    seen = plan(engine, 0, 2, 3)
    for task in ("t", "fresh"):
        assert claim(engine, 2, task=task, **by) == [4, 5]
    assert claim(engine, 2, **by) is None
    abort_clear(engine, seen.clear.clear_id)
    assert claim(engine, 4, **by) == [0, 1, 2, 3]
    assert claim(engine, 4, task="warm", **by) == [2, 3, 4, 5]


def test_a_group_that_is_whole_only_without_a_clearing_row_is_not_when_that_is_back() -> None:
    engine = new_engine()
    add(engine, P, 3, group_ids=["g", "g", "g"])
    write(engine, P, [0, 1], ["n"])
    by = {"name": "grpo_group", "n_samples_per_prompt": 2}
    assert claim(engine, 2, task="warm", **by) is None
    seen = plan(engine, 2)
    assert claim(engine, 2, **by) == [0, 1]
    abort_clear(engine, seen.clear.clear_id)
    assert claim(engine, 2, task="warm", **by) is None


def test_a_claim_with_where_sees_what_is_clearing_neither_before_nor_after_it_was_asked() -> None:
    engine = new_engine()
    metas = [b'{"v":%d}' % (i % 2) for i in range(6)]
    rows = add(engine, P, 6, custom_meta=metas)
    write(engine, P, rows, ["n"])

    def odd(task: str, most: int) -> list[int]:
        by, of = sampler("sequential", {}), parsed(("v", "==", 1))
        found = claim_now(engine, P, ClaimRequest(task, ("n",), most, 1, 0, by, View(("n",)), where=of))
        return found.batch.global_indexes.tolist() if isinstance(found, Claimed) else []

    assert odd("warm", 1) == [1]
    seen = plan(engine, 2, 3)
    assert (odd("warm", 1), odd("new", 2)) == ([5], [1, 5])
    assert (odd("warm", 1), odd("new", 1)) == ([], [])
    abort_clear(engine, seen.clear.clear_id)
    assert (odd("warm", 2), odd("new", 2)) == ([3], [3])


def test_a_window_that_was_clearing_when_it_was_first_asked_for_comes_back_whole() -> None:
    engine = ready(8)
    seen = plan(engine, 0, 1, 2, 3)
    by = {"name": "grpo_group", "n_samples_per_prompt": 2, "group_by": "position"}
    assert claim(engine, 2, **by) == [4, 5]
    abort_clear(engine, seen.clear.clear_id)
    assert claim(engine, 6, **by) == [0, 1, 2, 3, 6, 7]


def test_seal_and_max_samples_count_what_is_clearing() -> None:
    engine = new_engine()
    put_partition(engine, P, None, 3, None, {})
    add(engine, P, 3)
    seen = plan(engine, 0, 1)
    with pytest.raises(TooManySamples, match="holds 3 of at most 3"):
        add(engine, P)
    sealed = seal_partition(engine, P)
    assert (sealed.limits.expected_samples, sealed.num_samples) == (3, 1)
    commit_clear(engine, seen.clear.clear_id)
    assert summarise(engine.partitions[P]).num_samples == 1


def test_the_end_of_a_partition_commits_its_clears() -> None:
    engine = ready(3)
    seen = plan(engine, 0, 1)
    assert delete_partition(engine, P, None).cleared == 3
    assert commit_clear(engine, seen.clear.clear_id).clear.count == 2
    with pytest.raises(ClearClosed):
        abort_clear(engine, seen.clear.clear_id)
    assert engine.clears.pending == {}


def test_clears_outlive_a_restart_and_ids_are_not_used_again() -> None:
    engine, book = ready(6), Book()
    held = lease(engine, 2)
    ids = [plan(engine, *rows).clear.clear_id for rows in ((0, 1), (2,), (3,))]
    commit_clear(engine, ids[1])
    abort_clear(engine, ids[2])
    book.take(engine)
    replayed = book.replayed()
    assert dump(replayed.partitions) == dump(engine.partitions)
    assert dump(replayed.clears) == dump(engine.clears)
    assert planned(get_clear(replayed, ids[0], False)) == planned(get_clear(engine, ids[0], False))
    assert ack(replayed, held.claim_id, Ack(held.token, [1], (), ())).accepted == 1
    abort_clear(replayed, ids[0])
    assert look(replayed, P).global_indexes.tolist() == [0, 1, 3, 4, 5]
    assert plan(replayed, 5).clear.clear_id not in ids


def test_clearing_rows_outlive_the_closing_of_gaps() -> None:
    engine = new_engine()
    rows = add_keys(engine, P, [f"k{i}" for i in range(3000)], group_ids=[f"g{i // 2}" for i in range(3000)])
    write(engine, P, rows, ["n"], {"n": [b"%d" % i for i in range(3000)]})
    seen = plan(engine, 0, 2, 2999)
    delete(engine, P, Selector(list(range(3, 2990))))
    assert engine.partitions[P].rows.capacity < 100
    by = {"name": "grpo_group", "n_samples_per_prompt": 2}
    assert claim(engine, 8, **by) == list(range(2990, 2998))
    assert planned(seen)["fields"]["n"]["backend_meta"] == [0, 2, 2999]
    abort_clear(engine, seen.clear.clear_id)
    assert planned(plan_clear(engine, P, ClearRequest(Selector(key_prefix="k2999"))))["rows"] == [2999]
    assert claim(engine, 2, **by) == [0, 1]
    assert engine.partitions[P].groups.size.sum() == engine.partitions[P].rows.live_count


def test_clears_are_listed_in_the_order_they_were_planned() -> None:
    engine = ready(6)
    ids = [plan(engine, index).clear.clear_id for index in range(5)]
    commit_clear(engine, ids[3])
    abort_clear(engine, ids[0])
    listed, cursor = [], None
    while True:
        page, cursor = list_clears(engine, None, "", 2, cursor)
        listed += [(clear.clear_id, clear.state) for clear, _ in page]
        if cursor is None:
            break
    states = ["aborted", "pending", "pending", "committed", "pending"]
    assert listed == list(zip(ids, states, strict=True))
    assert [clear.clear_id for clear, _ in list_clears(engine, "pending", "", 9, None)[0]] == [ids[1], ids[2], ids[4]]


def test_its_age_counts_over_a_restart() -> None:
    engine = ready(1)
    seen = plan(engine, 0)
    engine.wall = lambda: 1_000_060.0
    assert get_clear(engine, seen.clear.clear_id, False).age_s == 60.0
    engine.wall = lambda: 999_999.0
    assert get_clear(engine, seen.clear.clear_id, False).age_s == 0.0


def test_where_groups_and_prefixes_say_what_goes() -> None:
    engine = new_engine()
    keys = ["a1", "a2", "b1", 'a"']
    add_keys(engine, P, keys, group_ids=["g", 7, "7", "g"], custom_meta=[b'{"v":%d}' % i for i in range(4)])
    add(engine, P)
    old = parsed(("v", "<", 1))
    for selector, more, rows in (
        (Selector(group_ids=["g", "nobody"]), {}, [0, 3]),
        (Selector(group_ids=[7]), {}, [1]),
        (Selector(key_prefix="a"), {}, [0, 1, 3]),
        (Selector(key_prefix='a"'), {}, [3]),
        (Selector(key_prefix="a"), {"where": old}, [0]),
        (Selector(), {"where": old, "is_all": True}, [0]),
        (Selector(keys=["b1", "a1", "b1"]), {}, [0, 2]),
    ):
        seen = plan_clear(engine, P, ClearRequest(selector, **more))
        assert planned(seen)["rows"] == rows
        again = plan_clear(engine, P, ClearRequest(selector, **more))
        assert (planned(again)["rows"], list(again.skipped)) == ([], rows)
        abort_clear(engine, seen.clear.clear_id)
    assert where([], "body.where") is None


def test_nothing_named_and_all_is_one_of_them() -> None:
    for selector, is_all in ((Selector(), False), (Selector([1]), True)):
        with pytest.raises(Invalid, match="all: true"):
            ClearRequest(selector, is_all=is_all)


def test_a_clear_has_at_most_so_many_rows() -> None:
    engine = new_engine()
    for _ in range(2):
        add(engine, P, 40_000)
    before = engine.revision
    with pytest.raises(Invalid, match="means 80000 samples: a clear has at most 65536"):
        plan_clear(engine, P, ClearRequest(Selector(), is_all=True))
    assert engine.revision == before


class Chance:
    """Calls drawn by chance, on one engine."""

    def __init__(self, seed: int) -> None:
        self.engine = ready(60)
        self.of = np.random.default_rng(seed)
        self.held: list[Any] = []
        self.pending: list[str] = []

    def below(self, most: int) -> int:
        return int(self.of.integers(0, most))

    def lease(self) -> None:
        if refusal(self.engine).ready > 3:
            self.held.append(lease(self.engine, 1 + self.below(3), 1.0 + self.below(8)))

    def ack(self) -> None:
        if self.held:
            _try_ack(self.engine, self.held.pop(self.below(len(self.held))), self.of)

    def wait(self) -> None:
        assert isinstance(self.engine.clock, Clock)
        self.engine.clock.now += self.below(3)
        expire(self.engine, self.engine.clock.now)

    def plan(self) -> None:
        rows = self.of.integers(0, self.engine.next_index, 5).tolist()
        self.pending.append(plan(self.engine, *rows).clear.clear_id)

    def close(self) -> None:
        if self.pending:
            close = abort_clear if self.below(3) else commit_clear
            close(self.engine, self.pending.pop(self.below(len(self.pending))))

    def delete(self) -> None:
        delete(self.engine, P, Selector([self.below(self.engine.next_index)]))

    def write(self) -> None:
        if self.engine.partitions[P].rows.held_count < 40:
            write(self.engine, P, add(self.engine, P, 3), ["n"])


@pytest.mark.parametrize("seed", [7, 11, 13])
def test_the_account_adds_up_whatever_happens(seed: int) -> None:
    chance = Chance(seed)
    calls = [
        chance.lease,
        chance.lease,
        chance.ack,
        chance.wait,
        chance.plan,
        chance.close,
        chance.delete,
        chance.write,
    ]
    for _ in range(400):
        calls[chance.below(len(calls))]()
        _check(chance.engine)


def _try_ack(engine: Engine, one: Any, chance: np.random.Generator) -> None:
    rows = one.indexes.tolist()
    cut, end = sorted(chance.integers(0, len(rows) + 1, 2).tolist())
    reject = [(index, "bad") for index in rows[end:]]
    try:
        ack(engine, one.claim_id, Ack(one.token, rows[:cut], rows[cut:end], reject))
    except LeaseLost:
        return


def _check(engine: Engine) -> None:
    """Counts by their definition, and what is kept for claims as if it were built now."""
    partition = engine.partitions[P]
    account(engine)
    rows = partition.rows.state[: partition.rows.n]
    live, clearing = rows == LIVE, rows == CLEARING
    assert (live.sum(), clearing.sum()) == (partition.rows.live_count, partition.rows.clearing_count)
    task = partition.tasks.get("t")
    if task is not None:
        states = np.bincount(task.state[: partition.rows.n][live], minlength=5).tolist()
        assert states[HELD:] == [0, task.leased, task.consumed_live, task.dead]
        open_rows = [index for one in engine.leases.open.values() for index in one.open_rows().tolist()]
        assert len(open_rows) == (task.state[: partition.rows.n] == LEASED).sum()
    kept, fresh = partition.supply("t", ("n",)), Supplies().of(partition, "t", ("n",), None)
    assert np.flatnonzero(kept.ready.bits).tolist() == np.flatnonzero(fresh.ready.bits).tolist()
    assert partition.grid.hidden[partition.fields["n"].bit] == clearing.sum()


def test_a_write_lands_on_its_row_after_a_commit_that_closes_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row numbers change with a commit: what was known of them before must not be used after."""
    monkeypatch.setattr("core.state.partition.GAPS", 2)
    engine = new_engine()
    indexes = add(engine, P, 9)
    going = plan(engine, *indexes[:8])
    write(engine, P, indexes[8:], ["n"])
    commit_clear(engine, going.clear.clear_id)
    write(engine, P, indexes[8:], ["m"])
    assert look(engine, P, indexes[8:], ["n", "m"]).status.tolist() == [1]
