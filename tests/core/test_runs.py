"""Puts of one form, and claims of one kind, that follow each other in a drain: journal, replies, refusals and state are
byte for byte those of the same calls one after the other, whatever comes between them.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.arrays import Ints
from core.errors import Refused
from core.events import Change
from core.operations.claim import ClaimRequest, claim_now
from core.operations.delete import delete
from core.operations.leases import Ack, ack
from core.operations.partitions import patch_partition, seal_partition
from core.operations.produce import produce
from core.reading.batch import View
from core.samplers import Sequential
from core.snapshot.image import image
from core.state.cells.fields import Field
from core.state.rows import Rows
from core.state.tasks import Task
from tests.core.run_steps import Step, burst, pick, put, settle, steps, take
from tests.core.running import WatchedJournal, running
from tests.core.world import add, new_engine
from tests.core.world import write as world_write


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
        world.engine.token = lambda: f"token-{world.engine.revision}"  # the same whatever is tried in between
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


TAKE_ONE = ClaimRequest("t", ("x",), 1, 1, 0.0, Sequential(), View())
SOME = burst(list("abcd"), 0, 1, 1)
CLAIM = take(1, grouped=False, where=False, wait_s=0.0)
LEASED = take(1, grouped=False, where=False, wait_s=0.0, lease_s=60.0, task="leases")
LIMIT: Step = (patch_partition, "p", None, 6, None)


@settings(max_examples=100, deadline=None)
@example(script=[[*SOME, put("p", "e", 0, (3, 2)), *burst(list("fgh"), 0, 1, 1)]])
@example(script=[[SOME[0], LIMIT, *burst(list("bcdefgh"), 0, 1, 1)]])
@example(script=[[*SOME, *[CLAIM] * 3, SOME[0], put("p", "e", 0, (3, 1))]])
@example(script=[SOME, [CLAIM] * 2, [(delete, "p", pick("c")), CLAIM, CLAIM]])
@example(script=[SOME, burst(list("efgh"), 0, 1, 1), [put("p", "x", 0, (3, 1)), (seal_partition, "p"), SOME[0]]])
@example(script=[[*SOME, LEASED, CLAIM, CLAIM, (settle, "accept"), *burst(list("efgh"), 0, 1, 1), CLAIM]])
@example(script=[[*SOME, LEASED, (settle, "release"), put("p", "e", 0, (1, 1), mode="update"), CLAIM, CLAIM]])
@example(script=[[*SOME, put("p", "e", 0, (1, 1), meta=6, mode="update"), put("p", "f", 0, (1, 1), meta=6)]])
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
