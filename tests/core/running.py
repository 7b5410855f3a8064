"""An executor that really runs, in a small world: its journal is watched and its clock is moved by calls.

No test lives here. `settle` is a call like any other: calls are taken in order, so all that came before it were
looked at; no test sleeps to be sure of that.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from core.engine import Engine
from core.journal import Appended, EntryId, MemoryJournal
from core.operations.claim import Answer, Claimed, ClaimRequest, claim
from core.reading.batch import View
from core.runtime.executor import Executor
from core.samplers import Sampler, Sequential
from tests.core.world import Clock, add, new_engine, write

TIMEOUT_S = 20


class WatchedJournal(MemoryJournal):
    """Keeps what it was asked to append; `before` runs in front of each append, in the engine's thread."""

    def __init__(self, before: Callable[[], Appended | None] = lambda: None) -> None:
        super().__init__(retain=True)
        self.payloads: list[bytes] = []
        self.before = before
        self.room = True

    def has_room(self) -> bool:
        return self.room

    def append(self, expected_last: EntryId, payload: bytes) -> Appended:
        self.payloads.append(payload)
        return self.before() or super().append(expected_last, payload)


class Gate:
    """Where a thread waits until a test lets it go on; `before` is done first, in the test's thread."""

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        self._entered, self._open, self._before = threading.Event(), threading.Event(), before

    def __call__(self, _: object = None) -> None:
        self._entered.set()
        assert self._open.wait(TIMEOUT_S)

    async def entered(self) -> None:
        assert await asyncio.to_thread(self._entered.wait, TIMEOUT_S)

    def open(self) -> None:
        self._before()
        self._open.set()


def same(result: Any) -> Any:
    """A reply rendered as it is."""
    return result


def grow(engine: Engine, partition: str, count: int = 1) -> list[int]:
    """New rows that have field `x`; their indexes."""
    indexes = add(engine, partition, count)
    write(engine, partition, indexes, ["x"])
    return indexes


def handed(answer: Answer) -> object:
    """The indexes of a batch, or the answer that there was none."""
    return answer.batch.global_indexes.tolist() if isinstance(answer, Claimed) else answer


@dataclass
class Running:
    """An executor with its engine; `fatal` holds what it said when it had to end."""

    engine: Engine
    executor: Executor
    journal: MemoryJournal
    fatal: list[str] = field(default_factory=list)

    def put(self, operation: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":
        """Queue a call."""
        return self.executor.submit(operation, same, *args)

    async def do(self, operation: Callable[..., Any], *args: Any) -> Any:
        """Make a call."""
        return await self.put(operation, *args)

    async def hold(self) -> Gate:
        """The thread stands in an operation until the gate is opened, so that calls queue up behind it, all of them."""
        gate = Gate(self.executor._send_jobs)
        self.put(gate).add_done_callback(asyncio.Future.exception)  # its answer is of no interest
        await gate.entered()
        return gate

    async def settle(self) -> None:
        """All calls queued, or cancelled, so far were looked at, and whatever they answered has reached the loop."""
        await asyncio.sleep(0)  # who cancelled is told of by the loop, in its next turn
        await self.do(lambda _: None)

    async def advance(self, seconds: float) -> None:
        """Time passes."""

        def move(engine: Engine) -> None:
            assert isinstance(engine.clock, Clock)
            engine.clock.now += seconds

        await self.do(move)
        await self.settle()

    def claim(
        self, size: int = 1, least: int | None = None, partition: str = "p", sampler: Sampler | None = None
    ) -> "asyncio.Future[Any]":
        """A claim of field `x` for one task that waits up to 60 s."""
        wanted = ClaimRequest("t", ("x",), size, least or size, 60.0, sampler or Sequential(), View())
        return self.executor.submit(claim, handed, partition, wanted)


@asynccontextmanager
async def running(journal: MemoryJournal | None = None) -> AsyncIterator[Running]:
    """An executor that has replayed its journal; closed in the end, its journal too."""
    journal = journal or WatchedJournal()
    journal.open()
    engine = new_engine()
    fatal: list[str] = []
    executor = Executor(engine, journal, fatal.append)
    replayed = threading.Event()
    executor._thread.inbox.put(replayed.set)
    executor.start()
    assert await asyncio.to_thread(replayed.wait, TIMEOUT_S)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield Running(engine, executor, journal, fatal)
    finally:
        await executor.close()
