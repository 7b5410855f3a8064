"""Claims with `where`: their supplies equal a full scan after any changes, and their cost is bounded."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import core.state.partition
from batchmeta.wire.requests import Where as Wire
from core.engine import Engine
from core.operations.claim import Answer, Claimed, ClaimRequest, NotClaimed, claim, claim_now, explain_claim
from core.operations.clears import ClearRequest, abort_clear, commit_clear, plan_clear
from core.operations.consumption import reset_consumption
from core.operations.delete import delete
from core.operations.leases import Ack, ack
from core.operations.parked import Parked
from core.operations.partitions import put_partition, seal_partition
from core.operations.produce import RowWrite, patch_custom_meta, produce
from core.operations.revoke import revoke
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import sampler
from core.state.clears import Clear
from core.state.supply.supplies import Supplies
from core.state.where import Where, where
from tests.core.world import TENSOR, add, new_engine, write

P = "p"
NEWER: list[dict[str, Any]] = [{"path": "v", "op": ">=", "value": 2}]
KIND: list[dict[str, Any]] = [{"path": "k", "op": "==", "value": "a"}]
PAIRS = sampler("grpo_group", {"n_samples_per_prompt": 2})
WINDOWS = sampler("grpo_group", {"n_samples_per_prompt": 2, "group_by": "position"})


def parsed(conditions: list[dict[str, Any]]) -> Where | None:
    return where(msgspec.convert(conditions, Wire), "body.where")


def wanted(conditions: list[dict[str, Any]], rows: int = 1, **more: Any) -> ClaimRequest:
    parts: dict[str, Any] = {"min_batch_size": rows, "wait_s": 0.0, "view": View(("f",))}
    parts["sampler"] = sampler("sequential", {})
    return ClaimRequest("t", ("f",), rows, where=parsed(conditions), **{**parts, **more})


def tagged(engine: Engine, *tags: dict[str, Any], **more: Any) -> list[int]:
    """Ready rows with these custom metas."""
    rows = add(engine, P, len(tags), custom_meta=[json.dumps(tag).encode() for tag in tags], **more)
    write(engine, P, rows, ["f"])
    return rows


def tag(engine: Engine, index: int, **members: Any) -> None:
    patch_custom_meta(engine, P, RowWrite([index], custom_meta=[json.dumps(members).encode()]))


def taken(answer: Answer | Parked[Answer]) -> list[int] | None:
    return answer.batch.global_indexes.tolist() if isinstance(answer, Claimed) else None


def test_only_rows_that_pass_go_out_and_a_change_of_meta_counts_from_then_on() -> None:
    engine = new_engine()
    rows = tagged(engine, {"v": 1}, {"v": 2}, {"v": "3"}, {"v": 2.5})
    assert taken(claim_now(engine, P, wanted(NEWER, 3))) is None
    tag(engine, rows[0], v=7)
    tag(engine, rows[3], v=None)
    assert taken(claim_now(engine, P, wanted(NEWER, 3))) is None
    assert taken(claim_now(engine, P, wanted(NEWER, 2))) == [rows[0], rows[1]]
    assert taken(claim_now(engine, P, wanted([], 2))) == [rows[2], rows[3]]


def test_a_claim_that_waits_is_woken_by_the_row_that_passes() -> None:
    engine = new_engine()
    (row,) = tagged(engine, {"v": 1})
    parked = claim(engine, P, wanted(NEWER, 1, wait_s=9.0))
    assert isinstance(parked, Parked)
    tagged(engine, {"v": 0})
    assert not parked.is_ripe()
    tag(engine, row, v=2)
    assert parked.is_ripe()
    assert taken(parked.retry(False)) == [row]


def test_what_is_filtered_is_told_with_examples() -> None:
    engine = new_engine()
    rows = tagged(engine, {"v": 1}, {"v": 2}, {})
    idle = add(engine, P, 1)
    assert taken(claim_now(engine, P, wanted(KIND + NEWER, 1))) is None
    answer = claim_now(engine, P, wanted(NEWER, 2))
    assert isinstance(answer, NotClaimed)
    assert answer.ready == 1
    (found,) = [b for b in answer.blocking if b.reason == "filtered"]
    assert (found.count, found.global_indexes) == (3, (rows[0], rows[2], *idle))
    assert explain_claim(engine, P, wanted(NEWER, 2)).blocking == answer.blocking
    claim_now(engine, P, wanted([], 3))
    (found,) = [b for b in explain_claim(engine, P, wanted(NEWER, 2)).blocking if b.reason == "filtered"]
    assert (found.count, found.global_indexes) == (1, tuple(idle))


def test_of_a_group_every_member_must_pass() -> None:
    engine = new_engine()
    rows = tagged(engine, {"v": 2}, {"v": 2}, {"v": 2}, {"v": 1}, group_ids=["x", "y", "x", "y"])
    assert taken(claim_now(engine, P, wanted(NEWER, 4, sampler=PAIRS))) is None
    assert taken(claim_now(engine, P, wanted(NEWER, 2, sampler=PAIRS))) == [rows[0], rows[2]]
    tag(engine, rows[3], v=5)
    assert taken(claim_now(engine, P, wanted(NEWER, 2, sampler=PAIRS))) == [rows[1], rows[3]]


def test_the_last_rows_that_pass_go_out_of_a_sealed_partition_once_all_of_them_are_ready() -> None:
    engine = new_engine()
    rows = tagged(engine, {"v": 2}, {"v": 1}, {"v": 3})
    idle = add(engine, P, 2, custom_meta=[b'{"v":4}', b'{"v":0}'])
    seal_partition(engine, P)
    four = wanted(NEWER, 4)
    assert taken(claim_now(engine, P, four)) is None
    write(engine, P, idle[:1], ["f"])
    assert taken(claim_now(engine, P, four)) == [rows[0], rows[2], idle[0]]
    answer = claim_now(engine, P, four)
    assert isinstance(answer, NotClaimed)
    assert not answer.done


def test_released_rows_come_back_only_if_they_pass() -> None:
    engine = new_engine()
    rows = tagged(engine, {"v": 2}, {"v": 2})
    held = claim_now(engine, P, wanted(NEWER, 2, lease_s=10.0))
    assert isinstance(held, Claimed)
    assert held.lease is not None
    assert taken(claim_now(engine, P, wanted(NEWER, 1))) is None
    tag(engine, rows[0], v=0)
    ack(engine, held.claim_id, Ack(held.lease.token, (), rows, ()))
    assert taken(claim_now(engine, P, wanted(NEWER, 2))) is None
    assert taken(claim_now(engine, P, wanted(NEWER, 1))) == [rows[1]]


def test_rows_that_get_a_group_later_and_groups_that_lose_a_member_are_whole_as_they_then_are() -> None:
    engine = new_engine()
    rows = tagged(engine, {"v": 2}, {"v": 2}, {"v": 2}, {"v": 2}, group_ids=[None, None, "b", "b"])
    (idle,) = add(engine, P, 1, group_ids=["b"])
    pairs = wanted(NEWER, 2, sampler=PAIRS)
    assert taken(claim_now(engine, P, pairs)) is None
    write_groups = RowWrite(rows[:2], group_ids=["a", "a"])
    produce(engine, P, write_groups, False, {}, {})
    delete(engine, P, Selector(indexes=[idle]))
    assert taken(claim_now(engine, P, wanted(NEWER, 4, sampler=PAIRS))) == [rows[2], rows[3], rows[0], rows[1]]


def test_rows_that_are_clearing_do_not_pass_and_come_back_as_they_are() -> None:
    engine = new_engine()
    rows = tagged(engine, {"v": 2}, {"v": 1}, {"v": 3}, group_ids=["a", "b", "a"])
    clear = plan_clear(engine, P, ClearRequest(Selector(indexes=rows[:1]))).clear
    assert taken(claim_now(engine, P, wanted(NEWER, 2))) is None
    assert taken(claim_now(engine, P, wanted(NEWER, 2, sampler=PAIRS))) is None
    abort_clear(engine, clear.clear_id)
    assert taken(claim_now(engine, P, wanted(NEWER, 2, sampler=PAIRS))) == [rows[0], rows[2]]


def test_what_is_revoked_is_not_handed_out_until_it_is_produced_again() -> None:
    engine = new_engine()
    rows = tagged(engine, {"v": 2}, {"v": 2})
    assert taken(claim_now(engine, P, wanted(NEWER, 3))) is None
    revoke(engine, P, Selector(indexes=rows[:1]), ("f",))
    assert taken(claim_now(engine, P, wanted(NEWER, 2))) is None
    write(engine, P, rows[:1], ["f"])
    assert taken(claim_now(engine, P, wanted(NEWER, 2))) == rows


def test_a_task_that_begins_anew_may_take_all_that_passes_again() -> None:
    engine = new_engine()
    rows = tagged(engine, {"v": 2}, {"v": 1})
    for _ in range(2):
        assert taken(claim_now(engine, P, wanted(NEWER, 1))) == rows[:1]
        assert taken(claim_now(engine, P, wanted(NEWER, 1))) is None
        reset_consumption(engine, P, "t")


def test_rows_may_move_when_gaps_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.state.partition, "GAPS", 2)
    engine = new_engine()
    rows = tagged(engine, *({"v": number % 2 * 2} for number in range(9)))
    assert taken(claim_now(engine, P, wanted(NEWER, 5))) is None
    delete(engine, P, Selector(indexes=rows[:6]))
    tag(engine, rows[8], v=3)
    assert taken(claim_now(engine, P, wanted(NEWER, 2))) == [rows[7], rows[8]]


def test_a_sampler_by_weight_follows_what_passes_and_what_it_weighs() -> None:
    engine = new_engine()
    rows = tagged(engine, {"v": 2, "w": 1}, {"v": 2, "w": 5}, {"v": 1, "w": 9}, {"v": 3})
    heavy = sampler("priority", {"weight": "w"})
    partition, passing = engine.partitions[P], parsed(NEWER)

    def order() -> list[int]:
        return partition.rows.global_index[heavy.take(partition, partition.supply("t", ("f",), passing), 9)].tolist()

    assert order() == [rows[1], rows[0]]
    tag(engine, rows[0], w=7)
    tag(engine, rows[2], v=2)
    tag(engine, rows[3], w=6)
    assert order() == [rows[2], rows[0], rows[3], rows[1]]
    tag(engine, rows[2], w=None)
    delete(engine, P, Selector(indexes=rows[:1]))
    assert order() == [rows[3], rows[1]]


def test_a_token_budget_waits_for_its_budget_or_a_full_batch_and_takes_what_there_is_at_the_end() -> None:
    engine = new_engine()
    budget = sampler("token_budget", {"weight": "w", "budget": 10})
    tagged(engine, {"w": 4}, {}, {"w": 5})
    parked = claim(engine, P, wanted([], 3, sampler=budget, min_batch_size=1, wait_s=9.0))
    assert isinstance(parked, Parked)
    assert not parked.is_ripe()
    (row,) = tagged(engine, {"w": 1.5})
    assert parked.is_ripe()
    assert taken(parked.retry(False)) == [0, 2]
    again = claim(engine, P, wanted([], 3, sampler=budget, min_batch_size=1, wait_s=9.0))
    assert isinstance(again, Parked)
    assert taken(again.retry(True)) == [row]
    full = wanted([], 2, sampler=budget, min_batch_size=2, wait_s=9.0)
    tagged(engine, {"w": 0}, {"w": 0})
    assert taken(claim(engine, P, full)) == [row + 1, row + 2]
    tagged(engine, {"w": 10})
    assert taken(claim(engine, P, full)) == [row + 3]


STEP = st.tuples(
    st.sampled_from(
        [
            "tag",
            "tag",
            "add",
            "write",
            "claim",
            "lease",
            "lease",
            "release",
            "delete",
            "plan",
            "end",
            "revoke",
            "group",
            "reset",
        ]
    ),
    st.integers(0, 40),
    st.integers(1, 3),
)


def step(engine: Engine, what: str, number: int, rows: int, held: list[Claimed]) -> None:
    """One change, of whatever rows are there."""
    there = engine.partitions[P].rows.after(-1, 99)
    indexes = engine.partitions[P].rows.global_index[there].tolist()
    some = (indexes[number % len(indexes) :] if indexes else [])[:rows]
    conditions = [[], NEWER, KIND][number % 3]
    numbers = engine.partitions[P].groups.number
    loose = [index for index, row in zip(indexes, there.tolist(), strict=True) if not numbers[row]][:rows]
    changes: dict[str, Callable[[], object]] = {
        "tag": lambda: [tag(engine, index, v=number % 4, k="ab"[number % 2]) for index in some],
        "add": lambda: add(
            engine,
            P,
            rows,
            group_ids=[f"g{number % 3}" if number % 2 else None] * rows,
            custom_meta=[b'{"v":2}'] * rows,
        ),
        "write": lambda: write(engine, P, some, ["f"]),
        "claim": lambda: claim_now(engine, P, wanted(conditions, rows)),
        "lease": lambda: held.append(claim_now(engine, P, wanted(conditions, rows, lease_s=9.0))),  # type: ignore[arg-type]
        "release": lambda: [release(engine, one) for one in [held.pop() for _ in held[:1]]],
        "delete": lambda: delete(engine, P, Selector(indexes=some[:2])),
        "group": lambda: produce(engine, P, RowWrite(loose, group_ids=[f"h{number % 3}"] * len(loose)), False, {}, {}),
        "plan": lambda: plan_clear(engine, P, ClearRequest(Selector(indexes=some))),
        "end": lambda: [end(engine, one, number) for one in list(engine.partitions[P].clears.values())[:1]],
        "revoke": lambda: revoke(engine, P, Selector(indexes=some[:1]), ("f",)),
        "reset": lambda: reset_consumption(engine, P, "t") if number % 4 == 0 else None,
    }
    changes[what]()


def end(engine: Engine, one: Clear, number: int) -> None:
    (abort_clear if number % 3 else commit_clear)(engine, one.clear_id)


def release(engine: Engine, one: Any) -> None:
    if isinstance(one, Claimed) and one.lease is not None and one.claim_id:
        still = one.lease.open_rows()
        if len(still):
            ack(engine, one.claim_id, Ack(one.lease.token, (), still.tolist(), ()))


def check(engine: Engine, conditions: list[dict[str, Any]]) -> None:
    """What is kept against a scan of what can be seen."""
    partition, predicate = engine.partitions[P], parsed(conditions)
    assert predicate is not None
    kept = partition.supply("t", ("f",), predicate)
    rows = partition.rows.after(-1, 999)
    is_open = partition.free("t", rows) & predicate.matches(partition.custom_meta_of(rows))
    every = Supplies().of(partition, "t", ("f",), None).ready.all()
    assert partition.supply("t", (), predicate).ready.all().tolist() == rows[is_open].tolist()
    assert kept.ready.all().tolist() == np.intersect1d(every, rows[is_open]).tolist()
    for way in (PAIRS, WINDOWS):
        fresh = Supplies().of(partition, "t", ("f",), predicate)
        assert way.take(partition, kept, 99).tolist() == way.take(partition, fresh, 99).tolist()


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(STEP, max_size=25), st.integers(1, 3))
def test_what_is_kept_through_any_changes_is_what_a_scan_finds(steps: list[tuple[str, int, int]], look: int) -> None:
    engine = new_engine()
    put_partition(engine, P, None, None, None, {"f": TENSOR})
    tagged(engine, {"v": 1}, {"v": 2, "k": "a"}, {"v": 3}, {"k": "a"}, group_ids=["g0", "g1", "g0", "g1"])
    held: list[Claimed] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core.state.partition, "GAPS", 2)
        for number, one in enumerate(steps):
            if number % look == 0:
                for conditions in (NEWER, KIND):
                    PAIRS.take(engine.partitions[P], engine.partitions[P].supply("t", ("f",), parsed(conditions)), 9)
            step(engine, *one, held)
        for conditions in (NEWER, KIND, NEWER + KIND):
            check(engine, conditions)


def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many cells each look at custom meta had before it."""
    counts: list[int] = []
    matches = Where.matches
    monkeypatch.setattr(Where, "matches", lambda self, cells: counts.append(len(cells)) or matches(self, cells))
    return counts


def test_after_the_first_look_only_rows_that_changed_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = new_engine()
    rows = tagged(engine, *({"v": i % 4} for i in range(2_000)))
    counts = decoded(monkeypatch)
    for _ in range(3):
        assert taken(claim_now(engine, P, wanted(NEWER, 8))) is not None
    tag(engine, rows[1_999], v=1)
    tagged(engine, {"v": 9})
    for _ in range(3):
        assert taken(claim_now(engine, P, wanted(NEWER, 8))) is not None
    assert [n for n in counts if n] == [2_000, 2]


def test_claims_without_where_look_at_no_custom_meta(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = new_engine()
    tagged(engine, *({"v": i} for i in range(50)))
    claim_now(engine, P, wanted(NEWER, 1))
    counts = decoded(monkeypatch)
    tagged(engine, *({"v": i} for i in range(50)))
    claim_now(engine, P, wanted([], 20))
    assert counts == []
