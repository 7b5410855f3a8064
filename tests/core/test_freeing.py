"""A large partition that is deleted is freed in slices, without a call that asks for it; so are forgotten leases."""

import sys
from itertools import pairwise

import pytest

from core.engine import Engine
from core.operations.claim import ClaimRequest, claim_now
from core.operations.leases import release_worker
from core.operations.partitions import delete_partition
from core.reading.batch import View
from core.samplers import sampler
from core.state import freeing
from core.state.freeing import free_all
from core.state.leases import Lease
from tests.core.running import running
from tests.core.world import add, add_keys, new_engine, write

P, ROWS = "p", 50


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freeing, "AT_ONCE", 8)
    monkeypatch.setattr("core.apply.partitions.AT_ONCE", 8)


def test_a_step_frees_its_part() -> None:
    engine = new_engine()
    engine.gone = []
    rows = add_keys(engine, P, [f"k{i}" for i in range(ROWS)], group_ids=[f"g{i}" for i in range(ROWS)])
    write(engine, P, rows, ["a"])
    keys, by_key = engine.partitions[P].rows.keys, engine.partitions[P].rows.by_key
    assert keys is not None
    one = keys[ROWS]
    before = sys.getrefcount(one)
    delete_partition(engine, P, None)
    freeing_steps, left = free_all(engine), [len(by_key)]
    steps = 0
    while engine.gone:
        next(freeing_steps)
        steps += 1
        left.append(len(by_key))
    assert max(one - other for one, other in pairwise(left)) == 8
    assert left[-1] == 0
    assert steps > 2 * ROWS / 8
    assert sys.getrefcount(one) == before - 2  # the column and the dict


def test_a_small_partition_is_freed_at_once() -> None:
    engine = new_engine()
    engine.gone = []
    add(engine, P, 3)
    delete_partition(engine, P, None)
    assert engine.gone == []


def test_many_leases_that_are_forgotten_at_once_are_freed_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.state.leases.REMEMBERED", 10)
    monkeypatch.setattr("core.state.service.MANY_LEASES", 4)
    monkeypatch.setattr(freeing, "MANY_LEASES", 4)
    engine = new_engine()
    write(engine, P, add(engine, P, ROWS), ["n"])
    engine.gone = []
    held = leased(engine, 10)
    release_worker(engine, "w")
    assert (len(engine.leases.closed), engine.gone) == (10, [])
    leased(engine, 9)
    release_worker(engine, "w")
    assert [engine.leases.find(lease.claim_id) is None for lease in held] == [True] * 9 + [False]
    forgotten = engine.gone[0]
    assert forgotten == held[:9]
    one = held[0]
    before, freeing_steps, left = sys.getrefcount(one), free_all(engine), []
    while engine.gone:
        next(freeing_steps)
        left.append(len(forgotten))
    assert left == [5, 1, 0, 0]
    assert sys.getrefcount(one) == before - 1


def leased(engine: Engine, count: int) -> list[Lease]:
    """Leases of a row each, of one worker."""
    wanted = ClaimRequest("t", ("n",), 1, 1, 0, sampler("sequential", {}), View(("n",)), 10.0, "w")
    for _ in range(count):
        claim_now(engine, P, wanted)
    return list(engine.leases.open.values())


@pytest.mark.asyncio
async def test_the_engines_thread_frees_without_a_call() -> None:
    async with running() as service:
        for name in ("a", "b"):
            await service.do(add, name, ROWS)
        kept = [service.engine.partitions[name].groups for name in ("a", "b")]
        await service.do(delete_partition, "a", None)
        await service.do(delete_partition, "b", None)
        for _ in range(1000):
            await service.settle()
            if not service.engine.gone:
                break
        assert service.engine.gone == []
        assert all(groups.ids[0] is None for groups in kept)
