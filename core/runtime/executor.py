"""The executor: hands calls from the event loop to the engine's thread, and gives their outcomes back.

This is the loop's half; `engine_thread.py` is the thread's. All calls of one turn of the loop are handed over together:
a thread that wakes at the first would compete with the loop, which has yet to read the others, for the interpreter.
Outcomes come back the same way: one wake-up of the loop for each drain. In core only `runtime/` uses asyncio.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from core.engine import Engine
from core.errors import JournalUnavailable, NotReady, Overloaded, Refused
from core.journal.contract import EntryId, Journal
from core.operations.parked import Outcome
from core.slices import Sliced
from core.state.kept_replies import Keepable

from .calls import NO_PRECONDITIONS, Call, Preconditions, Reading
from .engine_thread import STOPPING, EngineThread

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
K = TypeVar("K", bound=Keepable)

MAX_QUEUED = 50_000


class Executor:
    """Runs operations in the engine's thread.

    On the loop, `on_fatal(reason)` is called when the process must end, `on_closed(id)` when a part of the journal is
    closed of which there is no snapshot yet.
    """

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        on_fatal: Callable[[str], None],
        on_closed: Callable[[EntryId], None] = lambda _: None,
    ) -> None:
        self._on_fatal = on_fatal
        self._thread = EngineThread(engine, journal, on_closed, self._abandon)
        self._jobs: list[Callable[[], object]] = []  # of this turn of the loop
        self._inflight: dict[asyncio.Future[Any], Call | None] = {}  # without an outcome so far

    @property
    def reading(self) -> Reading:
        """Revision, epoch and counts as of the last drain, and why the service is not ready, if it is not."""
        return self._thread.reading

    def longest_hold_s(self) -> float:
        """The longest time in seconds for which one call, one step of a call, or all that came due at once held the
        engine's thread, since this was last asked. Appends to the journal, which end a drain, do not count.
        """
        longest, self._thread.longest_hold_s = self._thread.longest_hold_s, 0.0
        return longest

    def start(self) -> None:
        """Start the thread, which replays the journal first; until then every call is refused with NotReady."""
        self._thread.start(asyncio.get_running_loop())

    def submit(
        self,
        operation: Callable[Concatenate[Engine, P], Outcome[R]],
        render: Callable[[R], T | Sliced[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> "asyncio.Future[T]":
        """Queue `operation`; the future gets `render(result)`, or the Refused that it raised."""
        return self._queue(lambda engine: operation(engine, *args, **kwargs), render, NO_PRECONDITIONS)

    def submit_on(
        self,
        preconditions: Preconditions[K],
        operation: Callable[Concatenate[Engine, P], Outcome[R]],
        render: Callable[[R], K | Sliced[K]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> "asyncio.Future[K]":
        """As `submit`, for a call with preconditions: where its key was sent before, the future gets `again(kept)`.

        The future's Refused may be EpochMismatch, IdempotencyMismatch or IdempotencyInFlight too.
        """
        return self._queue(lambda engine: operation(engine, *args, **kwargs), render, preconditions)

    def _queue(
        self, run: Callable[[Engine], object], render: Callable[[Any], Any], preconditions: Preconditions[Any]
    ) -> "asyncio.Future[Any]":
        if self.reading.reason is not None:
            raise NotReady(f"the service is not ready: {self.reading.reason}")
        if self._thread.inbox.qsize() + len(self._jobs) > MAX_QUEUED:
            raise Overloaded
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call = Call(run, render, future, preconditions.keyed, preconditions.epoch)
        self._enqueue(partial(self._thread.begin, call, preconditions.again))
        self._inflight[future] = call
        future.add_done_callback(partial(self._left, call))
        return future

    def _enqueue(self, job: Callable[[], object]) -> None:
        """Hand a job to the thread at the end of this turn of the loop."""
        if not self._jobs:
            asyncio.get_running_loop().call_soon(self._send_jobs)
        self._jobs.append(job)

    def _send_jobs(self) -> None:
        jobs, self._jobs = self._jobs, []
        for job in jobs:
            self._thread.inbox.put(job)

    async def call(
        self,
        operation: Callable[Concatenate[Engine, P], Outcome[R]],
        render: Callable[[R], T | Sliced[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run `operation(engine, *args)` in the engine's thread and await its rendered result."""
        return await self.submit(operation, render, *args, **kwargs)

    def _left(self, call: Call, future: "asyncio.Future[Any]") -> None:
        del self._inflight[future]
        if future.cancelled():
            self._enqueue(partial(self._thread.leave, call))

    def withdraw(self, future: "asyncio.Future[Any]", reason: Refused) -> None:
        """Answer a parked call with `reason`. A call that is not parked gets its own outcome."""
        call = self._inflight.get(future)
        if call is not None:
            self._enqueue(partial(self._thread.withdraw, call, reason))

    def cut(self) -> "asyncio.Future[EntryId]":
        """Close the journal's newest part, which includes all calls answered so far. The future gets its last entry."""
        future: asyncio.Future[EntryId] = asyncio.get_running_loop().create_future()
        self._thread.inbox.put(partial(self._thread.cut, future))
        self._inflight[future] = None
        future.add_done_callback(self._inflight.pop)
        return future

    def tidy(self) -> None:
        """Drop the journal's entries that two snapshots include. Called once a snapshot is added, and at the start."""
        self._thread.inbox.put(self._thread.tidy)

    def _abandon(self, reason: str) -> None:
        """The thread failed: the outcome of the calls it had is unknown."""
        for future in list(self._inflight):
            if not future.done():
                future.set_exception(JournalUnavailable())
        self._on_fatal(reason)

    def stop_waiting(self) -> None:
        """The service is stopping: parked calls, and new ones that would wait, are answered with NotReady at once."""
        self._thread.inbox.put(self._thread.turn_away)

    async def close(self) -> None:
        """Answer parked calls with NotReady, finish queued ones, end the thread, close the journal."""
        self.stop_waiting()
        self._enqueue(self._thread.end)
        await asyncio.to_thread(self._thread.join)
        for future in list(self._inflight):
            if not future.done():  # its job came after the thread's last one
                future.set_exception(NotReady(STOPPING))
