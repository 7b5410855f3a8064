"""The engine's thread: nothing is answered before it is in the journal, one append serves all that was queued, an
error reaches its caller alone, and a doubt about memory or journal ends the process.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import orjson
import pytest

from core.engine import Engine
from core.errors import JournalUnavailable, NotReady, Overloaded, PartitionNotFound, Unavailable
from core.events import Change, Cleared
from core.journal import BEFORE_FIRST, Appended, MemoryJournal, Outcome
from core.journal.errors import JournalUnavailable as DiskFailed
from core.operations.consumption import read_consumption
from core.operations.delete import delete
from core.operations.parked import Parked
from core.operations.partitions import delete_partition, list_partitions
from core.reading.selectors import Selector
from core.runtime.calls import Internal
from core.runtime.executor import Executor
from core.state.cells.json_cells import Const
from tests.core.running import Gate, WatchedJournal, grow, running, same
from tests.core.world import MANY, add, add_keys, look, new_engine

pytestmark = pytest.mark.asyncio


def changes(payload: bytes) -> list[Change]:
    return msgspec.msgpack.decode(payload, type=list[Change])


async def test_a_reply_leaves_only_after_the_append() -> None:
    gate = Gate()
    async with running(WatchedJournal(gate)) as service:
        reply = service.put(add, "p")
        await gate.entered()
        await asyncio.sleep(0)
        assert not reply.done()
        gate.open()
        assert await reply == [0]


async def test_all_calls_queued_while_the_thread_was_busy_share_one_append() -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        gate = await service.hold()
        replies = [service.put(add, f"p{i}") for i in range(20)]
        gate.open()
        assert await asyncio.gather(*replies) == [[i] for i in range(20)]
        assert len(journal.payloads) == 1
        assert [change.revision for change in changes(journal.payloads[0])] == list(range(1, 21))


async def test_calls_that_change_nothing_append_nothing() -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        await service.do(add_keys, "p", ["a"])
        await service.do(add_keys, "p", ["a"])
        await service.do(look, "p")
        assert len(journal.payloads) == 1


async def test_replies_come_in_the_order_of_the_calls_and_are_rendered_in_the_thread() -> None:
    async with running() as service:
        gate = await service.hold()
        order: list[int] = []
        calls = [service.executor.submit(lambda _, n: n, order.append, n) for n in range(50)]
        assert order == []
        gate.open()
        await asyncio.gather(*calls)
        assert order == list(range(50))


async def test_a_refusal_reaches_its_caller_alone() -> None:
    async with running() as service:
        gate = await service.hold()
        before, refused, after = service.put(add, "p"), service.put(look, "absent"), service.put(add, "p")
        gate.open()
        assert await before == [0]
        with pytest.raises(PartitionNotFound):
            await refused
        assert await after == [1]
        assert service.fatal == []


def breaks(*_: object) -> None:
    raise ZeroDivisionError("a bug")


@pytest.mark.parametrize(("operation", "render"), [(breaks, same), (add, breaks)], ids=["decide", "render"])
async def test_a_bug_is_internal_for_its_caller_alone_and_the_next_call_works(
    operation: Callable[..., object], render: Callable[..., object], caplog: pytest.LogCaptureFixture
) -> None:
    async with running() as service:
        gate = await service.hold()
        broken = service.executor.submit(operation, render, "p")
        following = service.put(add, "q")
        gate.open()
        with pytest.raises(Internal):
            await broken
        assert len(await following) == 1
        assert service.fatal == []
        assert service.executor.reading.reason is None
        assert "ZeroDivisionError: a bug" in caplog.text


async def test_a_bug_in_what_wakes_a_waiter_is_internal_for_it_alone() -> None:
    async with running() as service:
        broken = service.put(lambda _: Parked("p", 60.0, breaks, breaks))  # type: ignore[arg-type, return-value]
        waiting = service.claim()
        await service.settle()
        await service.do(grow, "p")
        with pytest.raises(Internal):
            await broken
        assert await waiting == [0]
        assert service.fatal == []


def half_applied(engine: Engine) -> None:
    engine.commit(Cleared("nowhere", b""))


def refused_half_applied(engine: Engine) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.engine.apply", lambda *_: engine.get("nowhere"))
        engine.commit()


@pytest.mark.parametrize("operation", [half_applied, refused_half_applied])
async def test_a_failure_while_applying_fails_all_and_ends_the_service(operation: Callable[..., object]) -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        waiting = service.claim()
        await service.settle()
        gate = await service.hold()
        pending = [service.put(add, "p"), service.put(operation), service.put(add, "q")]
        gate.open()
        await all_fail([*pending, waiting])
        assert journal.payloads == []
        assert len(service.fatal) == 1
        assert "applied in part" in service.fatal[0]
        await refuses(service.executor)


async def all_fail(replies: list["asyncio.Future[Any]"]) -> None:
    for outcome in await asyncio.gather(*replies, return_exceptions=True):
        assert type(outcome) is JournalUnavailable


async def refuses(executor: Executor) -> None:
    with pytest.raises(Unavailable, match="it failed"):
        await executor.call(look, same, "p")


def disk_fails() -> Appended:
    raise DiskFailed("no space left")


ENDINGS: dict[str, Callable[[], Appended]] = {
    "no space left": disk_fails,
    **{
        outcome.value: lambda outcome=outcome: Appended(outcome, BEFORE_FIRST) for outcome in Outcome if outcome != "ok"
    },
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_an_append_that_is_not_ok_fails_all_and_ends_the_service(
    ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        assert await service.do(add, "p") == [0]
        waiting = service.claim()
        await service.settle()
        journal.before = ENDINGS[ending]
        gate = await service.hold()
        pending = [service.put(look, "p"), service.put(add, "p"), service.put(add, "q")]
        gate.open()
        await all_fail([*pending, waiting])
        assert len(service.fatal) == 1
        assert ending in service.fatal[0]
        await refuses(service.executor)
        assert len(journal.payloads) == 2
    critical = [record for record in caplog.records if record.levelno == logging.CRITICAL]
    assert len(critical) == 1


async def test_before_the_journal_is_replayed_calls_are_refused() -> None:
    executor = Executor(new_engine(), MemoryJournal(), lambda _: None)
    with pytest.raises(NotReady, match="starting"):
        await executor.call(add, same, "p")


async def test_a_journal_that_cannot_be_read_ends_the_service() -> None:
    ended = asyncio.get_running_loop().create_future()
    executor = Executor(new_engine(), MemoryJournal(), ended.set_result)  # not opened
    executor.start()
    assert "not open" in await ended
    await refuses(executor)
    await executor.close()


async def test_more_than_it_can_queue_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.runtime.executor.MAX_QUEUED", 3)
    async with running() as service:
        gate = await service.hold()
        replies = [service.put(add, "p") for _ in range(4)]
        with pytest.raises(Overloaded):
            service.put(add, "p")
        gate.open()
        assert len(await asyncio.gather(*replies)) == 4


async def test_close_finishes_what_is_queued() -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        gate = await service.hold()
        replies = [service.put(add, "p") for _ in range(5)]
        closing = asyncio.ensure_future(service.executor.close())
        await asyncio.sleep(0)
        late = service.put(add, "p")
        gate.open()
        await closing
        assert await asyncio.gather(*replies) == [[i] for i in range(5)]
        assert [len(changes(payload)) for payload in journal.payloads] == [6]
        assert await late == [5]


def state(engine: Engine) -> bytes:
    """All that callers can see."""
    lines, _ = list_partitions(engine, "", MANY, None)
    names = [line.partition_id for line in lines]
    seen = [engine.revision, engine.next_index, engine.deleted, [dataclasses.asdict(line) for line in lines]]
    seen += [dataclasses.asdict(look(engine, name)) for name in names]
    seen += [dataclasses.asdict(read_consumption(engine, name, "t", False, MANY, None)) for name in names]
    return orjson.dumps(seen, option=orjson.OPT_SERIALIZE_NUMPY, default=lambda value: value.decode())


async def test_a_second_executor_on_a_retained_journal_has_the_same_state() -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        await service.do(add_keys, "q", ["a", "b"])
        await service.do(lambda engine: add(engine, "p", 3, custom_meta=Const(b'{"v":1}'), group_ids=["g", 7, None]))
        await service.do(grow, "p", 3)
        assert await service.claim(2) == [5, 6]
        await service.do(lambda engine: delete(engine, "p", Selector(indexes=[2, 5])))
        await service.do(lambda engine: delete_partition(engine, "q", None))
        expected = await service.do(state)
    async with running(journal) as again:
        assert await again.do(state) == expected
        assert await again.claim() == [7]
        assert await again.do(add, "p") == [8]
