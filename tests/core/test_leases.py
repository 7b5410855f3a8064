"""Leases and time, on a clock that the test moves: expiry, extension, restart, and the account of all rows."""

from collections.abc import Generator

import msgspec
import numpy as np
import pytest

from core.arrays import pack
from core.engine import Engine
from core.errors import ClaimNotFound, Invalid, LeaseLost
from core.events import Settled
from core.operations.claim import Claimed, ClaimRequest, claim_now
from core.operations.clears import ClearRequest, abort_clear, plan_clear
from core.operations.consumption import counts_of, reset_consumption
from core.operations.delete import delete
from core.operations.leases import Ack, ack, expire, extend, get_claim, list_dead, release_worker
from core.operations.partitions import patch_partition
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import sampler
from core.state.leases import REMEMBERED, Leases, claim_id, number_of
from core.state.transitions import ACCEPTED, HELD, LOST
from tests.core.world import Book, Clock, add, new_engine, write
from tests.model.compare import dump

P = "p"


def ready(rows: int) -> Engine:
    engine = new_engine()
    write(engine, P, add(engine, P, rows), ["n"])
    return engine


def lease(engine: Engine, rows: int = 1, length_s: float = 10.0, worker: str | None = None) -> Claimed | None:
    wanted = ClaimRequest("t", ("n",), rows, rows, 0, sampler("sequential", {}), View(("n",)), length_s, worker)
    claimed = claim_now(engine, P, wanted)
    return claimed if isinstance(claimed, Claimed) else None


def rows_of(claimed: Claimed | None) -> list[int]:
    assert claimed is not None
    return claimed.batch.global_indexes.tolist()


def at(engine: Engine, now: float) -> None:
    """Time passes."""
    assert isinstance(engine.clock, Clock)
    engine.clock.now = now
    expire(engine, now)


def accept(claimed: Claimed | None, rows: list[int] | None = None) -> tuple[str, Ack]:
    assert claimed is not None
    assert claimed.lease is not None
    return claimed.claim_id, Ack(claimed.lease.token, rows, (), ())


def account(engine: Engine) -> tuple[int, int, int]:
    counts = counts_of(engine.partitions[P], "t")
    return counts.consumed, counts.leased, counts.dead


def test_at_its_deadline_a_lease_ends_and_its_rows_go_out_again() -> None:
    engine = ready(2)
    first = lease(engine, 2)
    at(engine, 9.9)
    assert lease(engine) is None
    at(engine, 10.0)
    with pytest.raises(LeaseLost) as refused:
        ack(engine, *accept(first))
    assert refused.value.global_indexes == [0, 1]
    second = lease(engine, 2)
    assert rows_of(second) == [0, 1]
    assert second is not None
    assert second.lease is not None
    assert second.lease.attempts.tolist() == [2, 2]


def test_accepted_rows_stay_when_the_rest_expires() -> None:
    engine = ready(3)
    first = lease(engine, 3)
    ack(engine, *accept(first, [1]))
    at(engine, 10.0)
    assert account(engine) == (1, 0, 0)
    assert rows_of(lease(engine, 2)) == [0, 2]
    assert ack(engine, *accept(first, [1])).accepted == 1


def test_an_extension_counts_from_now() -> None:
    engine = ready(1)
    first = lease(engine)
    assert first is not None
    assert first.lease is not None
    at(engine, 8.0)
    assert extend(engine, first.claim_id, first.lease.token, 10.0).expires_in_s == 10.0
    at(engine, 17.9)
    assert get_claim(engine, first.claim_id).open == 1
    at(engine, 18.0)
    assert get_claim(engine, first.claim_id).open == 0
    with pytest.raises(LeaseLost):
        extend(engine, first.claim_id, first.lease.token, 10.0)


def test_leases_end_in_the_order_of_their_deadlines() -> None:
    engine = ready(3)
    for length_s in (30.0, 10.0, 20.0):
        lease(engine, 1, length_s)
    assert engine.leases.due() == 10.0
    at(engine, 25.0)
    assert engine.leases.due() == 30.0
    assert account(engine) == (0, 1, 0)


def test_many_leases_that_end_at_one_moment_end_in_parts_and_none_is_kept_alive_meanwhile() -> None:
    engine = ready(5)
    held = [lease(engine) for _ in range(5)]
    revision = engine.revision
    assert isinstance(engine.clock, Clock)
    engine.clock.now = 10.0
    expire(engine, 10.0, most=2)
    assert engine.revision == revision + 1
    assert account(engine) == (0, 3, 0)
    assert engine.leases.due() == 10.0
    last = held[4]
    assert last is not None
    assert last.lease is not None
    with pytest.raises(LeaseLost):
        extend(engine, last.claim_id, last.lease.token, 60.0)
    with pytest.raises(LeaseLost):
        ack(engine, *accept(held[3]))
    assert account(engine) == (0, 1, 0)
    expire(engine, 10.0, most=2)
    assert account(engine) == (0, 0, 0)
    assert engine.leases.due() is None


def test_after_a_restart_each_live_lease_has_its_full_length_again() -> None:
    engine, book = ready(4), Book()
    first, second = lease(engine, 1), lease(engine, 1, 50.0)
    ack(engine, *accept(lease(engine, 1)))
    at(engine, 9.0)
    book.take(engine)
    replayed = book.replayed()
    assert dump(replayed.partitions) == dump(engine.partitions)
    assert sorted(replayed.leases.open) == sorted(engine.leases.open)
    assert replayed.leases.due() == 10.0
    at(replayed, 10.0)
    with pytest.raises(LeaseLost):
        ack(replayed, *accept(first))
    assert ack(replayed, *accept(second)).accepted == 1
    assert account(replayed) == (2, 0, 0)


def test_a_row_that_is_never_accepted_is_dead_after_its_attempts() -> None:
    engine = ready(1)
    patch_partition(engine, P, None, None, 3)
    for round_ in range(3):
        assert lease(engine, 1) is not None
        at(engine, 10.0 * (round_ + 1))
    assert lease(engine, 1) is None
    assert account(engine) == (0, 0, 1)
    (dead,) = list_dead(engine, P, "t")[1]
    assert (dead.global_index, dead.reason, dead.attempts) == (0, "max-attempts", 3)
    assert reset_consumption(engine, P, "t")[0] == 1
    assert rows_of(lease(engine, 1)) == [0]
    assert list_dead(engine, P, "t")[1] == []


def test_all_after_a_part_expired_is_refused_and_names_what_was_lost() -> None:
    engine, book = ready(4), Book()
    held = lease(engine, 4)
    assert held is not None
    assert held.lease is not None
    ack(engine, held.claim_id, Ack(held.lease.token, [0], [1], ()))
    at(engine, 10.0)
    book.take(engine)
    for one in (engine, book.replayed()):
        for said in (Ack(held.lease.token, None, (), ()), Ack(held.lease.token, None, [1], ())):
            revision = one.revision
            with pytest.raises(LeaseLost) as refused:
                ack(one, held.claim_id, said)
            assert (refused.value.global_indexes, one.revision) == ([2, 3], revision)
        with pytest.raises(LeaseLost) as refused:
            extend(one, held.claim_id, held.lease.token, 10.0)
        assert refused.value.global_indexes == [2, 3]
        assert ack(one, held.claim_id, Ack(held.lease.token, [0], [1], ())).accepted == 1


def test_all_said_again_is_answered_where_the_token_settled_every_row() -> None:
    engine = ready(3)
    held = lease(engine, 3)
    assert held is not None
    assert held.lease is not None
    ack(engine, held.claim_id, Ack(held.lease.token, (), [0], [(1, "empty")]))
    assert [ack(engine, *accept(held)).accepted for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(("end", "attempts"), [("release", 1), ("counts", 2), ("worker", 2), ("expiry", 2)])
def test_only_a_release_takes_its_attempt_back(end: str, attempts: int) -> None:
    engine, book = ready(2), Book()
    held = lease(engine, 1, worker="w")
    assert held is not None
    assert held.lease is not None
    if end == "worker":
        release_worker(engine, "w")
    elif end == "expiry":
        at(engine, 10.0)
    else:
        ack(engine, held.claim_id, Ack(held.lease.token, (), [0], (), counts=end == "counts"))
    book.take(engine)
    for one in (engine, book.replayed()):
        again = lease(one)
        assert again is not None
        assert again.lease is not None
        assert (rows_of(again), again.lease.attempts.tolist()) == ([0], [attempts])


def test_a_journal_from_before_attempts_were_taken_back_is_replayed_as_it_was_meant() -> None:
    engine = ready(1)
    held = lease(engine)
    assert held is not None
    old = msgspec.msgpack.encode(
        ["Settled", P, held.lease.number if held.lease else 0, b"", pack(np.array([0])), b"", [], b""]
    )
    engine.commit(msgspec.msgpack.decode(old, type=Settled))
    again = lease(engine)
    assert again is not None
    assert again.lease is not None
    assert again.lease.attempts.tolist() == [2]


def test_a_cleared_row_leaves_its_lease_and_the_others_stay() -> None:
    engine = ready(3)
    first = lease(engine, 3)
    delete(engine, P, Selector([1]))
    assert get_claim(engine, first.claim_id if first else "").open == 2
    with pytest.raises(LeaseLost) as refused:
        ack(engine, *accept(first, [0, 1, 2]))
    assert refused.value.global_indexes == [1]
    assert ack(engine, *accept(first)).accepted == 2
    assert account(engine) == (2, 0, 0)


def test_what_is_left_of_a_group_settles_whole() -> None:
    engine = new_engine()
    write(engine, P, add(engine, P, 4, group_ids=["g", "g", "h", "h"]), ["n"])
    groups = sampler("grpo_group", {"n_samples_per_prompt": 2})
    claimed = claim_now(engine, P, ClaimRequest("t", ("n",), 4, 4, 0, groups, View(("n",)), 10.0))
    assert isinstance(claimed, Claimed)
    delete(engine, P, Selector([1]))
    with pytest.raises(Invalid, match="part of a group"):
        ack(engine, *accept(claimed, [2]))
    with pytest.raises(LeaseLost) as refused:
        ack(engine, *accept(claimed, [1]))
    assert refused.value.global_indexes == [1]
    assert ack(engine, *accept(claimed, [0])).accepted == 1
    assert ack(engine, *accept(claimed)).accepted == 2
    assert account(engine) == (3, 0, 0)


def test_an_ack_that_names_nothing_changes_nothing() -> None:
    engine = ready(2)
    claimed = lease(engine, 2)
    revision = engine.revision
    assert (ack(engine, *accept(claimed, [])).open, engine.revision) == (2, revision)
    at(engine, 10.0)
    with pytest.raises(LeaseLost) as refused:
        ack(engine, *accept(claimed, []))
    assert refused.value.global_indexes == [0, 1]


def test_every_lost_row_is_named_whatever_the_ack_says_of_it() -> None:
    engine = ready(3)
    claimed = lease(engine, 3)
    delete(engine, P, Selector([0, 2]))
    assert claimed is not None
    assert claimed.lease is not None
    with pytest.raises(LeaseLost) as refused:
        ack(engine, claimed.claim_id, Ack(claimed.lease.token, [0, 1], [2], ()))
    assert sorted(refused.value.global_indexes) == [0, 2]


def test_a_reset_that_forgets_nothing_is_no_change() -> None:
    engine = ready(2)
    lease(engine, 1)
    at(engine, 10.0)
    assert reset_consumption(engine, P, "t") == (0, engine.revision)
    lease(engine, 1)
    delete(engine, P, Selector([0]))
    revision = engine.revision
    assert reset_consumption(engine, P, "t") == (0, revision)
    assert engine.revision == revision


def test_leases_outlive_the_closing_of_gaps() -> None:
    engine = ready(3000)
    held = lease(engine, 2)
    delete(engine, P, Selector(list(range(2, 2990))))
    assert engine.partitions[P].rows.capacity < 100
    assert ack(engine, *accept(held)).accepted == 2
    assert rows_of(lease(engine, 10)) == list(range(2990, 3000))


def test_a_dead_worker_lets_go_of_all_at_once() -> None:
    engine = ready(3)
    first, second = lease(engine, 1, 10.0, "w"), lease(engine, 1, 10.0, "w")
    lease(engine, 1, 10.0, "other")
    revision = engine.revision
    assert release_worker(engine, "w") == (2, [one.claim_id for one in (first, second) if one])
    assert engine.revision == revision + 1
    assert account(engine) == (0, 1, 0)


def test_of_a_worker_that_died_only_what_is_open_is_let_go() -> None:
    engine, book = ready(7), Book()
    patch_partition(engine, P, None, None, 2)
    one, several, two = lease(engine, 1, 10.0, "w"), lease(engine, 3, 10.0, "w"), lease(engine, 2, 10.0, "w")
    assert one is not None
    assert several is not None
    assert two is not None
    ack(engine, *accept(several, [2]))
    delete(engine, P, Selector([4]))
    assert release_worker(engine, "w") == (4, [one.claim_id, several.claim_id, two.claim_id])
    book.take(engine)
    for held, fates in ((one, [LOST]), (several, [LOST, ACCEPTED, LOST]), (two, [LOST, LOST])):
        assert held.lease is not None
        assert held.lease.fate.tolist() == fates
        with pytest.raises(LeaseLost):
            ack(engine, *accept(held, rows_of(held)))
    assert dump(book.replayed(), "token") == dump(engine, "token")
    assert rows_of(lease(engine, 5, 10.0, "w")) == [0, 1, 3, 5, 6]
    release_worker(engine, "w")
    dead = list_dead(engine, P, "t")[1]
    assert [(one.global_index, one.attempts) for one in dead] == [(0, 2), (1, 2), (3, 2), (5, 2)]


def test_a_row_that_is_clearing_was_handed_out_as_often_as_before() -> None:
    engine = ready(1)
    patch_partition(engine, P, None, None, 1)
    lease(engine, 1, 10.0, "w")
    clear = plan_clear(engine, P, ClearRequest(Selector([0])))
    assert not isinstance(clear, Generator)
    assert release_worker(engine, "w")[0] == 1
    abort_clear(engine, clear.clear.clear_id)
    assert [one.attempts for one in list_dead(engine, P, "t")[1]] == [1]


def test_the_last_closed_claims_are_remembered_and_older_ones_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert REMEMBERED == 10_000
    fewer = 100
    monkeypatch.setattr("core.state.leases.REMEMBERED", fewer)
    engine = ready(fewer + 1)
    first = lease(engine)
    ack(engine, *accept(first))
    for _ in range(fewer - 1):
        ack(engine, *accept(lease(engine)))
    assert ack(engine, *accept(first)).accepted == 1
    ack(engine, *accept(lease(engine)))
    with pytest.raises(ClaimNotFound):
        ack(engine, *accept(first))
    assert len(engine.leases.closed) == fewer


def test_the_account_adds_up_whatever_happens() -> None:
    engine, chance = ready(60), np.random.default_rng(7)
    held: list[Claimed] = []
    now = 0.0
    for _ in range(400):
        what = chance.integers(0, 5)
        claimed = lease(engine, int(chance.integers(1, 5)), float(chance.integers(1, 9))) if what < 2 else None
        if claimed is not None:
            held.append(claimed)
        elif what == 2 and held:
            _try_ack(engine, held.pop(int(chance.integers(0, len(held)))), chance)
        elif what == 3:
            now += float(chance.integers(0, 4))
            at(engine, now)
        elif what == 4:
            delete(engine, P, Selector([int(chance.integers(0, 60))]))
        _check(engine)


def _try_ack(engine: Engine, claimed: Claimed, chance: np.random.Generator) -> None:
    rows = claimed.batch.global_indexes.tolist()
    cut = int(chance.integers(0, len(rows) + 1))
    assert claimed.lease is not None
    try:
        ack(engine, claimed.claim_id, Ack(claimed.lease.token, rows[:cut], rows[cut:], ()))
    except LeaseLost:
        return


def _check(engine: Engine) -> None:
    partition = engine.partitions[P]
    task = partition.tasks.get("t")
    if task is None:
        return
    states = np.bincount(task.state[partition.rows.live()], minlength=5).tolist()
    assert states[HELD:] == [0, task.leased, task.consumed_live, task.dead]
    open_rows = [index for one in engine.leases.open.values() for index in one.open_rows().tolist()]
    assert len(set(open_rows)) == len(open_rows) == task.leased
    waiting = partition.supply("t", ("n",)).ready.count
    assert waiting + task.leased + task.consumed_live + task.dead == partition.rows.live_count


def test_a_claim_id_is_its_number_written_one_way() -> None:
    assert [number_of(claim_id(number)) for number in (1, 255, 2**40)] == [1, 255, 2**40]
    assert [number_of(text) for text in ("c01", "cFF", "c-1", "c", "x1", "c 1", "")] == [None] * 7
    assert Leases().find("c1") is None
