"""The tables of `core.state.transitions` are true: what happens is in them, and all that is in them happens."""

import pytest

from core.apply import clear
from core.apply.table import EVENTS
from core.engine import Engine
from core.events import ClearAborted
from core.operations.checkpoints import begin_history, image_of, restore
from core.operations.claim import Claimed, ClaimRequest, claim_now
from core.operations.clears import ClearRequest, abort_clear, commit_clear, plan_clear
from core.operations.consumption import reset_consumption
from core.operations.delete import delete
from core.operations.expiry import expire
from core.operations.leases import Ack, ack
from core.operations.partitions import delete_partition, patch_partition
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import sampler
from core.snapshot.checkpoint_file import looked_through
from core.state.service import ServiceState
from core.state.transitions import FREE
from tests.core.world import Clock, add, new_engine, write
from tests.histories.test_audit import live_through
from tests.histories.transitions import Watch, table

P = "p"


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """It sees every event that is applied."""
    watch = Watch()
    monkeypatch.setattr("core.apply.table.EVENTS", watch.events())
    return watch


def filled(rows: int) -> Engine:
    engine = new_engine()
    write(engine, P, add(engine, P, rows, custom_meta=[b'{"w":1}'] * rows), ["n"])
    return engine


def take(engine: Engine, count: int, lease_s: float | None = 10.0) -> Claimed:
    return _claimed(engine, ClaimRequest("t", ("n",), count, 1, 0, sampler("sequential", {}), View(("n",)), lease_s))


def take_share(engine: Engine, batch: int, lease_s: float | None = 10.0) -> Claimed:
    """Two rows; two more are set aside for the other rank."""
    chosen = sampler("seqlen_balanced", {"dp_rank": 0, "batch_index": batch, "dp_size": 2, "weight": "w"})
    return _claimed(engine, ClaimRequest("t", ("n",), 2, 2, 0, chosen, View(("n",)), lease_s))


def _claimed(engine: Engine, wanted: ClaimRequest) -> Claimed:
    claimed = claim_now(engine, P, wanted)
    assert isinstance(claimed, Claimed)
    return claimed


def settle(engine: Engine, claimed: Claimed, accept: list[int], release: list[int], reject: list[int]) -> None:
    assert claimed.lease is not None
    said = Ack(claimed.lease.token, accept, release, [(index, "bad") for index in reject])
    ack(engine, claimed.claim_id, said)


def pass_time(engine: Engine, seconds: float) -> None:
    assert isinstance(engine.clock, Clock)
    engine.clock.now += seconds
    expire(engine, engine.clock.now)


def clear_of(engine: Engine, *indexes: int) -> str:
    return plan_clear(engine, P, ClearRequest(Selector(list(indexes)))).clear.clear_id


def leases_go_on_end_and_are_reset() -> None:
    engine = filled(9)
    settle(engine, take(engine, 4), [0], [1], [2])
    pass_time(engine, 10.0)
    take(engine, 2)
    delete(engine, P, Selector([1]))
    commit_clear(engine, clear_of(engine, 3))
    take(engine, 1, lease_s=None)
    take(engine, 1)
    reset_consumption(engine, P, "t")


def leases_end_by_their_time() -> None:
    engine = filled(4)
    take_share(engine, 0)
    pass_time(engine, 10.0)
    engine = filled(1)
    patch_partition(engine, P, None, None, 1)
    take(engine, 1)
    pass_time(engine, 10.0)


def shares_go_out_come_back_and_break() -> None:
    engine = filled(20)
    first = take_share(engine, 0)
    accepted, released = first.batch.global_indexes.tolist()
    settle(engine, first, [accepted], [released], [])
    take_share(engine, 2, lease_s=None)
    delete(engine, P, Selector([held(engine)[0]]))
    commit_clear(engine, clear_of(engine, held(engine)[-1]))
    take_share(engine, 4)
    reset_consumption(engine, P, "t")


def held(engine: Engine) -> list[int]:
    """What is set aside for shares and nobody has."""
    partition = engine.partitions[P]
    rows = partition.rows.live()
    indexes: list[int] = partition.rows.global_index[rows[partition.tasks["t"].is_held(rows)]].tolist()
    return indexes


def partitions_go_with_all_they_hold() -> None:
    engine = filled(4)
    take(engine, 2)
    clear_of(engine, 3)
    delete_partition(engine, P, None)


def clears_end_either_way() -> None:
    engine = filled(3)
    abort_clear(engine, clear_of(engine, 0))
    commit_clear(engine, clear_of(engine, 0, 1))


def rows_expire() -> None:
    engine = filled(1)
    add(engine, P, 2, ttl_s=1.0)
    pass_time(engine, 2.0)


def the_state_goes_back() -> None:
    engine = filled(8)
    take_share(engine, 0)
    begin_history(engine)
    saved = looked_through(image_of(engine)[1])
    take(engine, 2, lease_s=None)
    delete(engine, P, Selector([7]))
    restore(engine, saved, unproduced=False)


LIVES = (
    leases_go_on_end_and_are_reset,
    leases_end_by_their_time,
    shares_go_out_come_back_and_break,
    partitions_go_with_all_they_hold,
    clears_end_either_way,
    rows_expire,
    the_state_goes_back,
)


def test_what_happens_is_in_the_tables_and_all_of_them_happens(watch: Watch) -> None:
    for live in LIVES:
        live()
    assert watch.seen == table()
    assert watch.unlike == []


@pytest.mark.parametrize("seed", range(6))
def test_nothing_else_happens_whatever_is_done(watch: Watch, seed: int) -> None:
    live_through(seed)
    assert watch.seen - table() == set()
    assert watch.unlike == []


def test_a_transition_that_is_in_no_table_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of an aborted clear are free again, though they were consumed."""

    def wrong(state: ServiceState, event: ClearAborted) -> None:
        clear.abort(state, event)
        state.partitions[event.partition].tasks["t"].state[:] = FREE

    watch = Watch({**EVENTS, ClearAborted: wrong})
    monkeypatch.setattr("core.apply.table.EVENTS", watch.events())
    engine = filled(2)
    take(engine, 1, lease_s=None)
    abort_clear(engine, clear_of(engine, 0))
    assert watch.seen - table() == {("A row for a task", "CONSUMED", "ClearAborted", "FREE")}
