"""A large partition that is deleted is freed in slices, without a call that asks for it."""

import sys
from itertools import pairwise

import pytest

from core.operations.partitions import delete_partition
from core.state import freeing
from core.state.freeing import free_all
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
