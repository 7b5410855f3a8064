"""Many rows told in slices: what `describe` told of them when they were asked for, whatever changes meanwhile."""

from dataclasses import replace
from functools import partial
from types import GeneratorType
from typing import Any

import msgspec
import numpy as np
import pytest

from app.reply import Reply, large_reply, reply
from app.routes.batch_meta_render import batch_meta, columns
from app.routes.clears_render import planned_clear
from core.arrays import Ints
from core.engine import Engine
from core.operations.claim import Claimed, ClaimRequest, claim_now
from core.operations.clears import ClearRequest, SeenClear, get_clear, plan_clear
from core.operations.delete import delete
from core.operations.partitions import delete_partition
from core.operations.produce import RowWrite, insert, patch_backend_meta, patch_custom_meta
from core.operations.read import read
from core.operations.revoke import revoke
from core.reading import sliced_batch
from core.reading.batch import Batch, View, describe
from core.reading.selectors import Selector
from core.reading.sliced_batch import described
from core.samplers import sampler
from core.slices import Sliced, at_once
from core.state.cells.json_cells import Const
from core.state.freeing import free_all
from tests.core.world import ALL_PARTS, OBJECT, TENSOR, Schema, add, add_keys, new_engine, write

P, ROWS = "p", 40
FIELDS = ("a", "b", "c", "d", "e", "o")


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sliced_batch, "AT_ONCE", 4)
    monkeypatch.setattr("core.apply.partitions.AT_ONCE", 4)


def filled(chance: np.random.Generator, *, keyed: bool) -> Engine:
    """Rows with and without keys, groups, metas and cells, some revoked, some clearing, some gone."""
    engine = new_engine()
    engine.gone = []
    groups = [f"g{i // 4}" if chance.random() < 0.7 else None for i in range(ROWS)]
    keys = [f"k{i}" for i in range(ROWS)]
    rows = add_keys(engine, P, keys, group_ids=groups) if keyed else add(engine, P, ROWS)
    add(engine, P, 4)
    if chance.random() < 0.8:
        patch_custom_meta(engine, P, RowWrite(rows[5:], custom_meta=[b'{"n":%d}' % i for i in rows[5:]]))
    write(engine, P, rows, {"a": Schema("int64", lengths=rows), "b": Schema("float32", lengths=rows)})
    write(
        engine,
        P,
        rows[3:],
        {"c": Schema("int64", shapes=[[i, 2] for i in rows[3:]])},
        {"c": [b"%d" % i for i in rows[3:]]},
    )
    write(engine, P, rows[:20], {"d": TENSOR, "o": OBJECT}, {"d": Const(b'"1"'), "o": [b"[%d]" % i for i in rows[:20]]})
    for row in chance.permutation(rows)[:9].tolist():
        write(engine, P, [row], {"e": OBJECT}, {"e": [b'{"at":%d}' % row]})
    patch_backend_meta(engine, P, RowWrite(chance.permutation(rows)[:5].tolist()), {"c": Const(b'"moved"')})
    if chance.random() < 0.5:
        revoke(engine, P, Selector(indexes=rows[::3]), ("a", "o"))
    delete(engine, P, Selector(indexes=rows[7:9]))
    plan_clear(engine, P, ClearRequest(Selector(indexes=rows[20:23])))
    return engine


def views(chance: np.random.Generator) -> list[View]:
    some = tuple(chance.permutation([*FIELDS, "unknown"])[:4].tolist())
    parts = frozenset(chance.permutation(sorted(ALL_PARTS))[:3].tolist())
    flags = [bool(one) for one in chance.integers(0, 2, 2)]
    return [
        View(),
        View(None, ALL_PARTS, *flags),
        View(some, ALL_PARTS, *flags),
        View(some, parts, *flags),
        View((), ALL_PARTS),
    ]


def lists(chance: np.random.Generator) -> list[Ints]:
    every = np.arange(ROWS + 4)
    return [every, chance.permutation(np.arange(-2, ROWS + 9)), np.sort(chance.choice(every, 12, replace=False))]


def change(engine: Engine, chance: np.random.Generator) -> None:
    """Something that a read which looks later would see."""
    rows = engine.partitions[P].rows
    indexes = rows.global_index[rows.live()].tolist()
    row = [int(chance.choice(indexes))]
    what = [
        partial(write, engine, P, row, {"a": Schema("int64", lengths=[9999])}, {"a": [b'"else"']}),
        partial(
            write,
            engine,
            P,
            row,
            {"d": Schema("int64", [5])},
            {
                "d": Const(b'"2"'),
            },
        ),
        partial(
            write,
            engine,
            P,
            indexes,
            {"c": Schema("int64", shapes=[[7, 7]] * len(indexes))},
            {"c": [b'"x"'] * len(indexes)},
        ),
        partial(write, engine, P, row, ["new"]),
        partial(patch_custom_meta, engine, P, RowWrite(row, custom_meta=[b'{"n":"else"}'])),
        partial(patch_backend_meta, engine, P, RowWrite(row), {"o": [b'"else"']}),
        partial(delete, engine, P, Selector(indexes=row)),
        partial(revoke, engine, P, Selector(indexes=row), ("a",)),
        partial(add, engine, P, 3),
    ]
    what[int(chance.integers(0, len(what)))]()


def told(batch: Batch, *, is_large: bool) -> bytes:
    body = batch_meta(batch)
    made = large_reply(body, apart=columns(batch)) if is_large else reply(body, apart=columns(batch))
    while not hasattr(made, "body"):
        try:
            next(made)
        except StopIteration as end:
            made = end.value
    return bytes(made.body)


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_it_tells_what_was_there_when_it_was_asked_for(seed: int, *, keyed: bool) -> None:
    chance = np.random.default_rng(seed)
    for at in range(15):
        engine = filled(chance, keyed=keyed)
        indexes, view = lists(chance)[at % 3], views(chance)[at // 3]
        partition = engine.partitions[P]
        rows = partition.rows.locate(indexes)
        expected = told(describe(partition, rows, indexes, view), is_large=False)
        steps = described(partition, rows, indexes, view)
        assert not isinstance(steps, Batch)
        assert told(_changing(engine, chance, steps), is_large=True) == expected


def _changing(engine: Engine, chance: np.random.Generator, steps: Sliced[Any]) -> Any:
    """The result; before each step but the first something changes, in the end the partition is deleted."""
    at = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        at += 1
        if P in engine.partitions and at < 6:
            change(engine, chance)
        elif P in engine.partitions:
            delete_partition(engine, P, None)
            assert engine.gone
            freeing_steps = free_all(engine)
            while engine.gone:
                next(freeing_steps)


@pytest.mark.parametrize("seed", range(6))
def test_the_plan_of_a_large_clear_is_told_as_it_was_planned(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(seed)
    engine = filled(chance, keyed=bool(seed % 2))
    some = np.sort(chance.choice(ROWS, 20, replace=False)).tolist()
    monkeypatch.setattr("core.operations.clears.AT_ONCE", 4)
    monkeypatch.setattr("app.routes.clears_render.AT_ONCE", 4)
    steps = plan_clear(engine, P, ClearRequest(Selector(indexes=some)), bool(seed % 3))
    (clear,) = [clear for clear in engine.clears.pending.values() if clear.count > 3]
    monkeypatch.setattr("core.operations.clears.AT_ONCE", 1000)
    few = get_clear(engine, clear.clear_id, bool(seed % 3))
    many = _changing(engine, chance, steps)
    assert isinstance(few, SeenClear)
    assert few.plan is not None
    assert many.plan is not None
    assert bytes(at_once(planned_clear(replace(many, skipped=()))).body) == bytes(at_once(planned_clear(few)).body)
    monkeypatch.setattr("app.routes.clears_render.AT_ONCE", 1000)
    assert planned_clear(few).body == bytes(_large(monkeypatch, few).body)


def _large(monkeypatch: pytest.MonkeyPatch, seen: SeenClear) -> Reply:
    monkeypatch.setattr("app.routes.clears_render.AT_ONCE", 4)
    return at_once(planned_clear(seen))


def test_few_rows_are_told_at_once() -> None:
    engine = new_engine()
    rows = np.array(add(engine, P, 4), np.int64)
    assert isinstance(described(engine.partitions[P], rows + 1, rows, View()), Batch)


def test_a_large_reply_is_the_bytes_of_a_small_one_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.reply.STEP", 100)
    engine = filled(np.random.default_rng(0), keyed=True)
    partition = engine.partitions[P]
    indexes = np.arange(ROWS)
    batch = describe(partition, partition.rows.locate(indexes), indexes, View(None, ALL_PARTS))
    expected = told(batch, is_large=False)
    steps = list(large_reply(batch_meta(batch), apart=columns(batch)))
    assert len(steps) >= len(expected) // 200
    assert told(batch, is_large=True) == expected
    assert msgspec.json.decode(expected)["size"] == ROWS


def test_the_cells_of_one_field_are_the_most_that_a_step_copies() -> None:
    """Steps by count: one for each field with a column, one for each part, the first for what is noted."""
    engine = filled(np.random.default_rng(1), keyed=True)
    partition = engine.partitions[P]
    indexes = np.arange(ROWS)
    steps = described(partition, partition.rows.locate(indexes), indexes, View(None, ALL_PARTS))
    assert not isinstance(steps, Batch)
    columns = sum(field.backend.cells is not None for field in partition.fields.values())
    assert columns >= 3
    assert len(list(steps)) == 1 + columns + len(ALL_PARTS)


def test_a_read_by_many_keys_is_one_by_few(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(2)
    engine = filled(chance, keyed=True)
    keys = [f"k{i}" for i in chance.permutation(ROWS + 3)]

    def asked(view: View, limit: int, cursor: str | None) -> Batch | Sliced[Batch]:
        return read(engine, P, Selector(keys=keys), view, False, limit, cursor)

    for view in views(chance):
        monkeypatch.setattr(sliced_batch, "AT_ONCE", 1000)
        monkeypatch.setattr("core.reading.selectors.NAMES", 1000)
        first = asked(view, 30, None)
        assert isinstance(first, Batch)
        expected = [first, asked(view, 30, first.next_cursor)]
        monkeypatch.setattr(sliced_batch, "AT_ONCE", 4)
        monkeypatch.setattr("core.reading.selectors.NAMES", 7)
        found = [asked(view, 30, None), asked(view, 30, first.next_cursor)]
        assert not any(isinstance(one, Batch) for one in found)
        for one, like in zip(found, expected, strict=True):
            batch = finished(one)
            assert told(batch, is_large=True) == told(finished(like), is_large=False)
            assert (batch.missing_keys, batch.next_cursor) == (finished(like).missing_keys, finished(like).next_cursor)


def finished(made: Batch | Sliced[Batch]) -> Batch:
    return made if isinstance(made, Batch) else at_once(made)


def test_a_large_claim_is_committed_at_once_and_told_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes before it is told does not change it."""
    engine = filled(np.random.default_rng(3), keyed=True)
    wanted = ClaimRequest("t", ("a",), 12, 12, 0, sampler("sequential", {}), View(None, ALL_PARTS), 60.0)
    revision = engine.revision
    steps = claim_now(engine, P, wanted)
    assert isinstance(steps, GeneratorType)
    assert engine.revision == revision + 1
    indexes = np.array(next(iter(engine.leases.open.values())).indexes)
    partition = engine.partitions[P]
    expected = told(describe(partition, partition.rows.locate(indexes), indexes, wanted.view), is_large=False)
    delete_partition(engine, P, None)
    claimed = at_once(steps)
    assert isinstance(claimed, Claimed)
    assert claimed.left_s == 60.0
    assert told(claimed.batch, is_large=False) == expected


def test_a_large_insert_is_committed_at_once_and_told_in_slices() -> None:
    """What changes before it is told does not change it."""
    engine = filled(np.random.default_rng(4), keyed=True)
    view = View(None, ALL_PARTS)
    revision = engine.revision
    steps = insert(engine, P, None, RowWrite(keys=["k3", "new", *(f"k{i}" for i in range(30, 40))]), view)
    assert isinstance(steps, GeneratorType)
    assert engine.revision == revision + 1
    partition = engine.partitions[P]
    indexes = np.array([3, engine.next_index - 1, *range(30, 40)])
    expected = told(describe(partition, partition.rows.locate(indexes), indexes, view), is_large=False)
    batch, created = _changing(engine, np.random.default_rng(4), steps)
    assert created == 1
    assert told(batch, is_large=False) == expected
