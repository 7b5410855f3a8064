"""Puts of one form, and claims of one kind, that follow each other in a drain: journal, replies, refusals and state are
byte for byte those of the same calls one after the other, whatever comes between them.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.arrays import Ints
from core.engine import Engine
from core.errors import Refused
from core.events import Change
from core.operations.claim import ClaimRequest, claim, claim_now
from core.operations.clears import ClearRequest, abort_clear, commit_clear, plan_clear
from core.operations.delete import delete
from core.operations.leases import Ack, ack
from core.operations.partitions import delete_partition, patch_partition, seal_partition
from core.operations.produce import RowWrite, insert, patch_custom_meta, produce
from core.operations.revoke import revoke
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import Sequential
from core.samplers.grpo_group import GrpoGroup
from core.snapshot.image import image
from core.state.cells.fields import Field
from core.state.cells.json_cells import Const
from core.state.rows import Rows
from core.state.tasks import Task
from core.writing.forms import Form, OneRow
from tests.core.running import WatchedJournal, running
from tests.core.test_where import parsed
from tests.core.world import Schema, add, look, new_engine
from tests.core.world import write as world_write

Step = tuple[Any, ...]
TAKE_ONE = ClaimRequest("t", ("x",), 1, 1, 0.0, Sequential(), View())
WHERE = parsed(("n", ">=", 1))
FIRST = {"x": Schema("int64", lengths=[1]), "f": Schema("uint8", shape=[1, 1]), "o": Schema(kind="object")}
FORMS = (
    Form(FIRST, {"x": Const(b'"1"'), "o": Const(b'"2"')}),
    Form(FIRST, {"x": Const(b'"9"')}),
    Form({"x": Schema("int64", lengths=[1])}, {}),
    Form({"x": Schema("float32", lengths=[1])}, {}),
    Form({"y": Schema("int64", shape=[1])}, {}),
)
GROUPS = (None, ["g"], ["h"], [7], [None], ["g", "h"])
METAS = (None, [b'{"n":1}'], [b'{"n":2}'], [b"{}"], [b"null"], [b'{"n":null}'], [b"[]"], [b'{"n":1'], [b"{}", b"{}"])


def put(
    partition: str, key: str, form: int, sizes: tuple[int, int], group: int = 1, meta: int = 1, skip: bool = False
) -> Step:
    """One row of a form: the length of its x or y, and a size of its f where it has one."""
    length, size = sizes
    row = OneRow(FORMS[form], [length, size, 1] if form < 2 else [length])
    write = RowWrite(keys=[key], group_ids=GROUPS[group], custom_meta=METAS[meta])
    return produce, partition, write, True, row, FORMS[form].backend_meta, skip


def take(size: int, grouped: bool, where: bool, wait_s: float) -> Step:
    """A claim."""
    sampler = GrpoGroup(size) if grouped else Sequential()
    return (
        claim if wait_s else claim_now,
        "p",
        ClaimRequest("t", ("x",), size, size, wait_s, sampler, View(), where=WHERE if where else None),
    )


def pick(*keys: str) -> Selector:
    return Selector(keys=list(keys))


def close(engine: Engine, how: Callable[[Engine, str], object]) -> object:
    """The newest clear that is pending, if there is one."""
    pending = [clear.clear_id for clear in engine.partitions["p"].clears.values()] if "p" in engine.partitions else []
    return how(engine, pending[-1]) if pending else None


key = st.sampled_from("abcdefgh")
puts = st.builds(
    put,
    st.sampled_from("ppppppq"),
    st.sampled_from("abcdefghijklmnop\n"),
    st.sampled_from((0, 0, 0, 0, 0, 0, 1, 2, 3, 4)),
    st.tuples(st.integers(0, 2), st.sampled_from((1, 1, 1, 2))),
    st.sampled_from((1, 1, 1, 1, 1, 0, 2, 3, 4, 5)),
    st.sampled_from((1, 1, 1, 1, 1, *range(len(METAS)))),
    st.booleans(),
)


def burst(keys: list[str], form: int, group: int, meta: int) -> list[Step]:
    """Puts that are alike but for their keys, some of which may be there."""
    return [put("p", key, form, (at, 1), group, meta) for at, key in enumerate(keys)]


bursts = st.builds(
    burst,
    st.lists(st.sampled_from("abcdefghijklmnop"), min_size=2, max_size=8),
    st.sampled_from((0, 0, 0, 2)),
    st.sampled_from((1, 1, 0)),
    st.sampled_from((1, 1, 0)),
)
others: st.SearchStrategy[Step] = st.one_of(
    st.builds(take, st.integers(1, 2), st.booleans(), st.booleans(), st.sampled_from((0.0, 30.0))),
    st.builds(lambda key: (insert, "p", None, RowWrite(keys=[key]), View()), key),
    st.builds(lambda key: (patch_custom_meta, "p", RowWrite(keys=[key], custom_meta=[b'{"n":3}'])), key),
    st.builds(lambda key: (delete, "p", pick(key)), key),
    st.builds(lambda key: (revoke, "p", pick(key), ("x",)), key),
    st.builds(lambda key, keeps: (plan_clear, "p", ClearRequest(pick(key), with_tombstones=keeps)), key, st.booleans()),
    st.sampled_from([(close, commit_clear), (close, abort_clear)]),
    st.builds(lambda most: (patch_partition, "p", None, most, None), st.integers(1, 6)),
    st.sampled_from([(seal_partition, "p"), (delete_partition, "p", None), (look, "p")]),
)
claims = st.builds(
    lambda size, wait_s, times: [take(size, grouped=False, where=False, wait_s=wait_s)] * times,
    st.integers(1, 3),
    st.sampled_from((0.0, 0.0, 30.0)),
    st.integers(2, 5),
)
single = st.one_of(puts, others).map(lambda step: [step])
steps = st.lists(st.one_of(bursts, claims, single), min_size=3, max_size=12).map(
    lambda parts: [step for part in parts for step in part]
)


def plain(value: Any) -> Any:
    """All that an outcome says."""
    if isinstance(value, Refused):
        return type(value), value.detail, value.errors, list(value.global_indexes), list(value.keys)
    if isinstance(value, Field):
        return value.name, value.head(True)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return [plain(getattr(value, field.name)) for field in fields(value)]
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


async def live(script: Sequence[Sequence[Step]], one_by_one: bool) -> tuple[list[Any], list[bytes], bytes]:
    """Outcomes, changes, image: after calls that came in these drains, or each in a drain of its own without runs."""
    journal = WatchedJournal()
    async with running(journal) as world:
        futures: list[asyncio.Future[Any]] = []
        for drain in [[step] for steps in script for step in steps] if one_by_one else script:
            gate = await world.hold()
            if one_by_one:
                world.engine.run = None
            futures += [world.executor.submit(operation, plain, *arguments) for operation, *arguments in drain]
            gate.open()
            await world.settle()
        await world.advance(60)
        outcomes = [plain(outcome) for outcome in await asyncio.gather(*futures, return_exceptions=True)]
        changes = [change for entry in journal.payloads for change in msgspec.msgpack.decode(entry, type=list[Change])]
        return outcomes, [msgspec.msgpack.encode(change) for change in changes], image(world.engine)


SOME = burst(list("abcd"), 0, 1, 1)
CLAIM = take(1, grouped=False, where=False, wait_s=0.0)
LIMIT: Step = (patch_partition, "p", None, 6, None)


@settings(max_examples=100, deadline=None)
@example(script=[[*SOME, put("p", "e", 0, (3, 2)), *burst(list("fgh"), 0, 1, 1)]])
@example(script=[[SOME[0], LIMIT, *burst(list("bcdefgh"), 0, 1, 1)]])
@example(script=[[*SOME, *[CLAIM] * 3, SOME[0], put("p", "e", 0, (3, 1))]])
@example(script=[SOME, [CLAIM] * 2, [(delete, "p", pick("c")), CLAIM, CLAIM]])
@example(script=[SOME, burst(list("efgh"), 0, 1, 1), [put("p", "x", 0, (3, 1)), (seal_partition, "p"), SOME[0]]])
@given(script=st.lists(steps, min_size=1, max_size=4))
def test_a_drain_of_puts_is_as_the_same_calls_one_by_one(script: list[list[Step]]) -> None:
    together, single = (asyncio.run(live(script, one_by_one)) for one_by_one in (False, True))
    assert together == single


@pytest.mark.asyncio
async def test_a_drain_of_puts_is_applied_as_two_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one, which begins the run, and all others."""
    added: list[int] = []
    add = Rows.add

    def count(rows: Rows, first: int, count: int, keys: Sequence[bytes] | None) -> Ints:
        added.append(count)
        return add(rows, first, count, keys)

    async with running() as world:
        await world.do(produce, *put("p", "first", 0, (5, 1))[1:])
        monkeypatch.setattr(Rows, "add", count)
        gate = await world.hold()
        futures = [world.put(produce, *put("p", f"k{n}", 0, (n, 1))[1:]) for n in range(64)]
        gate.open()
        assert [(await future).global_indexes.tolist() for future in futures] == [[n + 1] for n in range(64)]
    assert added == [1, 63]


def test_a_change_of_leases_alone_comes_after_what_was_put_off() -> None:
    engine = new_engine()
    world_write(engine, "p", add(engine, "p", 3), ["x"])
    leased = claim_now(engine, "p", replace(TAKE_ONE, task="leases", lease_s=60.0))
    for _ in range(2):
        claim_now(engine, "p", TAKE_ONE)
    assert engine.pending
    ack(engine, leased.claim_id, Ack(leased.lease.token, None, [], []))
    assert [change.revision for change in engine.log] == list(range(1, engine.revision + 1))


@pytest.mark.asyncio
async def test_a_drain_of_claims_is_applied_as_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one, which begins the run, and all others."""
    taken: list[int] = []
    consume = Task.consume

    def count(task: Task, rows: Ints) -> None:
        taken.append(len(rows))
        consume(task, rows)

    async with running() as world:
        for n in range(34):
            await world.do(produce, *put("p", f"k{n}", 0, (n, 1))[1:])
        monkeypatch.setattr(Task, "consume", count)
        gate = await world.hold()
        futures = [world.put(*take(2, grouped=False, where=False, wait_s=0.0)) for _ in range(16)]
        gate.open()
        assert [(await f).batch.global_indexes.tolist() for f in futures] == [[2 * n, 2 * n + 1] for n in range(16)]
    assert taken == [2, 30]
