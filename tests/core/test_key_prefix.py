"""Keys are found by their prefix in slices: the answer is that of the last step, whatever happens before it."""

from collections.abc import Callable
from types import GeneratorType
from typing import Any

import msgspec
import numpy as np
import pytest

from app.routes import samples_render
from core.engine import Engine
from core.errors import PartitionCleared
from core.operations.clears import ClearRequest, abort_clear, plan_clear
from core.operations.delete import delete
from core.operations.partitions import delete_partition
from core.operations.read import list_keys, read
from core.operations.revoke import revoke
from core.reading.batch import View
from core.reading.selectors import Selector
from core.slices import at_once
from core.state.transitions import LIVE
from tests.core.world import MANY, add, add_keys, new_engine, write

P = "p"


@pytest.fixture(autouse=True)
def few_in_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.reading.key_prefix.ROWS", 5)


def filled(chance: np.random.Generator) -> Engine:
    engine = new_engine()
    grow(engine, chance, 30)
    return engine


def grow(engine: Engine, chance: np.random.Generator, count: int) -> None:
    first = engine.next_index
    write(engine, P, add_keys(engine, P, [f"{'ab'[int(chance.integers(2))]}{first + i}" for i in range(count)]), ["f"])
    add(engine, P, 2)


def live(engine: Engine, prefix: str) -> list[int]:
    rows = engine.partitions[P].rows
    assert rows.keys is not None
    found = [
        row for row in range(1, rows.n) if rows.state[row] == LIVE and rows.keys[row].startswith(b'"' + prefix.encode())
    ]
    return [int(rows.global_index[row]) for row in found]


def change(engine: Engine, chance: np.random.Generator) -> None:
    indexes = engine.partitions[P].rows.global_index[engine.partitions[P].rows.live()]
    some = chance.choice(indexes, 3, replace=False).tolist()
    pending = [clear.clear_id for clear in engine.clears.pending.values()]
    match int(chance.integers(4)):
        case 0:
            delete(engine, P, Selector(indexes=some))
        case 1:
            plan_clear(engine, P, ClearRequest(Selector(indexes=some)))
        case 2 if pending:
            abort_clear(engine, pending[0])
        case _:
            grow(engine, chance, 3)


def stepped(made: Any, between: Callable[[], None]) -> Any:
    """The result of an operation in slices."""
    while isinstance(made, GeneratorType):
        between()
        try:
            next(made)
        except StopIteration as end:
            return end.value
    return made


@pytest.mark.parametrize("seed", range(30))
def test_a_listing_is_of_its_last_step(seed: int) -> None:
    chance = np.random.default_rng(seed)
    engine = filled(chance)
    expected: list[int] = []

    def between() -> None:
        change(engine, chance)
        expected[:] = live(engine, "a")

    seen, lines, cursor = stepped(list_keys(engine, P, "a", MANY, None), between)
    assert cursor is None
    assert [line.global_index for line in lines] == expected
    assert seen.revision == engine.partitions[P].revision
    limit = int(chance.integers(1, 12))
    seen, lines, cursor = stepped(list_keys(engine, P, "a", limit, None), between)
    assert [line.global_index for line in lines] == expected[:limit]
    assert cursor == (f"i{expected[limit]:x}" if len(expected) > limit else None)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_read_revoked_and_removed_by_prefix_is_of_the_last_step(seed: int) -> None:
    chance = np.random.default_rng(seed)
    engine = filled(chance)
    expected: list[int] = []

    def between() -> None:
        change(engine, chance)
        expected[:] = live(engine, "a")

    by_prefix = Selector(key_prefix="a")
    batch = stepped(read(engine, P, by_prefix, View(), False, MANY, None), between)
    assert batch.global_indexes.tolist() == expected
    assert stepped(revoke(engine, P, by_prefix, ("f",)), between)[0] == len(expected)
    assert stepped(plan_clear(engine, P, ClearRequest(by_prefix)), between).clear.indexes.tolist() == expected
    grow(engine, chance, 9)
    assert stepped(delete(engine, P, by_prefix), between)[0] == len(expected)
    assert live(engine, "a") == []


def test_another_partition_of_the_name_is_looked_through_from_its_start() -> None:
    engine = filled(np.random.default_rng(0))
    steps = list_keys(engine, P, "a", MANY, None)
    delete_partition(engine, P, None)
    add_keys(engine, P, ["a new one"])
    _, lines, _ = stepped(steps, lambda: None)
    assert [line.key for line in lines] == [b'"a new one"']


def test_the_end_of_the_partition_is_told() -> None:
    engine = filled(np.random.default_rng(0))
    steps = list_keys(engine, P, "a", MANY, None)
    delete_partition(engine, P, None)
    with pytest.raises(PartitionCleared):
        stepped(steps, lambda: None)


def test_a_step_looks_at_its_part_of_the_rows() -> None:
    engine = filled(np.random.default_rng(0))
    looked: list[int] = []
    of = type(engine.partitions[P]).keys_of
    partition = engine.partitions[P]
    partition.keys_of = lambda rows: looked.append(len(rows)) or of(partition, rows)  # type: ignore[method-assign]
    steps = list_keys(engine, P, "no such", MANY, None)
    assert isinstance(steps, GeneratorType)
    assert looked == [5]
    assert stepped(steps, lambda: None)[1] == []
    assert max(looked) == 5
    assert sum(looked) == 32


def test_a_page_of_many_keys_is_the_bytes_of_one_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = filled(np.random.default_rng(0))
    page = stepped(list_keys(engine, P, "", 20, None), lambda: None)
    expected = samples_render.key_list(page)
    monkeypatch.setattr(samples_render, "KEY_CHUNK", 3)
    monkeypatch.setattr("core.operations.read.KEY_CHUNK", 3)
    page = stepped(list_keys(engine, P, "", 20, None), lambda: None)
    many = samples_render.key_list(page)
    assert isinstance(many, GeneratorType)
    assert bytes(at_once(many).body) == expected.body
    assert len(msgspec.json.decode(expected.body)["keys"]) == 20
