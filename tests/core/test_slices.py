"""Work in slices: other calls run between its steps, in turn with other such work. A reply stands with its change.

Who leaves, a restore or an error ends it where it stands; one that waits in the end misses nothing of what came.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from core.engine import Engine
from core.errors import EpochMismatch, IdempotencyInFlight, Invalid, NotReady, PartitionNotFound
from core.operations.checkpoints import image_of, restore
from core.operations.parked import Parked
from core.runtime.calls import Internal
from core.slices import Sliced, at_once
from tests.core.running import Running, WatchedJournal, running
from tests.core.test_checkpoints import saved_of
from tests.core.test_keyed_calls import KEY, OTHER, changes, said, send
from tests.core.world import Clock, add

pytestmark = pytest.mark.asyncio
Log = list[object]


class Work:
    """An operation in slices: each step is noted in `log`, with what `between` queues as jobs behind it."""

    def __init__(self, log: Log, name: str, steps: int = 3, between: Callable[[], object] | None = None) -> None:
        self.log, self.name, self.steps, self.between = log, name, steps, between
        self.closed = False
        self.last: Callable[[Engine], object] = lambda _: self.name

    def __call__(self, engine: Engine, *_: object) -> Sliced[object]:
        try:
            for number in range(self.steps):
                self.log.append(f"{self.name}{number}")
                if self.between is not None:
                    self.between()
                yield
        finally:
            self.closed = True
        return self.last(engine)


def queue(service: Running, log: Log, what: str) -> Callable[[], None]:
    """Queues a job of another call in the engine's thread, from inside it."""
    return lambda: service.executor._thread.inbox.put(partial(log.append, what))


async def test_at_once_does_all_steps() -> None:
    log: Log = []
    assert at_once(Work(log, "a")(None)) == "a"  # type: ignore[arg-type]
    assert log == ["a0", "a1", "a2"]


async def test_other_calls_run_between_two_steps() -> None:
    log: Log = []
    async with running() as service:
        assert await service.do(Work(log, "a", between=queue(service, log, "other"))) == "a"
    assert log == ["a0", "other", "a1", "other", "a2", "other"]


async def test_works_take_turns() -> None:
    log: Log = []
    async with running() as service:
        gate = await service.hold()
        both = [service.put(Work(log, name)) for name in "ab"]
        gate.open()
        assert await asyncio.gather(*both) == ["a", "b"]
    assert log == ["a0", "b0", "a1", "b1", "a2", "b2"]


async def test_a_result_can_be_rendered_in_slices() -> None:
    log: Log = []

    def render(result: object) -> Sliced[object]:
        return Work(log, f"{result}!")(None)  # type: ignore[arg-type]

    async with running() as service:
        assert await service.executor.submit(lambda _: "b", render) == "b!"
        assert await service.executor.submit(Work(log, "a", 1), render) == "a!"
    assert log == ["b!0", "b!1", "b!2", "a0", "a!0", "a!1", "a!2"]


async def test_a_refusal_or_a_bug_in_a_step_reaches_its_caller_alone() -> None:
    def refuse(_: Engine) -> object:
        raise PartitionNotFound

    def fail(_: Engine) -> object:
        raise ZeroDivisionError

    async with running() as service:
        refused, broken = Work([], "a"), Work([], "b")
        refused.last, broken.last = refuse, fail
        calls = [service.put(work) for work in (refused, broken, Work([], "c"))]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [PartitionNotFound, Internal, str]
        assert not service.fatal


async def test_when_the_caller_leaves_nothing_more_is_done() -> None:
    log: Log = []
    async with running() as service:
        work = Work(log, "a", 1_000_000, between=lambda: None)
        call = service.put(work)
        while not log:
            await service.settle()
        call.cancel()
        await service.settle()
        assert work.closed
        assert not service.executor._thread._slices
        assert len(log) < 1_000_000


async def test_a_restore_answers_work_of_the_time_before() -> None:
    async with running() as service:
        await service.do(add, "p")
        work = Work([], "a", 1_000_000)
        call = service.put(work)
        await service.settle()
        await service.do(lambda engine: restore(engine, saved_of(engine), unproduced=False) and None)
        with pytest.raises(EpochMismatch):
            await call
        assert work.closed


async def test_work_is_done_before_the_thread_ends() -> None:
    async with running() as service:
        call = service.put(Work([], "a", 50))
    assert await call == "a"


async def test_what_would_wait_when_the_service_stops_is_told_so() -> None:
    async with running() as service:
        work = Work([], "a", 50)
        work.last = waiting(lambda: False)
        call = service.put(work)
    with pytest.raises(NotReady):
        await call


def waiting(is_ripe: Callable[[], bool], deadline: float = 60.0) -> Callable[[Engine], Parked[Any]]:
    """An operation that waits until it is ripe, or its time is up."""

    def retry(is_last: bool) -> Any:
        return "late" if is_last else "ripe" if is_ripe() else waiting(is_ripe, deadline)(None)  # type: ignore[arg-type]

    return lambda _: Parked("p", deadline, is_ripe, retry)


async def test_a_change_between_its_steps_wakes_what_waits_in_the_end() -> None:
    async with running() as service:
        work = Work([], "a", between=lambda: add(service.engine, "p"))
        work.last = waiting(lambda: service.engine.partitions["p"].rows.live_count == 3)
        assert await service.do(work) == "ripe"  # no change comes after the last step


async def test_a_wait_whose_time_is_up_after_the_last_step_is_over() -> None:
    async with running() as service:
        clock = service.engine.clock
        assert isinstance(clock, Clock)
        work = Work([], "a", between=lambda: setattr(clock, "now", 100.0))
        work.last = waiting(lambda: False)
        assert await service.do(work) == "late"


async def test_a_waiting_call_whose_time_is_up_between_the_steps_of_its_retry_is_answered() -> None:
    async with running() as service:
        clock = service.engine.clock
        assert isinstance(clock, Clock)
        log: Log = []
        work = Work(log, "a", between=lambda: setattr(clock, "now", 100.0))
        work.last = waiting(lambda: False)

        def retry(is_last: bool) -> Any:
            return "late" if is_last else work(service.engine)

        call = service.put(lambda _: Parked("p", 60.0, lambda: True, retry))
        await service.do(add, "p")
        assert await call == "late"
        assert log == ["a0", "a1", "a2"]
        await service.settle()
        assert service.executor.reading.waiting == 0


async def test_a_waiting_call_is_not_tried_a_second_time_during_the_steps_of_its_retry() -> None:
    tried: Log = []
    async with running() as service:
        work = Work([], "a", between=lambda: add(service.engine, "p"))

        def retry(_: bool) -> Any:
            tried.append(1)
            return work(service.engine)

        call = service.put(lambda _: Parked("p", 60.0, lambda: True, retry))
        await service.do(add, "p")
        assert await call == "a"
    assert tried == [1]


async def test_withdrawn_during_its_steps_it_does_not_wait() -> None:
    async with running() as service:
        gate = await service.hold()
        work = Work([], "a")
        work.last = waiting(lambda: False)
        call = service.put(work)
        service.executor.withdraw(call, Invalid.at("connection", "gone"))
        gate.open()
        with pytest.raises(Invalid):
            await call


async def test_the_reply_to_a_key_stands_in_the_entry_of_its_change() -> None:
    async with running() as service:
        work = Work([], "a")
        work.last = lambda engine: add(engine, "p")
        first = await send(service, KEY, work)
        again = await send(service, KEY, work)
        assert again.replayed
        assert said(again) == said(first)
        assert isinstance(service.journal, WatchedJournal)
        (change,) = changes(service.journal)
        assert change.events
        assert change.kept is not None


async def test_a_key_whose_change_is_made_before_the_last_step_is_finished_in_that_step() -> None:
    log: Log = []
    async with running() as service:

        def operation(engine: Engine, partition: str) -> Sliced[object]:
            yield
            add(engine, partition)
            queue(service, log, "other")()
            for _ in range(3):
                log.append("step")
                yield
            return "made"

        await send(service, KEY, operation)
        await service.settle()
        assert log == ["step", "step", "step", "other"]
        assert isinstance(service.journal, WatchedJournal)
        (change,) = changes(service.journal)
        assert change.kept is not None


async def test_a_key_that_is_in_work_is_in_flight() -> None:
    async with running() as service:
        gate = await service.hold()
        first, second = send(service, KEY, Work([], "a")), send(service, KEY, Work([], "a"))
        other = send(service, OTHER, Work([], "a"))
        gate.open()
        outcomes = await asyncio.gather(first, second, other, return_exceptions=True)
        assert [type(outcome).__name__ for outcome in outcomes] == [
            "Answered",
            "IdempotencyInFlight",
            "IdempotencyMismatch",
        ]
        assert isinstance(outcomes[1], IdempotencyInFlight)


async def test_the_longest_hold_is_told_once() -> None:
    async with running() as service:
        await service.do(image_of)
        assert service.executor.longest_hold_s() > 0
        assert service.executor.longest_hold_s() == 0
