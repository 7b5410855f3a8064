"""What a put pays for claims that wait is counted: as much for one of them as for a thousand."""

from collections.abc import Callable
from typing import Any

import pytest

import core.state.supply.supplies
from core.operations.claim import ClaimRequest, claim
from core.operations.produce import RowWrite, produce
from core.reading.batch import View
from core.runtime.engine_thread import EngineThread
from core.runtime.watched_where import WatchedWhere
from core.samplers import sampler
from core.state.cells.readiness import HostWords
from core.state.rows import Rows
from core.state.supply.shared import Passing, Ready
from core.state.supply.supply import Supply
from core.state.where import Condition, Where
from tests.core.driven import World
from tests.core.world import TENSOR, add, write

P = "p"
ROWS = 300
MANY = (1, 64, 65, 1_000)


class Counted:
    """How often each of these was called."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.counts: dict[str, int] = {}
        self._patch = patch

    def watch(self, kind: type, *names: str) -> None:
        for name in names:
            self._patch.setattr(kind, name, self._counting(f"{kind.__name__}.{name}", getattr(kind, name)))

    def _counting(self, label: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.counts[label] = self.counts.get(label, 0) + 1
            return method(*args, **kwargs)

        return counted


def asking(
    task: str, size: int, where: Where | None = None, name: str = "sequential", **arguments: Any
) -> ClaimRequest:
    return ClaimRequest(task, ("f", "g"), size, size, 60.0, sampler(name, arguments), View(), where=where)


def equals(value: str) -> Where:
    return Where((Condition(("k",), "==", frozenset({("string", value)})),))


def with_rows() -> World:
    world = World()
    world.do(lambda engine: write(engine, P, add(engine, P, ROWS, custom_meta=[b'{"k":"z"}'] * ROWS), ["f", "g"]))
    return world


def put(world: World, number: int, tag: str = "z") -> None:
    row = RowWrite(keys=[f"n{number}"], custom_meta=[b'{"k":"%s"}' % tag.encode()], group_ids=["g"])
    world.do(produce, P, row, True, {"f": TENSOR, "g": TENSOR}, {})


def cost_of_puts(world: World, patch: pytest.MonkeyPatch, puts: int = 5) -> dict[str, int]:
    """What so many puts do, beside the first, which looks at all that came to wait."""
    put(world, 0)
    with patch.context() as patched:
        counted = Counted(patched)
        counted.watch(EngineThread, "_look")
        counted.watch(Supply, "refresh")
        counted.watch(Ready, "refresh")
        counted.watch(Passing, "refresh")
        counted.watch(HostWords, "gather", "complete")
        counted.watch(Rows, "is_live", "locate")
        counted.watch(Where, "matches")
        for number in range(puts):
            put(world, number + 1)
    return counted.counts


WAITING: dict[str, Callable[[int], ClaimRequest]] = {
    "a task of its own": lambda number: asking(f"t{number}", ROWS + 99),
    "whole groups": lambda number: asking(f"t{number}", 2 * ROWS, name="grpo_group", n_samples_per_prompt=2),
    "a weight": lambda number: asking(f"t{number}", 99, name="priority", weight="w"),
    "a where of its own": lambda number: asking("t", 1, equals(str(number))),
    "a task and a where of its own": lambda number: asking(f"t{number}", 8, equals(str(number))),
}


@pytest.mark.parametrize("waiting", WAITING.values(), ids=WAITING.keys())
def test_a_put_does_the_same_however_many_wait(
    monkeypatch: pytest.MonkeyPatch, waiting: Callable[[int], ClaimRequest]
) -> None:
    costs = []
    for many in MANY:
        world = with_rows()
        for number in range(many):
            world.do(claim, P, waiting(number))
        assert len(world.thread._lot) == many
        costs.append(cost_of_puts(world, monkeypatch))
        assert len(world.thread._lot) == many
    assert "EngineThread._look" not in costs[0]
    assert costs == [costs[0]] * len(MANY)


def test_after_they_left_a_put_does_what_it_did_before_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cost_of_puts(with_rows(), monkeypatch)
    world = with_rows()
    for number in range(65):
        world.do(claim, P, asking(f"t{number}", 1, equals(str(number))))
    for call in world.waiting:
        world.thread.leave(call)
    assert cost_of_puts(world, monkeypatch) == before
    assert world.engine.partitions[P].supplies.news is None


def test_a_claim_that_lacks_eight_rows_is_looked_at_after_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    world = with_rows()
    for number in range(65):
        world.do(claim, P, asking(f"t{number}", ROWS + 1 + 9))
    put(world, 0)
    looks: list[int] = []
    with monkeypatch.context() as patched:
        counted = Counted(patched)
        counted.watch(EngineThread, "_look")
        for number in range(1, 10):
            put(world, number)
            looks.append(counted.counts.get("EngineThread._look", 0))
    assert looks == [0] * 8 + [65]
    assert len(world.claimed) == 65


def test_only_the_where_that_a_row_may_fulfil_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    world = with_rows()
    for number in range(1_000):
        world.do(claim, P, asking("t", 1, equals(str(number))))
    put(world, 0)
    with monkeypatch.context() as patched:
        counted = Counted(patched)
        counted.watch(EngineThread, "_look")
        counted.watch(WatchedWhere, "come")
        put(world, 1, "700")
        put(world, 2, "none")
    assert counted.counts == {"EngineThread._look": 1, "WatchedWhere.come": 2}
    assert [one.batch.global_indexes.tolist() for one in world.claimed] == [[ROWS + 1]]


def test_readiness_is_kept_once_for_all_tasks_and_a_where_once_for_all_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    world = with_rows()
    counted = Counted(monkeypatch)
    counted.watch(HostWords, "complete")
    counted.watch(Where, "matches")
    for number in range(65):
        world.do(claim, P, asking(f"t{number}", 1, equals("none")))
    assert counted.counts == {"HostWords.complete": 1, "Where.matches": 1}


def test_what_a_claim_waits_with_is_kept_however_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    world = with_rows()
    for number in range(65):
        world.do(claim, P, asking(f"t{number}", 1, equals(str(number))))
    made: list[object] = []
    make = core.state.supply.supplies.Supply
    monkeypatch.setattr(core.state.supply.supplies, "Supply", lambda *args: made.append(args) or make(*args))
    for number in range(65):
        put(world, number, str(number))
    assert len(world.claimed) == 65
    assert made == []


def test_who_would_hold_too_much_memory_is_refused_and_who_waits_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.state.supply.supplies, "MAX_KEPT_BYTES", 65 * 3 * ROWS)
    world = with_rows()
    for number in range(100):
        world.do(claim, P, asking(f"t{number}", 1, equals(str(number))))
    waiting = len(world.thread._lot)
    assert 50 < waiting < 66
    assert len(world.told) == 1 + 100 - waiting
    assert "let some end first" in world.told[-1]
    for number in range(100):
        put(world, number, str(number))
    assert len(world.claimed) == waiting
    world.do(claim, P, asking("t99", 1, equals("free again")))
    assert len(world.thread._lot) == 1


def test_memory_that_nobody_holds_refuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.state.supply.supplies, "MAX_KEPT_BYTES", 10 * ROWS)
    world = with_rows()
    for number in range(40):
        world.do(claim, P, asking(f"t{number}", 1, equals("none")))
        assert len(world.thread._lot) == 1
        world.thread.leave(world.waiting[-1])
    for number in range(40):
        world.do(claim, P, asking(f"t{number}", 1, equals("none")))
    assert 1 < len(world.thread._lot) < 10
