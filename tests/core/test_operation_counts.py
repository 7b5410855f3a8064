"""What a call costs is counted, not timed: tensor operations do not grow with the rows, a claim touches its batch."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from torch.utils._python_dispatch import TorchDispatchMode

from core.arrays import Ints
from core.engine import Engine
from core.operations.claim import Claimed, ClaimRequest, claim, claim_now
from core.operations.clears import ClearRequest, abort_clear, commit_clear, plan_clear
from core.operations.parked import Parked
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import sampler
from core.state.cells.torch_readiness import TorchWords
from core.state.partition import Partition
from core.state.supply.supply import Supply

from .world import add, look, new_engine, on_torch, write

FIELDS = ("a", "b", "c", "d", "e")


class Counter(TorchDispatchMode):
    """Counts every operation that reaches torch."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def ready(rows: int) -> Engine:
    """On torch's CPU, as on an accelerator: the host's words never reach torch's dispatcher."""
    engine = new_engine(on_torch("cpu"))
    write(engine, "p", add(engine, "p", rows), FIELDS)
    return engine


def take(engine: Engine, rows: int) -> None:
    wanted = ClaimRequest("t", FIELDS, rows, rows, 0, sampler("sequential", {}), View(FIELDS))
    assert isinstance(claim_now(engine, "p", wanted), Claimed)


def operations(call: Callable[[], object]) -> int:
    with Counter() as counter:
        call()
    return counter.count


def cost(call: Callable[[Engine, int], object], rows: int) -> int:
    engine = ready(rows)
    return operations(lambda: call(engine, rows))


def test_a_read_is_the_same_few_operations_for_any_number_of_rows() -> None:
    counts = [cost(lambda engine, _: look(engine, "p", fields=FIELDS), rows) for rows in (8, 512, 8192)]
    assert len(set(counts)) == 1, counts
    assert 0 < counts[0] < 12


def test_a_claim_is_the_same_few_operations_for_any_number_of_rows() -> None:
    counts = [cost(take, rows) for rows in (8, 512, 8192)]
    assert len(set(counts)) == 1, counts
    assert 0 < counts[0] < 24


def clear(engine: Engine, rows: int) -> None:
    """Plan and abort, plan and commit, all rows but one."""
    for close in (abort_clear, commit_clear):
        seen = plan_clear(engine, "p", ClearRequest(Selector(list(range(1, rows)))))
        close(engine, seen.clear.clear_id)


def test_a_clear_is_the_same_few_operations_for_any_number_of_rows() -> None:
    counts = [cost(clear, rows) for rows in (8, 512, 8192)]
    assert len(set(counts)) <= 2, counts  # gaps are closed where there are many
    assert 0 < counts[0] < 80


def test_a_clear_of_rows_without_keys_takes_no_step_of_python_for_each() -> None:
    counts = []
    for rows in (8, 512, 900):
        engine = ready(rows)
        calls = [0]

        def count(*_: object, calls: list[int] = calls) -> None:
            calls[0] += 1

        sys.setprofile(count)
        clear(engine, rows)
        sys.setprofile(None)
        counts.append(calls[0])
    assert counts[1] == counts[2] < counts[0] * 2, counts


def test_a_loop_over_rows_would_be_noticed() -> None:
    engine = ready(64)
    looped = operations(lambda: [look(engine, "p", [index], FIELDS) for index in range(64)])
    assert looped == 64 * operations(lambda: look(engine, "p", [0], FIELDS))


def test_a_claim_touches_its_batch_and_not_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[int] = []
    gather = TorchWords.gather

    def counted(self: TorchWords, rows: slice | Ints) -> Ints:
        touched.append(rows.stop - rows.start if isinstance(rows, slice) else len(rows))
        return gather(self, rows)

    sums = []
    for rows in (1_000, 100_000):
        engine = ready(50_000) if rows > 50_000 else ready(rows)
        if rows > 50_000:
            write(engine, "p", add(engine, "p", 50_000), FIELDS)
        take(engine, 64)
        with monkeypatch.context() as patched:
            patched.setattr(TorchWords, "gather", counted)
            touched.clear()
            take(engine, 64)
        sums.append(sum(touched))
    assert sums == [64, 64]


def test_each_try_of_a_claim_finds_its_supply_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ready(16)
    found: list[object] = []
    supply = Partition.supply

    def counted(self: Partition, *asked: Any) -> Supply:
        found.append(asked)
        return supply(self, *asked)

    monkeypatch.setattr(Partition, "supply", counted)
    take(engine, 8)
    assert len(found) == 1
    waiting = claim(engine, "p", ClaimRequest("t", FIELDS, 9, 1, 60, sampler("sequential", {}), View(FIELDS)))
    assert len(found) == 2
    assert isinstance(waiting, Parked)
    assert not waiting.is_ripe()
    assert len(found) == 3
