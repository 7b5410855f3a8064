"""The audit finds what it is there to find: bugs planted in the engine, and histories that should never be."""

import itertools
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from core.apply.table import EVENTS
from core.apply.tasks import settle
from core.arrays import pack
from core.engine import Engine
from core.errors import Refused
from core.events import (
    Allotted,
    AnyEvent,
    Change,
    ClearAborted,
    ClearCommitted,
    Cleared,
    ClearPlanned,
    Consumed,
    CustomMetaSet,
    Expired,
    Extended,
    Inserted,
    Leased,
    PartitionDeleted,
    PartitionMade,
    Produced,
    Reset,
    Revoked,
    Settled,
    ShareTerms,
)
from core.operations.claim import Claimed, ClaimRequest, claim_now
from core.operations.clears import ClearRequest, abort_clear, commit_clear, plan_clear
from core.operations.consumption import counts_of, reset_consumption
from core.operations.delete import delete
from core.operations.leases import Ack, ack, expire, extend, release_worker
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import Sampler, sampler
from core.state.partition import Partition
from core.state.service import ServiceState
from core.state.supply.shared import Ready
from core.state.tasks import Task
from core.state.transitions import FREE, HELD
from tests.core.world import Clock, add, new_engine, write
from tests.histories.audit import Audit
from tests.histories.books import Broken

P, TASKS = "p", ("t", "u")


def audited(engine: Engine, audit: Audit) -> None:
    """The audit has seen all that happened, and the service's own counts are the audit's."""
    for change in engine.log:
        audit.take(change)
    engine.log.clear()
    audit.check_states()
    for task in engine.partitions[P].tasks:
        counts = counts_of(engine.partitions[P], task)
        allocated, waiting, leased, consumed, dead, clearing, cleared = audit.account(P, task)
        rows = engine.partitions[P].rows
        live = rows.live_count
        gone = allocated - rows.held_count
        assert (allocated, cleared, clearing) == (rows.inserted, gone, rows.clearing_count)
        assert (leased, dead) == (counts.leased, counts.dead)
        assert waiting + leased + consumed + dead == live


def live_through(seed: int) -> None:
    """Random claims, acks, extensions, time, deletes and resets of two tasks, audited after each."""
    print(f"seed {seed}")  # noqa: T201  (to run it again)
    engine, audit, chance = new_engine(), Audit(), random.Random(seed)
    held: list[Claimed] = []
    for _ in range(150):
        with suppress(Refused):
            _something(engine, chance, held)
        if P in engine.partitions:
            audited(engine, audit)


def _something(engine: Engine, chance: random.Random, held: list[Claimed]) -> None:
    what = chance.choice(
        ["add", "claim", "ack", "clear"] * 2 + ["claim", "time", "extend", "delete", "reset", "worker"]
    )
    if what == "add" or P not in engine.partitions:
        count = chance.randint(1, 4)
        write(engine, P, add(engine, P, count, custom_meta=[b'{"w":1}'] * count), ["n"])
    elif what == "claim":
        held += _claim(engine, chance)
    elif what in ("ack", "extend"):
        _settle(engine, chance, what, held)
    else:
        _ELSE[what](engine, chance)


def _pass_time(engine: Engine, chance: random.Random) -> None:
    assert isinstance(engine.clock, Clock)
    engine.clock.now += chance.randint(1, 4)
    expire(engine, engine.clock.now)


def _delete(engine: Engine, chance: random.Random) -> None:
    delete(engine, P, _one(engine, chance))


def _one(engine: Engine, chance: random.Random) -> Selector:
    """One of the last rows: they are the ones that are held."""
    return Selector([chance.randrange(max(0, engine.next_index - 12), engine.next_index)])


def _reset(engine: Engine, chance: random.Random) -> None:
    if chance.random() < 0.3:
        reset_consumption(engine, P, chance.choice(TASKS))


def _release(engine: Engine, chance: random.Random) -> None:
    release_worker(engine, chance.choice("vw"))


def _clear(engine: Engine, chance: random.Random) -> None:
    """Plan one, or end one that is pending."""
    pending = list(engine.clears.pending.values())
    if pending and chance.random() < 0.5:
        end = commit_clear if chance.random() < 0.5 else abort_clear
        end(engine, chance.choice(pending).clear_id)
    else:
        plan_clear(engine, P, ClearRequest(_one(engine, chance)))


_ELSE = {"time": _pass_time, "delete": _delete, "reset": _reset, "worker": _release, "clear": _clear}


def _claim(engine: Engine, chance: random.Random) -> list[Claimed]:
    size, length_s = chance.randint(1, 4), chance.choice([None, 3.0, 9.0])
    chosen = sampler("sequential", {})
    if chance.random() < 0.4:
        chosen, size, length_s = _by_rank(chance)
    wanted = ClaimRequest(chance.choice(TASKS), ("n",), size, 1, 0, chosen, View(("n",)), length_s, chance.choice("vw"))
    claimed = claim_now(engine, P, wanted)
    return [claimed] if isinstance(claimed, Claimed) else []


def _by_rank(chance: random.Random) -> tuple[Sampler, int, float | None]:
    """(sampler, rows, seconds): the last two go with the batch, for a replay must say what was said first."""
    batch = chance.randrange(6)
    named = {"dp_rank": chance.randint(0, 1), "batch_index": batch}
    balanced = {**named, "dp_size": 2, "weight": "w"}
    chosen = sampler("seqlen_balanced", balanced) if batch % 2 else sampler("rank_aware", named)
    return chosen, 1 + batch % 3, None if batch == 0 else 3.0


def _settle(engine: Engine, chance: random.Random, what: str, held: list[Claimed]) -> None:
    claimed = chance.choice(held[-5:]) if held else None
    if claimed is None or claimed.lease is None:
        return
    if what == "extend":
        extend(engine, claimed.claim_id, claimed.lease.token, 5.0)
        return
    rows = claimed.lease.indexes.tolist()
    fates = {index: chance.choice(["accept", "release", "reject", ""]) for index in rows}
    by_fate = {fate: [index for index in rows if fates[index] == fate] for fate in ("accept", "release", "reject")}
    reject = [(index, "bad") for index in by_fate["reject"]]
    ack(engine, claimed.claim_id, Ack(claimed.lease.token, by_fate["accept"], by_fate["release"], reject))


@pytest.mark.parametrize("seed", range(6))
def test_the_laws_hold_whatever_happens(seed: int) -> None:
    live_through(seed)


def forgets_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is leased stays on offer."""
    monkeypatch.setattr(Partition, "states_for", lambda self, name: None)


def offers_accepted_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accepted rows go back to those that can be had."""

    def wrong(state: ServiceState, event: Settled) -> None:
        partition = state.partitions[event.partition]
        lease = partition.leases[event.number]
        settle(state, event)
        rows = partition.rows.locate(np.frombuffer(event.accepted, "<i8"))
        partition.tasks[lease.task].state[rows] = FREE
        partition.supplies.gave(lease.task, rows)

    monkeypatch.setattr("core.apply.table.EVENTS", {**EVENTS, Settled: wrong})


def expires_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """An expired lease takes rows with it that were settled before."""
    monkeypatch.setattr("core.state.leases.Lease.open_rows", lambda self: self.indexes)


def forgets_who_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a deleted row the lease still says that it is held."""
    drop = Task.drop

    def wrong(self: Task, rows: Any, indexes: Any) -> Any:
        return drop(self, rows, indexes)[:0]

    monkeypatch.setattr(Task, "drop", wrong)


def offers_clearing_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is clearing can still be had."""
    refresh = Ready.refresh

    def wrong(self: Ready, table: Any, touched: Any, most: int) -> bool:
        is_over = refresh(self, table, touched, most)
        rows = table.rows.clearing()
        self.marks.touch(self.rows.add(rows[table.status.complete(rows, self.mask) == 1]))
        return is_over

    monkeypatch.setattr(Ready, "refresh", wrong)


def seen_as_free(monkeypatch: pytest.MonkeyPatch, which: Callable[[Task], Any]) -> None:
    """Those rows of a task can be had."""

    def wrong(self: Partition, name: str) -> Any:
        task = self.tasks.get(name)
        return None if task is None else np.where(which(task), FREE, task.state)

    monkeypatch.setattr(Partition, "states_for", wrong)


def offers_what_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is released can be had by all, though it is held for its rank."""
    seen_as_free(monkeypatch, lambda task: (task.state == HELD) & (task.attempts_of(np.arange(len(task.state))) > 0))


def forgets_to_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of shares that nobody fetched stay on offer."""
    seen_as_free(monkeypatch, lambda task: task.state == HELD)


@pytest.mark.parametrize(
    "bug",
    [
        forgets_leases,
        offers_accepted_rows,
        expires_too_much,
        forgets_who_holds,
        offers_clearing_rows,
        offers_what_is_set_aside,
        forgets_to_set_aside,
    ],
    ids=lambda bug: bug.__name__,
)
def test_a_bug_in_the_engine_is_found(
    monkeypatch: pytest.MonkeyPatch, bug: Callable[[pytest.MonkeyPatch], None]
) -> None:
    bug(monkeypatch)
    with pytest.raises(Broken, match="at revision"):
        list(map(live_through, range(6)))


# Histories that should never be


def packed(*indexes: int) -> bytes:
    return pack(np.array(indexes, np.int64))


def leased(number: int, *indexes: int, token: str = "", share: int = 0) -> Leased:
    return Leased(P, "t", packed(*indexes), number, token or f"token-{number}", None, 10.0, 1, share)


def settled(number: int, accepted: bytes = b"", released: bytes = b"") -> Settled:
    return Settled(P, number, accepted, released, b"", [], b"")


def set_aside(key: str, *shares: list[int]) -> Allotted:
    return Allotted(P, "t", key, ShareTerms(("n",), 1, "explicit", b"{}"), [packed(*share) for share in shares])


def planned(number: int, *indexes: int) -> ClearPlanned:
    return ClearPlanned(P, number, packed(*indexes), False, 0.0)


BEGIN: list[AnyEvent] = [PartitionMade(P, 0.0), Inserted(P, 0, 3, None)]
BAD: dict[str, list[AnyEvent]] = {
    "two leases of one row": [leased(3, 0, 1), leased(4, 1, 2)],
    "consumed twice": [Consumed(P, "t", packed(0)), Consumed(P, "t", packed(0))],
    "leased after it was consumed": [Consumed(P, "t", packed(0)), leased(4, 0)],
    "accepted twice": [leased(3, 0), settled(3, packed(0)), settled(3, packed(0))],
    "settled by another": [leased(3, 0), leased(4, 1), settled(4, packed(0))],
    "settled after a reset": [leased(3, 0), Reset(P, "t"), settled(3, packed(0))],
    "settled after a delete": [leased(3, 0, 1), Cleared(P, packed(0)), settled(3, packed(0, 1))],
    "extended after its end": [leased(3, 0), settled(3, b"", packed(0)), Extended(P, 3, 5.0)],
    "a token twice": [leased(3, 0, token="x"), leased(4, 1, token="x")],
    "a number that is no revision": [leased(7, 0)],
    "an index given out again": [Inserted(P, 2, 1, None)],
    "a cleared row is patched": [Cleared(P, packed(0)), CustomMetaSet(P, packed(0), [b"{}"])],
    "cleared twice": [Cleared(P, packed(0)), Cleared(P, packed(0))],
    "leased while it is clearing": [planned(3, 0), leased(4, 0)],
    "patched while it is clearing": [planned(3, 0), CustomMetaSet(P, packed(0), [b"{}"])],
    "cleared by two": [planned(3, 0), planned(4, 0)],
    "committed twice": [planned(3, 0), ClearCommitted(P, 3), ClearCommitted(P, 3)],
    "aborted after its commit": [planned(3, 0), ClearCommitted(P, 3), ClearAborted(P, 3)],
    "accepted after the commit": [leased(3, 0, 1), planned(4, 0), ClearCommitted(P, 4), settled(3, packed(0))],
    "expired after it was produced": [Produced(P, packed(0), b"", b"", []), Expired(P, packed(0))],
    "expired while it is leased": [leased(3, 0), Expired(P, packed(0))],
    "revoked after it was cleared": [Cleared(P, packed(0)), Revoked(P, packed(0), ["n"])],
    "set aside while it is leased": [leased(3, 0), set_aside("k", [0])],
    "set aside after it was cleared": [Cleared(P, packed(0)), set_aside("k", [0])],
    "set aside for two": [set_aside("k", [0]), set_aside("l", [0])],
    "set aside twice in one": [set_aside("k", [0], [0])],
    "a key twice": [set_aside("k", [0]), set_aside("k", [1])],
    "leased to others while it is set aside": [set_aside("k", [0]), leased(4, 0)],
    "consumed by others while it is set aside": [set_aside("k", [0]), Consumed(P, "t", packed(0))],
    "leased to another key": [set_aside("k", [0]), set_aside("l", [1]), leased(5, 0, share=2)],
    "consumed by another key": [set_aside("k", [0]), set_aside("l", [1]), Consumed(P, "t", packed(0), 2)],
    "a share that nobody made": [set_aside("k", [0]), leased(4, 1, share=2)],
    "a part of a share": [set_aside("k", [0, 1]), leased(4, 0, share=1)],
    "a share that is out goes out": [set_aside("k", [0]), leased(4, 0, share=1), leased(5, 0, share=1)],
    "released by one key, leased to others": [
        set_aside("k", [0]),
        leased(4, 0, share=1),
        settled(4, b"", packed(0)),
        leased(6, 0),
    ],
    "a share after a reset": [set_aside("k", [0]), Reset(P, "t"), leased(5, 0, share=1)],
    "a share that lost a row": [set_aside("k", [0, 1]), Cleared(P, packed(0)), leased(5, 1, share=1)],
    "a share while a row is clearing": [set_aside("k", [0, 1]), planned(4, 0), leased(5, 0, 1, share=1)],
    "expired while it is set aside": [set_aside("k", [0]), Expired(P, packed(0))],
    "made twice": [PartitionMade(P, 0.0)],
    "deleted and written": [PartitionDeleted(P), Inserted(P, 3, 1, None)],
}


@pytest.mark.parametrize("events", BAD.values(), ids=BAD.keys())
def test_a_history_that_breaks_a_law_is_refused_at_its_last_change(events: list[AnyEvent]) -> None:
    audit = Audit()
    *fine, last = [Change(at, [event]) for at, event in enumerate([*BEGIN, *events], 1)]
    for change in fine:
        audit.take(change)
    with pytest.raises(Broken, match=f"at revision {last.revision}:"):
        audit.take(last)


def test_a_revision_that_is_left_out_or_said_twice_is_refused() -> None:
    for revision in (1, 3):
        audit = Audit()
        audit.take(Change(1, [PartitionMade(P, 0.0)]))
        with pytest.raises(Broken, match="follows 1"):
            audit.take(Change(revision, [Inserted(P, 0, 1, None)]))


def accounts(events: list[AnyEvent]) -> list[tuple[int, ...]]:
    """(waiting, leased, consumed, dead, clearing, cleared) after each."""
    audit = Audit()
    out: list[tuple[int, ...]] = []
    for revision, event in zip(itertools.count(1), [*BEGIN, *events], strict=False):
        audit.take(Change(revision, [event]))
        out.append(audit.account(P, "t")[1:])
        audit.check_states()
    return out[len(BEGIN) :]


def test_rows_go_round_and_the_account_follows() -> None:
    events: list[AnyEvent] = [leased(3, 0, 1), settled(3, packed(0), packed(1)), leased(5, 1), planned(6, 0, 1)]
    events += [settled(5, packed(1)), ClearAborted(P, 6), Cleared(P, packed(0)), Reset(P, "t")]
    assert accounts(events) == [
        (1, 2, 0, 0, 0, 0),
        (2, 0, 1, 0, 0, 0),
        (1, 1, 1, 0, 0, 0),
        (1, 0, 0, 0, 2, 0),
        (1, 0, 0, 0, 2, 0),
        (1, 0, 2, 0, 0, 0),
        (1, 0, 1, 0, 0, 1),
        (2, 0, 0, 0, 0, 1),
    ]


def test_what_is_set_aside_is_leased_until_it_is_accepted_or_gone() -> None:
    events: list[AnyEvent] = [set_aside("k", [0, 1], [2]), leased(4, 0, 1, share=1), settled(4, packed(0), packed(1))]
    events += [leased(6, 1, share=1), planned(7, 1), ClearCommitted(P, 7), Cleared(P, packed(2)), Reset(P, "t")]
    assert accounts(events) == [
        (0, 3, 0, 0, 0, 0),
        (0, 3, 0, 0, 0, 0),
        (0, 2, 1, 0, 0, 0),
        (0, 2, 1, 0, 0, 0),
        (0, 1, 1, 0, 1, 0),
        (0, 1, 1, 0, 0, 1),
        (0, 0, 1, 0, 0, 2),
        (1, 0, 0, 0, 0, 2),
    ]


def test_what_is_left_of_a_broken_share_is_everybodys() -> None:
    events: list[AnyEvent] = [set_aside("k", [0, 1, 2]), planned(4, 1), planned(5, 2), ClearCommitted(P, 4)]
    events += [ClearAborted(P, 5), leased(8, 0, 2), settled(8, packed(0), packed(2)), Consumed(P, "t", packed(2))]
    assert accounts(events) == [
        (0, 3, 0, 0, 0, 0),
        (0, 2, 0, 0, 1, 0),
        (0, 1, 0, 0, 2, 0),
        (1, 0, 0, 0, 1, 1),
        (2, 0, 0, 0, 0, 1),
        (0, 2, 0, 0, 0, 1),
        (1, 0, 1, 0, 0, 1),
        (0, 0, 2, 0, 0, 1),
    ]
