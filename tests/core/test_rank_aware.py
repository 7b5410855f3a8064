"""`rank_aware` and its memory: replays, ends of leases, clears, restarts, on a clock that the test moves."""

from typing import Any

import numpy as np
import pytest

from core.engine import Engine
from core.errors import Invalid, LeaseLost, SampleCleared, SampleClearing
from core.events import ShareTerms
from core.operations.claim import Claimed, ClaimRequest, NotClaimed, claim_now, explain_claim
from core.operations.clears import ClearRequest, abort_clear, commit_clear, plan_clear
from core.operations.consumption import counts_of, read_consumption, reset_consumption
from core.operations.delete import delete
from core.operations.expiry import expire
from core.operations.leases import Ack, ack, list_dead, release_worker
from core.operations.partitions import delete_partition, patch_partition, put_partition, seal_partition
from core.operations.revoke import revoke
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import sampler
from core.state.transitions import CONSUMED, HELD, LEASED
from tests.core.world import Book, Clock, add, new_engine, write
from tests.model.compare import dump

P = "p"


def ready(rows: int, partition: str = P, engine: Engine | None = None) -> Engine:
    engine = engine or new_engine()
    write(engine, partition, add(engine, partition, rows), ["n"])
    return engine


def wanted(rank: int, batch: int, size: int = 2, lease_s: float | None = 10.0, **more: Any) -> ClaimRequest:
    named = {"dp_rank": rank, "batch_index": batch} | more.pop("groups", {})
    chosen = sampler("rank_aware", named)
    fields = more.pop("fields", ("n",))
    least = more.pop("least", size)
    return ClaimRequest(more.pop("task", "t"), fields, size, least, 0, chosen, View(fields), lease_s, **more)


def take(engine: Engine, rank: int, batch: int, size: int = 2, partition: str = P, **more: Any) -> Claimed:
    claimed = claim_now(engine, partition, wanted(rank, batch, size, **more))
    assert isinstance(claimed, Claimed), claimed
    return claimed


def rows_of(claimed: Claimed) -> list[int]:
    return claimed.batch.global_indexes.tolist()


def seen(claimed: Claimed) -> tuple[str, str | None, list[int]]:
    """What every caller of a rank and batch must get alike."""
    return claimed.claim_id, claimed.lease.token if claimed.lease else None, rows_of(claimed)


def settle(engine: Engine, claimed: Claimed, **said: Any) -> Any:
    assert claimed.lease is not None
    words = {"accept": (), "release": (), "reject": ()} | said
    return ack(engine, claimed.claim_id, Ack(claimed.lease.token, **words))


def at(engine: Engine, now: float) -> None:
    assert isinstance(engine.clock, Clock)
    engine.clock.now = now
    expire(engine, now)


def account(engine: Engine) -> tuple[int, int, int]:
    counts = counts_of(engine.partitions[P], "t")
    return counts.consumed, counts.leased, counts.dead


@pytest.mark.parametrize("lease_s", [None, 10.0])
def test_a_rank_two_batches_ahead_no_row_twice_and_replays_alike(lease_s: float | None) -> None:
    engine = ready(12)
    ahead = [take(engine, 0, batch, lease_s=lease_s) for batch in range(3)]
    behind = [take(engine, 1, batch, lease_s=lease_s) for batch in range(3)]
    rows = [row for claimed in (*ahead, *behind) for row in rows_of(claimed)]
    assert rows == list(range(12))
    revision = engine.revision
    for rank, batches in enumerate((ahead, behind)):
        for batch, first in enumerate(batches):
            assert seen(take(engine, rank, batch, lease_s=lease_s, worker="another")) == seen(first)
    assert engine.revision == revision
    assert len({claimed.claim_id for claimed in (*ahead, *behind)}) == 6


def test_a_replay_says_what_is_left_of_the_lease_and_counts_no_attempt() -> None:
    engine = ready(2)
    first = take(engine, 0, 0, worker="w")
    assert (first.left_s, first.worker) == (10.0, "w")
    at(engine, 4.0)
    again = take(engine, 0, 0, worker="other")
    assert (again.left_s, again.worker) == (6.0, "w")
    assert again.lease is not None
    assert again.lease.attempts.tolist() == [1, 1]


@pytest.mark.parametrize("end", ["expiry", "release", "worker"])
def test_ended_rows_go_out_again_only_there_under_a_new_claim(end: str) -> None:
    engine = ready(4)
    first = take(engine, 0, 0, worker="w")
    if end == "expiry":
        at(engine, 10.0)
    elif end == "release":
        settle(engine, first, release=[0, 1])
    else:
        release_worker(engine, "w")
    assert rows_of(take(engine, 1, 0)) == [2, 3]
    nobody = claim_now(engine, P, wanted(0, 1, 1))
    assert isinstance(nobody, NotClaimed)
    assert (nobody.ready, account(engine)) == (0, (0, 4, 0))
    again = take(engine, 0, 0)
    assert rows_of(again) == [0, 1]
    assert again.claim_id != first.claim_id
    assert again.lease is not None
    assert first.lease is not None
    assert again.lease.token != first.lease.token
    attempt = 1 if end == "release" else 2
    assert again.lease.attempts.tolist() == [attempt, attempt]
    with pytest.raises(LeaseLost):
        settle(engine, first, accept=[0])
    assert settle(engine, again, accept=[0, 1]).accepted == 2


def test_no_other_sampler_gets_what_is_held() -> None:
    engine = ready(3)
    settle(engine, take(engine, 0, 0), release=[0, 1])
    plain = ClaimRequest("t", ("n",), 3, 1, 0, sampler("sequential", {}), View(("n",)))
    assert rows_of(claim_now(engine, P, plain)) == [2]  # type: ignore[arg-type]
    assert isinstance(claim_now(engine, P, plain), NotClaimed)


def test_accepted_rows_do_not_go_out_again_and_the_whole_batch_is_told_again() -> None:
    engine = ready(4)
    first = take(engine, 0, 0, 3)
    settle(engine, first, accept=[1])
    assert seen(take(engine, 0, 0, 3)) == seen(first)
    settle(engine, first, release=[0, 2])
    again = take(engine, 0, 0, 3)
    assert rows_of(again) == [0, 2]
    settle(engine, again, accept=None)
    told = take(engine, 0, 0, 3)
    assert (seen(told), told.left_s) == (seen(again), 0.0)
    assert settle(engine, told, accept=None).accepted == 2
    assert account(engine) == (3, 0, 0)


def test_what_is_dead_does_not_go_out_and_a_batch_of_the_dead_says_so() -> None:
    engine = ready(2)
    patch_partition(engine, P, None, None, 2)
    settle(engine, take(engine, 0, 0), reject=[(0, "empty")], release=[1], counts=True)
    settle(engine, take(engine, 0, 0), release=[1], counts=True)
    found = claim_now(engine, P, wanted(0, 0))
    assert isinstance(found, NotClaimed)
    assert [(b.reason, b.count) for b in found.blocking] == [("dead", 2), ("exhausted", 0)]
    assert [dead.reason for dead in list_dead(engine, P, "t")[1]] == ["empty", "max-attempts"]


@pytest.mark.parametrize("lease_s", [None, 10.0])
def test_rows_cleared_since_are_gone_for_their_key_and_no_others_take_their_place(lease_s: float | None) -> None:
    engine = ready(6)
    take(engine, 0, 0, lease_s=lease_s)
    delete(engine, P, Selector([1]))
    revision = engine.revision
    for _ in range(2):
        with pytest.raises(SampleCleared) as refused:
            take(engine, 0, 0, lease_s=lease_s)
        assert refused.value.global_indexes == [1]
    assert engine.revision == revision
    delete(engine, P, Selector([0]))
    with pytest.raises(SampleCleared) as refused:
        take(engine, 0, 0, lease_s=lease_s)
    assert refused.value.global_indexes == [0, 1]
    assert rows_of(take(engine, 0, 1, lease_s=lease_s)) == [2, 3]


@pytest.mark.parametrize("held", [False, True])
def test_of_a_batch_that_lost_a_row_the_others_go_back_to_all(held: bool) -> None:
    engine = ready(3)
    first = take(engine, 0, 0, 3)
    if held:
        settle(engine, first, release=[0, 1, 2])
    delete(engine, P, Selector([1]))
    at(engine, 10.0)
    assert account(engine) == (0, 0, 0)
    assert rows_of(take(engine, 1, 0)) == [0, 2]
    with pytest.raises(SampleCleared):
        take(engine, 0, 0, 3)


def test_a_clear_of_what_was_accepted_leaves_the_rest_to_its_key() -> None:
    engine = ready(3)
    settle(engine, take(engine, 0, 0, 3), accept=[1], release=[0, 2])
    delete(engine, P, Selector([1]))
    assert rows_of(take(engine, 0, 0, 3)) == [0, 2]


@pytest.mark.parametrize("gone", [[0], [0, 1]])
def test_an_accepted_batch_that_was_cleared_is_cleared_for_its_key(gone: list[int]) -> None:
    engine = ready(4)
    settle(engine, take(engine, 0, 0), accept=None)
    delete(engine, P, Selector(gone))
    with pytest.raises(SampleCleared) as refused:
        take(engine, 0, 0)
    assert refused.value.global_indexes == gone
    assert account(engine) == (2, 0, 0)


def test_a_batch_of_the_dead_says_so_after_they_were_cleared() -> None:
    engine = ready(4)
    settle(engine, take(engine, 0, 0), reject=[(0, "empty"), (1, "empty")])
    delete(engine, P, Selector([0]))
    assert isinstance(claim_now(engine, P, wanted(0, 0)), NotClaimed)


@pytest.mark.parametrize("lease_s", [None, 10.0])
def test_while_a_row_is_clearing_its_batch_waits_and_comes_back_with_an_abort(lease_s: float | None) -> None:
    engine = ready(4)
    first = take(engine, 0, 0, lease_s=lease_s)
    clear = plan_clear(engine, P, ClearRequest(Selector([1]))).clear.clear_id
    with pytest.raises(SampleClearing) as refused:
        take(engine, 0, 0, lease_s=lease_s)
    assert refused.value.global_indexes == [1]
    abort_clear(engine, clear)
    assert seen(take(engine, 0, 0, lease_s=lease_s)) == seen(first)


@pytest.mark.parametrize("end", ["abort", "commit"])
def test_what_ends_while_it_is_clearing_is_still_its_keys_or_everybodys(end: str) -> None:
    engine = ready(5)
    first = take(engine, 0, 0, 3)
    clear = plan_clear(engine, P, ClearRequest(Selector([1]))).clear.clear_id
    other = plan_clear(engine, P, ClearRequest(Selector([2]))).clear.clear_id
    settle(engine, first, release=[0, 1, 2])
    check(engine)
    with pytest.raises(SampleClearing):
        take(engine, 0, 0, 3)
    if end == "abort":
        abort_clear(engine, clear)
        abort_clear(engine, other)
        assert (account(engine), rows_of(take(engine, 0, 0, 3))) == ((0, 3, 0), [0, 1, 2])
    else:
        commit_clear(engine, clear)
        check(engine)
        abort_clear(engine, other)
        assert (account(engine), rows_of(take(engine, 1, 0, 4))) == ((0, 0, 0), [0, 2, 3, 4])
        with pytest.raises(SampleCleared):
            take(engine, 0, 0, 3)
    check(engine)


def test_a_batch_that_lost_bytes_goes_out_again_once_they_are_back() -> None:
    engine = ready(2)
    first = take(engine, 0, 0)
    revoke(engine, P, Selector([1]), ("n",))
    assert seen(take(engine, 0, 0)) == seen(first)
    settle(engine, first, release=[0, 1])
    found = claim_now(engine, P, wanted(0, 0))
    assert isinstance(found, NotClaimed)
    assert [(b.reason, b.count) for b in found.blocking if b.reason != "exhausted"] == [
        ("not-produced", 1),
        ("leased", 2),
    ]
    write(engine, P, [1], ["n"])
    assert rows_of(take(engine, 0, 0)) == [0, 1]


def test_other_terms_under_the_same_key_are_refused_and_change_nothing() -> None:
    engine = ready(6)
    write(engine, P, range(6), ["m"])
    first = take(engine, 0, 0)
    before = dump(engine)
    for loc, more in (
        ("body.fields", {"fields": ("n", "m")}),
        ("body.batch_size", {"size": 3}),
        ("body.ack", {"lease_s": None}),
    ):
        with pytest.raises(Invalid) as refused:
            take(engine, 0, 0, **more)  # type: ignore[arg-type]
        assert [where for where, _ in refused.value.errors] == [loc]
        with pytest.raises(Invalid):
            explain_claim(engine, P, wanted(0, 0, **more))  # type: ignore[arg-type]
    assert dump(engine) == before
    assert seen(take(engine, 0, 0, fields=("n", "n"), lease_s=99.0, least=1)) == seen(first)


def test_a_batch_cut_short_at_its_deadline_stays_as_it_is() -> None:
    engine = ready(1)
    first = take(engine, 0, 0, 4, least=1)
    assert rows_of(first) == [0]
    ready(8, engine=engine)
    assert seen(take(engine, 0, 0, 4)) == seen(first)
    assert rows_of(take(engine, 0, 1, 4)) == [1, 2, 3, 4]


def test_the_last_rows_of_a_sealed_partition_go_out_and_what_is_held_keeps_it_from_done() -> None:
    engine = ready(5)
    seal_partition(engine, P)
    first, last = take(engine, 0, 0, 4), take(engine, 1, 0, 4)
    assert (rows_of(first), rows_of(last)) == ([0, 1, 2, 3], [4])
    settle(engine, last, accept=None)
    at(engine, 10.0)
    assert not counts_of(engine.partitions[P], "t").done
    settle(engine, take(engine, 0, 0, 4), accept=None)
    assert counts_of(engine.partitions[P], "t").done
    assert rows_of(take(engine, 1, 0, 4)) == [4]


@pytest.mark.parametrize("lease_s", [None, 10.0])
def test_a_restart_remembers_all_of_it(lease_s: float | None) -> None:
    engine, book = ready(8), Book()
    claims = [take(engine, rank, 0, lease_s=lease_s) for rank in range(3)]
    if lease_s is not None:
        settle(engine, claims[0], accept=None)
        settle(engine, claims[1], accept=[2], release=[3])
    delete(engine, P, Selector([0]))
    book.take(engine)
    replayed = book.replayed()
    assert dump(replayed.partitions) == dump(engine.partitions)
    assert seen(take(replayed, 2, 0, lease_s=lease_s)) == seen(claims[2])
    with pytest.raises(SampleCleared):
        take(replayed, 0, 0, lease_s=lease_s)
    if lease_s is not None:
        assert rows_of(take(replayed, 1, 0)) == [3]
    assert rows_of(take(replayed, 0, 1, lease_s=lease_s)) == [6, 7]


def test_memory_outlives_the_closing_of_gaps_and_growth() -> None:
    engine = ready(3000)
    first = take(engine, 0, 0)
    gone = take(engine, 1, 0, 2988)
    last = take(engine, 2, 0)
    delete(engine, P, Selector(rows_of(gone)))
    assert engine.partitions[P].rows.capacity < 100
    ready(4000, engine=engine)
    far = take(engine, 3, 0, 4000)
    for claimed in (first, last, far):
        settle(engine, claimed, release=rows_of(claimed))
    assert rows_of(take(engine, 4, 0, 8)) == list(range(6992, 7000))
    for rank, size, claimed in ((0, 2, first), (2, 2, last), (3, 4000, far)):
        assert rows_of(take(engine, rank, 0, size)) == rows_of(claimed)


def test_a_claim_closed_long_ago_is_still_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.state.leases.REMEMBERED", 1)
    engine = ready(8)
    first = take(engine, 0, 0)
    settle(engine, first, accept=None)
    for batch in (1, 2, 3):
        settle(engine, take(engine, 0, batch), accept=None)
    assert seen(take(engine, 0, 0)) == seen(first)


def test_reset_forgets_and_the_end_of_the_partition_too() -> None:
    engine = ready(4)
    first = take(engine, 0, 0)
    assert reset_consumption(engine, P, "t")[0] == 2
    again = take(engine, 0, 0, 3)
    assert (rows_of(again), again.claim_id != first.claim_id) == ([0, 1, 2], True)
    delete_partition(engine, P, None)
    put_partition(engine, P, None, None, None, {})
    ready(4, engine=engine)
    assert rows_of(take(engine, 0, 0)) == [4, 5]


def test_reset_forgets_memory_of_which_every_row_was_cleared() -> None:
    engine = ready(2)
    take(engine, 0, 0, lease_s=None)
    delete(engine, P, Selector([0, 1]))
    reset_consumption(engine, P, None)
    ready(2, engine=engine)
    assert rows_of(take(engine, 0, 0, lease_s=None)) == [2, 3]


def test_partitions_and_tasks_never_mix() -> None:
    engine = ready(4, "other", ready(4))
    here, there = take(engine, 0, 0), take(engine, 0, 0, partition="other")
    assert (rows_of(here), rows_of(there)) == ([0, 1], [4, 5])
    assert rows_of(take(engine, 0, 0, 3, task="u")) == [0, 1, 2]
    assert seen(take(engine, 0, 0, partition="other")) == seen(there)


def test_explain_tells_of_the_key_and_changes_nothing() -> None:
    engine = ready(5)
    first = take(engine, 0, 0)
    before = dump(engine)
    assert explain_claim(engine, P, wanted(0, 0)).ready == 2
    assert explain_claim(engine, P, wanted(0, 1)).ready == 3
    assert dump(engine) == before
    settle(engine, first, accept=[0], release=[1])
    assert explain_claim(engine, P, wanted(0, 0)).ready == 1


def test_the_account_adds_up_whatever_happens() -> None:
    engine, chance, now = ready(80), np.random.default_rng(11), 0.0
    patch_partition(engine, P, None, None, 3)
    held: list[Claimed] = []
    for _ in range(600):
        what = chance.integers(0, 6)
        if what < 3:
            held += _try(engine, chance)
        elif what == 3 and held:
            _settle_some(engine, held.pop(int(chance.integers(0, len(held)))), chance)
        elif what == 4:
            now += float(chance.integers(0, 4))
            at(engine, now)
        elif chance.integers(0, 4) == 0:
            delete(engine, P, Selector([int(chance.integers(0, 80))]))
        check(engine)


def _try(engine: Engine, chance: np.random.Generator) -> list[Claimed]:
    one = wanted(int(chance.integers(0, 3)), int(chance.integers(0, 12)), 3, 8.0)
    try:
        claimed = claim_now(engine, P, one)
    except SampleCleared:
        return []
    return [claimed] if isinstance(claimed, Claimed) else []


def _settle_some(engine: Engine, claimed: Claimed, chance: np.random.Generator) -> None:
    rows = rows_of(claimed)
    cut = int(chance.integers(0, len(rows) + 1))
    try:
        settle(engine, claimed, accept=rows[:cut], release=rows[cut:])
    except LeaseLost:
        return


def check(engine: Engine) -> None:
    """Every live row is in one place, and what is leased is open in one claim or held for one share."""
    partition = engine.partitions[P]
    task = partition.tasks.get("t")
    if task is None:
        return
    everything = partition.rows.live()
    states = np.bincount(task.state[everything], minlength=5).tolist()
    assert (states[HELD] + states[LEASED], states[CONSUMED:]) == (task.leased, [task.consumed_live, task.dead])
    held = partition.rows.global_index[everything[task.is_held(everything)]].tolist()
    assert len(held) == states[HELD]
    open_rows = [index for one in engine.leases.open.values() for index in one.open_rows().tolist()]
    assert len(set(open_rows)) == len(open_rows)
    assert not set(open_rows) & set(held)
    assert len(open_rows) + len(held) == task.leased
    waiting = partition.supply("t", ("n",)).ready.count
    assert waiting + task.leased + task.consumed_live + task.dead == partition.rows.live_count
    consumed = read_consumption(engine, P, "t", True, 1, None).counts.consumed
    assert consumed == task.consumed_live + task.consumed_cleared


PAIRS = {"n_samples_per_prompt": 2}
WINDOWS = PAIRS | {"group_by": "position"}


def test_whole_groups_go_to_a_rank_and_settle_so() -> None:
    engine = new_engine()
    ids = ["a", "b", "b", "c", None, "c", "a", "d"]
    write(engine, P, add(engine, P, 8, group_ids=ids), ["n"])
    first, second = take(engine, 0, 0, groups=PAIRS), take(engine, 1, 0, groups=PAIRS)
    assert (rows_of(first), rows_of(second)) == ([0, 6], [1, 2])
    assert seen(take(engine, 0, 0, groups=PAIRS)) == seen(first)
    with pytest.raises(Invalid, match="group"):
        settle(engine, first, accept=[0])
    settle(engine, first, release=[0, 6])
    again = take(engine, 0, 0, groups=PAIRS)
    assert (rows_of(again), again.claim_id != first.claim_id) == ([0, 6], True)
    assert rows_of(take(engine, 0, 1, groups=PAIRS)) == [3, 5]
    found = claim_now(engine, P, wanted(0, 2, groups=PAIRS))
    assert isinstance(found, NotClaimed)
    assert [(b.reason, b.count, b.global_indexes) for b in found.blocking if b.reason.startswith("group")] == [
        ("group-incomplete", 2, (4, 7))
    ]


def test_groups_by_position_are_consecutive_rows_and_a_gap_is_never_whole() -> None:
    engine = ready(8)
    delete(engine, P, Selector(indexes=[2]))
    claims = [take(engine, rank, 0, groups=WINDOWS) for rank in range(3)]
    assert list(map(rows_of, claims)) == [[0, 1], [4, 5], [6, 7]]
    assert isinstance(claim_now(engine, P, wanted(3, 0, groups=WINDOWS)), NotClaimed)


def test_a_batch_of_a_rank_is_whole_groups_also_where_less_is_enough() -> None:
    engine = ready(5)
    with pytest.raises(Invalid, match="multiple of n_samples_per_prompt=2"):
        wanted(0, 0, 3, groups=WINDOWS)
    assert rows_of(take(engine, 0, 0, 6, least=1, groups=WINDOWS)) == [0, 1, 2, 3]


def test_all_claims_of_a_rank_and_batch_name_the_same_groups() -> None:
    engine = ready(8)
    take(engine, 0, 0, groups=WINDOWS)
    for other, told in (({}, "n_samples_per_prompt: is 1, and .* said 2"), (PAIRS, "group_by: is group_id")):
        with pytest.raises(Invalid, match=told):
            claim_now(engine, P, wanted(0, 0, groups=other))


def test_what_an_older_journal_remembers_of_a_rank_is_of_groups_of_one() -> None:
    engine = ready(4)
    first = take(engine, 0, 0)
    memory = engine.partitions[P].tasks["t"].memory
    assert memory is not None
    (kept,) = memory.allotments.values()
    kept.terms = ShareTerms(kept.terms.fields, kept.terms.batch_size, kept.terms.ack, b"{}")
    assert seen(take(engine, 0, 0)) == seen(first)
    with pytest.raises(Invalid, match="n_samples_per_prompt: is 2"):
        claim_now(engine, P, wanted(0, 0, groups=PAIRS))
