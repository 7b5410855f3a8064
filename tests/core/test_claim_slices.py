"""A claim in a large partition: what it looks at first is built in steps, while other calls are answered."""

import json
import random
from types import GeneratorType
from typing import Any

import pytest

import core.operations.claim_slices
from core.operations.claim import Answer, Claimed, ClaimRequest, claim, claim_now, explain_claim
from core.operations.claim_slices import in_slices
from core.operations.delete import delete
from core.operations.parked import Parked
from core.operations.partitions import delete_partition, seal_partition
from core.operations.produce import RowWrite, patch_custom_meta
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import sampler
from core.state.supply.supplies import Supplies
from core.state.where import Condition, Weight, Where
from tests.core.driven import World
from tests.core.world import add, write

P = "p"
ROWS = 4_000
SMALL = Where((Condition(("v",), "<", frozenset({("number", 50)})),))
BALANCED = {"dp_rank": 0, "dp_size": 2, "batch_index": 0, "weight": "v", "n_samples_per_prompt": 4}
SAMPLERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sequential", {}),
    ("random", {"seed": 7}),
    ("priority", {"weight": "v"}),
    ("token_budget", {"weight": "v", "budget": 400}),
    ("grpo_group", {"n_samples_per_prompt": 4}),
    ("grpo_group", {"n_samples_per_prompt": 4, "group_by": "position"}),
    ("priority", {"weight": "u", "weight_default": 3}),
    ("rank_aware", {"dp_rank": 0, "batch_index": 0, "n_samples_per_prompt": 4}),
    ("rank_aware", {"dp_rank": 0, "batch_index": 0, "n_samples_per_prompt": 4, "group_by": "position"}),
    *(
        ("seqlen_balanced", BALANCED | more)
        for more in ({}, {"group_by": "position"}, {"weight": "u", "weight_default": 2})
    ),
)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of one block: 1,024 rows, or 128 cells."""
    monkeypatch.setattr(core.operations.claim_slices, "FEW", 0)
    monkeypatch.setattr(core.operations.claim_slices, "STEP", 1)


def meta(value: int) -> bytes:
    return json.dumps({"v": value}).encode()


def with_rows() -> World:
    world = World()
    metas = [meta(number % 101) for number in range(ROWS)]
    groups = [f"g{number // 4}" for number in range(ROWS)]
    world.do(lambda engine: write(engine, P, add(engine, P, ROWS, custom_meta=metas, group_ids=groups), ["f"]))
    return world


def asking(name: str, arguments: dict[str, Any], where: Where | None = None, size: int = 8) -> ClaimRequest:
    return ClaimRequest("t", ("f",), size, size, 60.0, sampler(name, arguments), View(("f",)), where=where)


def change(world: World, chance: random.Random) -> None:
    """What others do between two steps."""
    rows = [chance.randrange(ROWS) for _ in range(3)]
    what = chance.randrange(4)
    if what == 0:
        world.do(patch_custom_meta, P, RowWrite(rows[:1], custom_meta=[meta(chance.randrange(101))]))
    elif what == 1:
        world.do(lambda engine: delete(engine, P, Selector(indexes=rows[:1])))
    elif what == 2:
        world.do(claim_now, P, asking("random", {"seed": chance.randrange(9)}, size=2))
    else:
        world.do(lambda engine: write(engine, P, add(engine, P, 2, custom_meta=[meta(1), meta(99)]), ["f"]))


@pytest.mark.parametrize("where", [None, SMALL], ids=["all", "where"])
@pytest.mark.parametrize(("name", "arguments"), SAMPLERS)
def test_what_is_built_in_steps_is_what_would_be_built_at_once(
    name: str, arguments: dict[str, Any], where: Where | None
) -> None:
    chance = random.Random(f"{name}{arguments}{where}")
    world = with_rows()
    wanted = asking(name, arguments, where)
    steps = in_slices(claim_now)(world.engine, P, wanted)
    assert isinstance(steps, GeneratorType)
    count = 0
    answer: Answer | None = None
    while answer is None:
        change(world, chance)
        partition = world.engine.partitions[P]
        supply = Supplies().of(partition, "t", ("f",), where)
        rows = wanted.sampler.take(partition, supply, wanted.wanted)
        meant = partition.rows.global_index[rows].tolist()
        try:
            next(steps)
            count += 1
        except StopIteration as end:
            answer = end.value
    assert count
    assert isinstance(answer, Claimed)
    found = answer.batch.global_indexes.tolist()
    assert set(found) <= set(meant) if name == "seqlen_balanced" else found == meant


def test_a_step_looks_at_so_many_rows_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    matches, exactly = Where.matches, Weight.exactly
    monkeypatch.setattr(Where, "matches", lambda self, cells: looked.append(len(cells)) or matches(self, cells))
    monkeypatch.setattr(Weight, "exactly", lambda self, cells: looked.append(len(cells)) or exactly(self, cells))
    world = with_rows()
    steps = in_slices(claim_now)(world.engine, P, asking("priority", {"weight": "v"}, SMALL))
    assert isinstance(steps, GeneratorType)
    for _ in steps:
        assert sum(looked) <= 128 * 3
        looked.clear()
    world.do(in_slices(claim_now), P, asking("priority", {"weight": "v"}, SMALL))
    assert len(world.claimed) == 1
    assert sum(looked) < 128


def test_others_are_answered_between_steps_and_who_waits_is_served_in_the_end() -> None:
    world = with_rows()
    world.do(in_slices(claim), P, asking("priority", {"weight": "v"}, size=ROWS + 2))
    assert world.thread._slices
    assert not len(world.thread._lot)
    world.do(claim_now, P, ClaimRequest("other", ("f",), 3, 3, 0.0, sampler("sequential", {}), View(("f",))))
    assert [one.task for one in world.claimed] == ["other"]
    steps = world.take_steps()
    assert steps > ROWS // 128
    assert len(world.thread._lot) == 1
    world.do(lambda engine: write(engine, P, add(engine, P, 1, custom_meta=[meta(5)]), ["f"]))
    assert len(world.thread._lot) == 1
    world.do(lambda engine: write(engine, P, add(engine, P, 1, custom_meta=[meta(5)]), ["f"]))
    assert [len(one.batch.global_indexes) for one in world.claimed] == [3, ROWS + 2]


def test_what_comes_while_it_is_built_is_not_missed() -> None:
    world = with_rows()
    world.do(in_slices(claim), P, asking("sequential", {}, size=ROWS + 1))
    while world.thread._slices:
        world.take_steps(1)
        if not world.claimed and world.engine.partitions[P].rows.live_count == ROWS:
            world.do(lambda engine: write(engine, P, add(engine, P, 1), ["f"]))
    assert [len(one.batch.global_indexes) for one in world.claimed] == [ROWS + 1]


def test_a_waiting_claim_that_is_far_behind_catches_up_in_steps() -> None:
    world = with_rows()
    world.do(in_slices(claim), P, asking("priority", {"weight": "v"}, size=2 * ROWS))
    world.take_steps()
    assert len(world.thread._lot) == 1
    metas = [meta(3)] * ROWS
    world.do(lambda engine: write(engine, P, add(engine, P, ROWS, custom_meta=metas), ["f"]))
    assert world.thread._slices
    assert len(world.thread._lot) == 1
    assert world.take_steps() > 3
    assert [len(one.batch.global_indexes) for one in world.claimed] == [2 * ROWS]


@pytest.mark.parametrize("ending", ["seal", "delete"])
def test_the_partition_may_be_sealed_or_deleted_while_it_is_built(ending: str) -> None:
    world = with_rows()
    world.do(in_slices(claim), P, asking("sequential", {}, SMALL, size=2 * ROWS))
    world.take_steps(2)
    if ending == "seal":
        world.do(seal_partition, P)
    else:
        world.do(delete_partition, P, None)
    world.take_steps()
    assert not len(world.thread._lot)
    if ending == "seal":
        assert [len(one.batch.global_indexes) for one in world.claimed] == [sum(n % 101 < 50 for n in range(ROWS))]
    else:
        assert "was deleted" in world.told[-1]


def test_explain_is_built_in_steps_too() -> None:
    world = with_rows()
    steps = in_slices(explain_claim)(world.engine, P, asking("priority", {"weight": "v"}))
    assert isinstance(steps, GeneratorType)
    assert not isinstance(in_slices(claim)(world.engine, "absent", asking("sequential", {})), GeneratorType)
    assert isinstance(claim(world.engine, "absent", asking("sequential", {})), Parked)
