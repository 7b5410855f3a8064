"""Restoring an image: the whole state comes back, index, revision and epoch only rise, revived rows are reported."""

import itertools
from typing import Any

import msgspec
import numpy as np
import pytest

from core.apply.restore import JUMP
from core.engine import Engine
from core.errors import CheckpointCorrupt, Compacted, EpochMismatch, LeaseLost
from core.events import Restored
from core.operations.changes import ChangesRequest, list_changes
from core.operations.checkpoints import Went, begin_history, image_of, restore
from core.operations.claim import Claimed, ClaimRequest, claim_now
from core.operations.clears import ClearRequest, abort_clear, plan_clear
from core.operations.consumption import Counts, counts_of, reset_consumption
from core.operations.delete import delete
from core.operations.leases import Ack, ack
from core.operations.partitions import await_partition, delete_partition, get_partition
from core.operations.revoke import revoke
from core.reading.batch import View
from core.reading.selectors import Selector
from core.runtime.calls import Preconditions
from core.samplers import Sequential, sampler
from core.snapshot.checkpoint_file import Saved, looked_through
from core.snapshot.image import image
from tests.core.running import Running, running
from tests.core.world import Book, add, add_keys, look, new_engine, write
from tests.model.compare import dump

P = "p"


def saved_of(engine: Engine) -> Saved:
    """A checkpoint as of now."""
    begin_history(engine)
    return looked_through(image_of(engine)[1])


def take(engine: Engine, count: int, lease_s: float | None = None) -> Claimed:
    answer = claim_now(engine, P, ClaimRequest("t", ("x",), count, 1, 0.0, Sequential(), View(), lease_s))
    assert isinstance(answer, Claimed)
    return answer


def filled() -> Engine:
    engine = new_engine()
    write(engine, P, add_keys(engine, P, list("abcdefgh")), ["x"])
    return engine


def without_time(engine: Engine) -> Any:
    """What is seen of the state but when it was."""
    return dump(engine, "revision", "epoch", "next_index", "key_history", "history", "replies", "changed_at")


def test_all_is_as_it_was_and_no_number_comes_again() -> None:
    engine = filled()
    take(engine, 2)
    lease = take(engine, 2, lease_s=60.0).lease
    assert lease is not None
    ack(engine, lease.claim_id, Ack(lease.token, None, [], []))
    plan_clear(engine, P, ClearRequest(Selector(keys=["h"])))
    saved = saved_of(engine)
    before, revision = without_time(engine), engine.revision
    add_keys(engine, "other", ["a", "b"])
    take(engine, 1)
    add_keys(engine, P, ["z"])
    last, index = engine.revision, engine.next_index
    went = restore(engine, saved, unproduced=False)
    assert without_time(engine) == before
    assert (went.epoch, engine.epoch) == (2, 2)
    assert went.burnt == (8, index - 1)
    assert (engine.revision, engine.next_index) == (last + 1, index)
    assert engine.revision_of(P) == last + 1 > revision
    assert add(engine, P, 1) == [index]
    assert ack(engine, lease.claim_id, Ack(lease.token, None, [], [])).accepted == 2


def test_what_was_leased_waits_for_anyone_and_was_not_handed_out() -> None:
    engine, book = filled(), Book()
    first, second = take(engine, 3, lease_s=86_400.0).lease, take(engine, 1, lease_s=86_400.0).lease
    assert first is not None
    assert second is not None
    ack(engine, first.claim_id, Ack(first.token, [0], [], []))
    clear = plan_clear(engine, P, ClearRequest(Selector(keys=["c"]))).clear.clear_id
    book.take(engine)
    saved = saved_of(engine)
    ack(engine, second.claim_id, Ack(second.token, None, [], []))
    restore(engine, saved, unproduced=False)
    assert counts_of(engine.partitions[P], "t") == Counts(1, 0, 0, 7, False)
    book.take(engine)
    for one in (engine, book.replayed()):
        assert (one.leases.open, one.leases.due()) == ({}, None)
        for lease, lost in ((first, [1, 2]), (second, [3])):
            with pytest.raises(LeaseLost) as refused:
                ack(one, lease.claim_id, Ack(lease.token, None, [], []))
            assert refused.value.global_indexes == lost
        again = take(one, 2, lease_s=1.0).lease
        assert again is not None
        assert (again.indexes.tolist(), again.attempts.tolist()) == ([1, 3], [1, 1])
        abort_clear(one, clear)
        back = take(one, 1, lease_s=1.0).lease
        assert back is not None
        assert (back.indexes.tolist(), back.attempts.tolist()) == ([2], [1])


def share(engine: Engine, name: str, rank: int, batch: int, lease_s: float | None = 60.0) -> Claimed:
    """Two rows of a sampler with memory."""
    split = {"dp_size": 2, "weight": "w"} if name == "seqlen_balanced" else {}
    chosen = sampler(name, {"dp_rank": rank, "batch_index": batch, **split})
    answer = claim_now(engine, P, ClaimRequest("t", ("x",), 2, 2, 0.0, chosen, View(), lease_s))
    assert isinstance(answer, Claimed)
    return answer


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *itertools.product(["rank_aware", "seqlen_balanced"], ["leased", "released", "accepted in part"]),
        ("seqlen_balanced", "not fetched"),
    ],
)
def test_shares_are_released_too_and_their_batch_is_new(name: str, how: str) -> None:
    engine = new_engine()
    write(engine, P, add(engine, P, 12, custom_meta=[b'{"w":1}'] * 12), ["x"])
    done = [share(engine, name, rank, 0) for rank in (0, 1)]
    for one in done:
        assert one.lease is not None
        ack(engine, one.claim_id, Ack(one.lease.token, None, [], []))
    held = share(engine, name, 0, 1, None if how == "not fetched" else 60.0)
    rows = held.batch.global_indexes.tolist()
    if held.lease is not None and how != "leased":
        accepted = rows[:1] if how == "accepted in part" else []
        ack(engine, held.claim_id, Ack(held.lease.token, accepted, rows[1:], []))
    consumed = counts_of(engine.partitions[P], "t").consumed
    restore(engine, saved_of(engine), unproduced=False)
    restore(engine, saved_of(engine), unproduced=False)
    assert counts_of(engine.partitions[P], "t") == Counts(consumed, 0, 0, 12, False)
    assert share(engine, name, 0, 0).claim_id == done[0].claim_id, "a batch that was accepted is told again"
    assert share(engine, name, 0, 1).claim_id != held.claim_id
    rest = ClaimRequest("t", ("x",), 12, 1, 0.0, Sequential(), View())
    taken = claim_now(engine, P, rest)
    assert isinstance(taken, Claimed)
    assert len(taken.batch.global_indexes) == 12 - consumed - {"rank_aware": 2, "seqlen_balanced": 4}[name]
    assert reset_consumption(engine, P, "t")[0] == 12
    assert len(take(engine, 12).batch.global_indexes) == 12


def test_a_restore_may_follow_one_that_forgot_all_there_was() -> None:
    engine = filled()
    held = share(engine, "rank_aware", 0, 0)
    for _ in range(2):
        restore(engine, saved_of(engine), unproduced=False)
    assert reset_consumption(engine, P, "t") == (0, engine.revision), "there is nothing to forget"
    again = share(engine, "rank_aware", 0, 0)
    assert again.batch.global_indexes.tolist() == held.batch.global_indexes.tolist()


def test_a_restore_of_an_older_journal_keeps_its_leases() -> None:
    engine = filled()
    lease = take(engine, 2, lease_s=60.0).lease
    assert lease is not None
    old = msgspec.msgpack.encode(["Restored", "", saved_of(engine).image])
    engine.commit(msgspec.msgpack.decode(old, type=Restored))
    assert ack(engine, lease.claim_id, Ack(lease.token, None, [], [])).accepted == 2


def test_a_claim_of_the_time_that_never_was_is_nobodys() -> None:
    engine = filled()
    saved = saved_of(engine)
    lease = take(engine, 2, lease_s=60.0).lease
    assert lease is not None
    restore(engine, saved, unproduced=False)
    with pytest.raises(Exception, match="no claim") as told:
        ack(engine, lease.claim_id, Ack(lease.token, None, [], []))
    assert not isinstance(told.value, LeaseLost)
    again = take(engine, 2, lease_s=60.0)
    assert again.lease is not None
    assert again.lease.claim_id != lease.claim_id


@pytest.fixture
def lost() -> tuple[Engine, Saved]:
    """Since it was saved: a, b were deleted, c is clearing, d was revoked, e revoked and produced again."""
    engine = filled()
    saved = saved_of(engine)
    delete(engine, P, Selector(keys=["a", "b"]))
    plan_clear(engine, P, ClearRequest(Selector(keys=["c"])))
    revoke(engine, P, Selector(keys=["d", "e"]), ("x",))
    write(engine, P, [4], ["x"])
    return engine, saved


def test_rows_whose_bytes_may_be_gone_are_told(lost: tuple[Engine, Saved]) -> None:
    engine, saved = lost
    went = restore(engine, saved, unproduced=False)
    assert went.revived.tolist() == [0, 1, 2, 3, 4]
    assert went.burnt is None
    assert look(engine, P, fields=["x"]).status.tolist() == [1] * 8


def test_they_are_as_if_never_produced_where_that_is_asked(lost: tuple[Engine, Saved]) -> None:
    engine, saved = lost
    assert len(restore(engine, saved, unproduced=True).revived) == 5
    assert look(engine, P, fields=["x"]).status.tolist() == [0] * 5 + [1] * 3
    assert take(engine, 8).batch.global_indexes.tolist() == [5, 6, 7]
    write(engine, P, [0, 1], ["x"])
    assert take(engine, 8).batch.global_indexes.tolist() == [0, 1]


def test_a_partition_deleted_since_is_back_and_all_of_it_may_be_gone() -> None:
    engine = filled()
    saved = saved_of(engine)
    delete_partition(engine, P, None)
    add_keys(engine, P, ["new"])
    assert restore(engine, saved, unproduced=False).revived.tolist() == list(range(8))
    assert get_partition(engine, P).num_samples == 8
    assert not engine.deleted


def test_one_made_since_is_gone_and_its_indexes_are_burnt() -> None:
    engine = filled()
    saved = saved_of(engine)
    add(engine, "late", 3)
    went = restore(engine, saved, unproduced=False)
    assert list(engine.partitions) == [P]
    assert (went.revived.tolist(), went.burnt) == ([], (8, 10))


def test_who_followed_its_keys_begins_anew() -> None:
    engine = filled()
    saved = saved_of(engine)
    seen = engine.revision_of(P)
    restore(engine, saved, unproduced=False)
    with pytest.raises(Compacted):
        list_changes(engine, P, ChangesRequest(seen))
    assert len(list_changes(engine, P, ChangesRequest(0)).lines) == 8
    assert list_changes(engine, P, ChangesRequest(engine.revision)).lines == []


@pytest.mark.parametrize("was_deleted", [False, True])
def test_who_followed_one_that_is_gone_begins_anew_where_it_is_made_again(was_deleted: bool) -> None:
    engine = new_engine()
    if was_deleted:
        add_keys(engine, P, ["first"])
        delete_partition(engine, P, None)
    saved = saved_of(engine)
    add_keys(engine, P, ["old"])
    seen = engine.revision_of(P)
    restore(engine, saved, unproduced=False)
    gone = engine.revision
    assert engine.revision_of(P) == (gone if was_deleted else 0)
    add(engine, "another")
    add_keys(engine, P, ["new"])
    with pytest.raises(Compacted):
        list_changes(engine, P, ChangesRequest(seen))
    assert len(list_changes(engine, P, ChangesRequest(0)).lines) == 1
    if was_deleted:
        assert len(list_changes(engine, P, ChangesRequest(gone)).lines) == 1


def test_rows_with_a_time_have_it_anew() -> None:
    engine = new_engine()
    add_keys(engine, P, ["a"], ttl_s=10.0)
    saved = saved_of(engine)
    engine.clock.now += 9.0  # type: ignore[attr-defined]
    restore(engine, saved, unproduced=False)
    assert engine.ttl_deadlines.next() == 19.0


def test_where_the_history_is_not_here_all_three_go_far_beyond() -> None:
    engine = filled()
    saved = saved_of(engine)
    other = new_engine()
    add(other, "own", 3)
    went = restore(other, saved, unproduced=True)
    assert (went.epoch, other.next_index, other.revision) == (1 + JUMP, 8 + JUMP, saved.revision + JUMP)
    assert went.burnt == (8, 7 + JUMP)
    assert went.revived.tolist() == []
    assert look(other, P, fields=["x"]).status.all()
    # From here on it is a history that goes on: another restore is no jump.
    again = restore(other, saved_of(other), unproduced=False)
    assert (again.epoch, other.next_index) == (2 + JUMP, 8 + JUMP)


def test_the_journal_holds_a_restore_whole() -> None:
    engine, book = filled(), Book()
    book.take(engine)
    saved = saved_of(engine)
    delete(engine, P, Selector(keys=["a"]))
    restore(engine, saved, unproduced=True)
    add(engine, P, 2)
    book.take(engine)
    assert image(book.replayed()) == image(engine)


def test_bytes_that_are_no_image_change_nothing() -> None:
    for data in (b"", b"\x90", msgspec.msgpack.encode([1] * 9), msgspec.msgpack.encode([["c", "Nothing"]] * 9)):
        with pytest.raises(CheckpointCorrupt):
            looked_through(data)


def test_ranges_and_counts_of_many_rows_take_no_step_for_each() -> None:
    engine = new_engine()
    add(engine, P, 65_536)
    saved = saved_of(engine)
    delete(engine, P, Selector(list(range(0, 65_536, 2))))
    assert np.array_equal(restore(engine, saved, unproduced=True).revived, np.arange(0, 65_536, 2))


@pytest.mark.asyncio
async def test_who_waits_or_is_of_another_epoch_is_refused() -> None:
    async with running() as service:
        saved = await _saved(service)
        waiting = service.executor.submit(await_partition, lambda found: found, P, 10**9, 60.0)
        await service.settle()
        went: Went = await service.executor.call(restore, lambda found: found, saved, False)
        with pytest.raises(EpochMismatch):
            await waiting
        for epoch, is_right in ((went.epoch - 1, False), (went.epoch + 1, False), (went.epoch, True)):
            call = service.executor.submit_on(
                Preconditions(epoch, None, lambda kept: kept), lambda _: 7, lambda found: found
            )
            if is_right:
                assert await call == 7
            else:
                with pytest.raises(EpochMismatch):
                    await call


async def _saved(service: Running) -> Saved:
    await service.executor.call(lambda engine: add(engine, P, 1), lambda found: found)
    await service.executor.call(begin_history, lambda found: found)
    _, data = await service.executor.call(image_of, lambda found: found)
    return looked_through(data)
