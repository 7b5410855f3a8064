"""Rows with a time limit, on a clock that the test moves: deadline, renewal, restart, and the counts afterwards."""

import pytest

from core.engine import Engine
from core.errors import KeyNotFound, SampleCleared, TooManySamples
from core.operations.claim import Claimed, ClaimRequest, claim_now
from core.operations.clears import ClearRequest, abort_clear, commit_clear, plan_clear
from core.operations.consumption import counts_of
from core.operations.delete import delete
from core.operations.expiry import begin_anew, expire, next_due
from core.operations.partitions import delete_partition, get_partition, patch_partition, put_partition, seal_partition
from core.operations.produce import RowWrite, patch_backend_meta, patch_custom_meta, produce
from core.operations.revoke import revoke
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import sampler
from core.state.cells.json_cells import Const
from core.state.deadlines import SLACK, Deadlines
from tests.core.world import MANY, TENSOR, Book, Clock, add, add_keys, new_engine, write
from tests.model.compare import dump

P = "p"


def at(engine: Engine, now: float) -> None:
    """Time passes."""
    assert isinstance(engine.clock, Clock)
    engine.clock.now = now
    expire(engine, now)


def live(engine: Engine) -> list[int]:
    rows = engine.partitions[P].rows
    return rows.global_index[rows.after(-1, MANY)].tolist()


def take(engine: Engine, size: int, **how: object) -> list[int]:
    chosen = sampler(str(how.pop("name", "sequential")), how)
    claimed = claim_now(engine, P, ClaimRequest("t", ("f",), size, size, 0, chosen, View(("f",))))
    return claimed.batch.global_indexes.tolist() if isinstance(claimed, Claimed) else []


def test_many_rows_whose_time_is_up_at_one_moment_end_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.operations.expiry.ROWS", 3)
    engine = new_engine()
    for _ in range(3):
        add(engine, P, 2, ttl_s=10.0)
    at(engine, 10.0)
    assert live(engine) == [4, 5]
    assert next_due(engine) == 10.0
    at(engine, 10.0)
    assert live(engine) == []
    assert next_due(engine) is None


def test_at_its_deadline_an_inserted_row_is_gone_and_its_key_free_again() -> None:
    engine = new_engine()
    add_keys(engine, P, ["a", "b"], ttl_s=10.0)
    at(engine, 9.9)
    assert live(engine) == [0, 1]
    at(engine, 10.0)
    assert live(engine) == []
    assert get_partition(engine, P).num_samples == 0
    with pytest.raises(SampleCleared):
        write(engine, P, [0], ["f"])
    with pytest.raises(KeyNotFound):
        produce(engine, P, RowWrite(keys=["a"]), False, {"f": TENSOR}, {})
    assert add_keys(engine, P, ["a"]) == [2]
    at(engine, 1e6)
    assert live(engine) == [2]


def test_the_first_produced_field_ends_it() -> None:
    engine = new_engine()
    add(engine, P, 3, ttl_s=10.0)
    write(engine, P, [1], ["f"])
    at(engine, 10.0)
    assert live(engine) == [1]
    at(engine, 1e6)
    assert live(engine) == [1]
    assert next_due(engine) is None


def test_what_is_no_field_does_not_end_it() -> None:
    engine = new_engine()
    put_partition(engine, P, None, None, None, {"f": TENSOR})
    add_keys(engine, P, ["a"], ttl_s=10.0)
    patch_custom_meta(engine, P, RowWrite([0], custom_meta=Const(b'{"n":1}')))
    patch_backend_meta(engine, P, RowWrite([0]), {"f": Const(b'"x"')})
    produce(engine, P, RowWrite(keys=["a"], group_ids=["g"]), False, {}, {})
    add_keys(engine, P, ["a"])
    at(engine, 10.0)
    assert live(engine) == []


def test_rows_of_one_call_are_one_deadline_and_one_change() -> None:
    engine = new_engine()
    add(engine, P, MANY, ttl_s=10.0)
    assert len(engine.ttl_deadlines._heap) == 1
    write(engine, P, list(range(5)), ["f"])
    revision = engine.revision
    at(engine, 10.0)
    assert engine.revision == revision + 1
    assert live(engine) == [0, 1, 2, 3, 4]


def test_rows_of_several_calls_that_end_together_are_one_change_of_their_partition() -> None:
    engine = new_engine()
    for length_s in (3.0, 1.0, 2.0, 9.0):
        add(engine, P, 2, ttl_s=length_s)
    add(engine, "q", 1, ttl_s=1.0)
    revision = engine.revision
    assert next_due(engine) == 1.0
    at(engine, 3.0)
    assert engine.revision == revision + 2
    assert live(engine) == [6, 7]
    assert next_due(engine) == 9.0


def test_inserting_again_renews_it_and_is_a_change() -> None:
    engine = new_engine()
    add_keys(engine, P, ["a", "b", "c"], ttl_s=10.0)
    at(engine, 6.0)
    revision = engine.revision
    assert add_keys(engine, P, ["a", "b"], ttl_s=10.0) == [0, 1]
    assert engine.revision == engine.partitions[P].revision == revision + 1
    assert engine.partitions[P].rows.revision[1:4].tolist() == [revision] * 3
    at(engine, 10.0)
    assert live(engine) == [0, 1]
    at(engine, 15.9)
    assert live(engine) == [0, 1]
    at(engine, 16.0)
    assert live(engine) == []


def test_a_patch_renews_it_and_may_shorten_it() -> None:
    engine = new_engine()
    add(engine, P, 3, ttl_s=10.0)
    patch_custom_meta(engine, P, RowWrite([0], custom_meta=Const(b"null"), ttl_s=50.0))
    patch_custom_meta(engine, P, RowWrite([1], custom_meta=Const(b'{"n":1}'), ttl_s=2.0))
    at(engine, 2.0)
    assert live(engine) == [0, 2]
    at(engine, 10.0)
    assert live(engine) == [0]
    at(engine, 50.0)
    assert live(engine) == []


def test_a_row_inserted_without_a_time_may_get_one() -> None:
    engine = new_engine()
    add(engine, P, 2)
    patch_custom_meta(engine, P, RowWrite([0], custom_meta=Const(b"null"), ttl_s=5.0))
    at(engine, 5.0)
    assert live(engine) == [1]


def test_a_row_that_ever_had_a_field_gets_no_time() -> None:
    engine = new_engine()
    add_keys(engine, P, ["a", "b"])
    write(engine, P, [0, 1], ["f"])
    revoke(engine, P, Selector([1]), ("f",))
    revision = engine.revision
    add_keys(engine, P, ["a", "b"], ttl_s=1.0)
    patch_custom_meta(engine, P, RowWrite([0, 1], custom_meta=Const(b"{}"), ttl_s=1.0))
    assert engine.revision == revision
    at(engine, 10.0)
    assert live(engine) == [0, 1]


def test_an_expired_row_counts_as_never_inserted_but_for_its_position() -> None:
    engine = new_engine()
    put_partition(engine, P, 4, 4, None, {})
    write(engine, P, add(engine, P, 2), ["f"])
    add(engine, P, 2, ttl_s=10.0)
    with pytest.raises(TooManySamples):
        add(engine, P)
    assert counts_of(engine.partitions[P], "t").total == 4
    at(engine, 10.0)
    counts = counts_of(engine.partitions[P], "t")
    assert (counts.total, counts.done) == (4, False)
    assert take(engine, 2) == [0, 1]
    write(engine, P, add(engine, P, 2), ["f"])
    assert engine.partitions[P].rows.position[engine.partitions[P].rows.after(-1, 9)].tolist() == [0, 1, 4, 5]
    assert take(engine, 2, name="grpo_group", n_samples_per_prompt=2, group_by="position") == [4, 5]
    assert counts_of(engine.partitions[P], "t").done


def test_a_window_of_positions_with_an_expired_row_is_never_whole() -> None:
    engine = new_engine()
    add(engine, P, 1, ttl_s=10.0)
    at(engine, 10.0)
    write(engine, P, add(engine, P, 3), ["f"])
    assert take(engine, 2, name="grpo_group", n_samples_per_prompt=2, group_by="position") == [2, 3]
    assert take(engine, 2, name="grpo_group", n_samples_per_prompt=2, group_by="position") == []


def test_a_group_is_as_large_as_if_the_row_had_never_been() -> None:
    engine = new_engine()
    write(engine, P, add(engine, P, 2, group_ids=["g", "g"]), ["f"])
    add(engine, P, 1, group_ids=["g"], ttl_s=10.0)
    assert take(engine, 2, name="grpo_group", n_samples_per_prompt=2) == []
    at(engine, 10.0)
    assert take(engine, 2, name="grpo_group", n_samples_per_prompt=2) == [0, 1]


def test_a_sealed_partition_does_not_wait_for_what_has_expired() -> None:
    engine = new_engine()
    write(engine, P, add(engine, P, 3), ["f"])
    delete(engine, P, Selector([2]))
    add(engine, P, 2, ttl_s=10.0)
    seal_partition(engine, P)
    assert take(engine, 8) == []
    at(engine, 10.0)
    claimed = claim_now(engine, P, ClaimRequest("t", ("f",), 8, 8, 0, sampler("sequential", {}), View(("f",))))
    assert isinstance(claimed, Claimed)
    counts = counts_of(engine.partitions[P], "t")
    assert (counts.total, counts.done) == (2, True)
    assert get_partition(engine, P).limits.expected_samples == 2
    assert patch_partition(engine, P, 2, None, None).limits.expected_samples == 2


def test_after_a_restart_each_has_its_full_length_again() -> None:
    engine, book = new_engine(), Book()
    add(engine, P, 2, ttl_s=10.0)
    at(engine, 8.0)
    add(engine, P, 2, ttl_s=50.0)
    write(engine, P, [0, 2], ["f"])
    claim_now(engine, P, ClaimRequest("t", ("f",), 1, 1, 0, sampler("sequential", {}), View(("f",)), 9.0))
    book.take(engine)
    replayed = book.replayed()
    assert dump(replayed.partitions[P].ttls) == dump(engine.partitions[P].ttls)
    assert isinstance(replayed.clock, Clock)
    replayed.clock.now = 100.0  # the replay took its time
    begin_anew(replayed)
    assert next_due(replayed) == 109.0
    at(replayed, 109.0)
    assert counts_of(replayed.partitions[P], "t").leased == 0
    assert next_due(replayed) == 110.0
    at(replayed, 110.0)
    assert live(replayed) == [0, 2, 3]
    at(replayed, 150.0)
    assert live(replayed) == [0, 2]


def test_what_expired_stays_so_over_a_restart() -> None:
    engine, book = new_engine(), Book()
    put_partition(engine, P, 5, None, None, {})
    add_keys(engine, P, ["a", "b"], ttl_s=10.0, group_ids=["g", "h"], custom_meta=[b'{"n":1}', b"null"])
    write(engine, P, [1], ["f"])
    at(engine, 10.0)
    add_keys(engine, P, ["a"], ttl_s=3.0)
    book.take(engine)
    replayed = book.replayed()
    assert dump(replayed.partitions) == dump(engine.partitions)
    assert live(replayed) == [1, 2]
    assert next_due(replayed) == 3.0


def test_rows_outlive_the_closing_of_gaps_with_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.state.partition.GAPS", 1)
    engine = new_engine()
    add(engine, P, 40, ttl_s=10.0)
    delete(engine, P, Selector(list(range(3, 38))))
    assert engine.partitions[P].rows.capacity < 40
    write(engine, P, [0, 39], ["f"])
    at(engine, 10.0)
    assert live(engine) == [0, 39]


def test_a_clearing_row_does_not_expire_and_has_its_time_anew_when_it_is_back() -> None:
    engine = new_engine()
    add_keys(engine, P, ["a", "b", "c"], ttl_s=10.0)
    kept, gone = (plan_clear(engine, P, ClearRequest(Selector([row]))).clear.clear_id for row in (0, 1))
    at(engine, 10.0)
    assert (live(engine), engine.partitions[P].rows.inserted) == ([], 2)
    commit_clear(engine, gone)
    abort_clear(engine, kept)
    assert live(engine) == [0]
    at(engine, 19.9)
    assert live(engine) == [0]
    at(engine, 20.0)
    assert live(engine) == []
    assert next_due(engine) is None


def test_committing_the_clear_of_rows_with_a_time_ends_it() -> None:
    engine = new_engine()
    add(engine, P, 2, ttl_s=10.0)
    seen = plan_clear(engine, P, ClearRequest(Selector([0, 1])))
    assert next_due(engine) == 10.0
    commit_clear(engine, seen.clear.clear_id)
    assert next_due(engine) is None


def test_a_deleted_partition_takes_its_deadlines_along() -> None:
    engine = new_engine()
    add(engine, P, 2, ttl_s=10.0)
    delete_partition(engine, P, None)
    assert next_due(engine) is None
    add(engine, P, 1)
    at(engine, 10.0)
    assert live(engine) == [2]


def test_renewing_for_ever_keeps_no_more_than_what_is_alive() -> None:
    engine = new_engine()
    add_keys(engine, P, ["a", "b"], ttl_s=10.0)
    for _ in range(3 * SLACK):
        add_keys(engine, P, ["a"], ttl_s=86_400.0)
    assert len(engine.partitions[P].ttls.batches) == 2
    assert len(engine.ttl_deadlines._heap) <= SLACK + 5
    at(engine, 10.0)
    assert live(engine) == [0]


def test_deadlines_come_in_order_and_a_key_has_one() -> None:
    times: Deadlines[str] = Deadlines()
    for key, when in (("a", 3.0), ("b", 1.0), ("c", 1.0), ("a", 2.0), ("d", 5.0)):
        times.put(key, when)
    times.discard("d")
    times.discard("never")
    assert times.next() == 1.0
    assert times.take(0.5) is None
    assert [times.take(9.0) for _ in range(4)] == ["b", "c", "a", None]
    assert times.next() is None
