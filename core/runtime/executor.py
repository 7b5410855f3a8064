"""One thread owns the engine, every tensor and the journal; the event loop only hands over calls and gets replies.

A drain: each queued call is checked, decided, applied and rendered, and after each the parked calls of partitions it
changed are re-tried, so that none who waits is overtaken; then one journal append for all and one wake-up of the loop.
Nothing leaves before the append. The one place that knows asyncio; that, and the one thread, is why it is long.
"""

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import msgspec

from core.engine import Engine
from core.errors import EpochMismatch, IdempotencyInFlight, JournalUnavailable, NotReady, Overloaded, Refused
from core.events import Kept
from core.journal.contract import BEFORE_FIRST, Appended, EntryId, Journal, Outcome
from core.journal.errors import JournalError
from core.operations import due
from core.operations.parked import Parked
from core.state.kept_replies import Keepable, Keyed, kept

from .parking_lot import ParkingLot
from .replay import replay

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
K = TypeVar("K", bound=Keepable)
Answer = tuple["asyncio.Future[Any]", object]

MAX_DRAIN = 1024
MAX_QUEUED = 50_000
LOOK_AGAIN_S = 1.0
STOPPING = "the service is stopping: send the call again"
_log = logging.getLogger("batchmeta")


class Internal(Exception):
    """An operation broke before it applied anything; the traceback is in the log."""


class Broken(Exception):
    """Memory and journal may differ: the process must end and replay."""


@dataclass(frozen=True, slots=True)
class Terms(Generic[K]):
    """On what a caller's request is taken: in this epoch alone, and once under this key.

    `again`: the reply to a key, from what was kept of the first.
    """

    epoch: int | None
    keyed: Keyed | None
    again: Callable[[Kept], K]


@dataclass(eq=False, slots=True)
class Call:
    """One caller's request on its way: what to run, how to render its result, whom to tell."""

    run: Callable[[Engine], object]
    render: Callable[[Any], Any]
    future: "asyncio.Future[Any]"
    keyed: Keyed | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """What health and metrics see: a view swapped in after each drain. `reason` is why the service is not ready."""

    reason: str | None
    revision: int
    epoch: int
    partitions: int
    waiting: int


class Executor:
    """Hands calls to the engine's thread.

    On the loop, `on_fatal(reason)` is called when the process must end, `on_closed(id)` when a part of the journal that
    no snapshot knows of is closed.
    """

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        on_fatal: Callable[[str], None],
        on_closed: Callable[[EntryId], None] = lambda _: None,
    ) -> None:
        self._engine, self._journal, self._on_fatal, self._on_closed = engine, journal, on_fatal, on_closed
        self._inbox: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._handed: list[Callable[[], object]] = []  # what came in this turn of the loop
        self._lot: ParkingLot[Call] = ParkingLot()
        self._decided: dict[str, bytes] = {}  # keys of calls whose answer is in this drain, and their digests
        self._answers: list[Answer] = []
        self._cuts: list[asyncio.Future[EntryId]] = []
        self._inflight: dict[asyncio.Future[Any], Call | None] = {}
        self._encoder = msgspec.msgpack.Encoder()
        self._last = self._closed = BEFORE_FIRST
        self._epoch = engine.epoch
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._running = True
        self._stopping = False
        self.reading = Reading("starting", 0, engine.epoch, 0, 0)

    # On the loop

    def start(self) -> None:
        """Start the thread, which replays the journal first; until then every call is refused with NotReady."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def submit(
        self, operation: Callable[Concatenate[Engine, P], R | Parked[R]], render: Callable[[R], T],
        *args: P.args, **kwargs: P.kwargs,
    ) -> "asyncio.Future[T]":  # fmt: skip
        """Queue `operation`; the future gets `render(result)`, or the Refused that it raised."""
        return self._queue(lambda engine: operation(engine, *args, **kwargs), render, _NO_TERMS)

    def submit_on(
        self, terms: Terms[K],
        operation: Callable[Concatenate[Engine, P], R | Parked[R]], render: Callable[[R], K],
        *args: P.args, **kwargs: P.kwargs,
    ) -> "asyncio.Future[K]":  # fmt: skip
        """As `submit`, for a call with terms: its key sent again, the future gets `again` of the reply that was kept.

        The future's Refused may be EpochMismatch, IdempotencyMismatch or IdempotencyInFlight too.
        """
        return self._queue(lambda engine: operation(engine, *args, **kwargs), render, terms)

    def _queue(
        self, run: Callable[[Engine], object], render: Callable[[Any], Any], terms: Terms[Any]
    ) -> "asyncio.Future[Any]":
        if self.reading.reason is not None:
            raise NotReady(f"the service is not ready: {self.reading.reason}")
        if self._inbox.qsize() + len(self._handed) > MAX_QUEUED:
            raise Overloaded
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call = Call(run, render, future, terms.keyed, terms.epoch)
        self._hand(partial(self._begin, call, terms.again))
        self._inflight[future] = call
        future.add_done_callback(partial(self._left, call))
        return future

    def _hand(self, job: Callable[[], object]) -> None:
        """To the thread, at the end of this turn of the loop: woken at the first, it would fight for the interpreter
        with the loop, which has the others to read still.
        """
        if not self._handed:
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._handed.append(job)

    def _hand_over(self) -> None:
        handed, self._handed = self._handed, []
        for job in handed:
            self._inbox.put(job)

    def cut(self) -> "asyncio.Future[EntryId]":
        """The last entry of a part of the journal that holds all that was answered before, and is closed."""
        future: asyncio.Future[EntryId] = asyncio.get_running_loop().create_future()
        self._inbox.put(partial(self._cuts.append, future))
        self._inflight[future] = None
        future.add_done_callback(self._inflight.pop)
        return future

    async def call(
        self, operation: Callable[Concatenate[Engine, P], R | Parked[R]], render: Callable[[R], T],
        *args: P.args, **kwargs: P.kwargs,
    ) -> T:  # fmt: skip
        """Run `operation(engine, *args)` in the engine's thread and await its rendered result."""
        return await self.submit(operation, render, *args, **kwargs)

    def _left(self, call: Call, future: "asyncio.Future[Any]") -> None:
        del self._inflight[future]
        if future.cancelled():
            self._hand(partial(self._lot.leave, call))

    def withdraw(self, future: "asyncio.Future[Any]", reason: Refused) -> None:
        """If its call is parked, the future gets this; else what was decided, or is to be decided at once."""
        call = self._inflight.get(future)
        if call is not None:
            self._hand(partial(self._withdraw, call, reason))

    def _abandon(self, reason: str) -> None:
        for future in list(self._inflight):
            if not future.done():
                future.set_exception(JournalUnavailable())
        self._on_fatal(reason)

    def stop_waiting(self) -> None:
        """The service is stopping: parked calls, and new ones that would wait, are answered with NotReady at once."""
        self._inbox.put(self._turn_away)

    async def close(self) -> None:
        """Finish what is queued, turn away who waits, end the thread, close the journal."""
        self.stop_waiting()
        self._hand(self._end)
        await asyncio.to_thread(self._thread.join)
        for future in list(self._inflight):
            if not future.done():  # it was queued behind the end
                future.set_exception(NotReady(STOPPING))
        self._journal.close()

    # In the thread

    def _run(self) -> None:
        failure: str | None = "the engine's thread broke; see the log"
        try:
            self._replay()
            while self._running:
                self._drain()
            failure = None
        except (JournalError, Broken) as error:
            failure = str(error)
        finally:
            if failure is not None:
                self._fail(failure)

    def _replay(self) -> None:
        self._closed, self._last = replay(self._engine, self._journal)
        due.begin_anew(self._engine)
        self._epoch = self._engine.epoch
        self._look_for_closed()
        self._read(None)

    def _drain(self) -> None:
        job = self._first_job()
        self._look_for_room()
        job()
        self._wake()
        with contextlib.suppress(queue.Empty):
            for _ in range(MAX_DRAIN):
                self._inbox.get_nowait()()
                self._wake()
        if self._engine.has_room:
            due.expire(self._engine, self._engine.clock())
        self._wake()
        for call, parked in self._lot.expired(self._engine.clock()):
            self._answer(call, partial(_retry, parked, True))
            self._wake()
        self._commit()
        self._cut()
        self._deliver()

    def _first_job(self) -> Callable[[], object]:
        """Sleeps until there is a job, or a deadline; what is due ends only while there is room to say so."""
        now, ends = self._engine.clock(), due.next_due(self._engine)
        if ends is not None and not self._engine.has_room:
            ends = now + LOOK_AGAIN_S
        deadline = _earliest(self._lot.next_deadline(), ends)
        try:
            return self._inbox.get(timeout=None if deadline is None else max(0.0, deadline - now))
        except queue.Empty:
            return _nothing

    def _begin(self, call: Call, again: Callable[[Kept], object]) -> None:
        """A call comes in: it is refused, answered from what was kept, takes the place of one that waits, or runs."""
        if call.epoch is not None and call.epoch != self._engine.epoch:
            self._answers.append((call.future, EpochMismatch()))
        elif call.keyed is None:
            self._answer(call, call.run)
        elif not call.future.cancelled():
            self._begin_keyed(call, call.keyed, again)

    def _begin_keyed(self, call: Call, keyed: Keyed, again: Callable[[Kept], object]) -> None:
        try:
            known = self._known(keyed)
        except Refused as error:
            known = error
        if isinstance(known, Call):
            self._lot.hand_over(known, call)
            self._answers.append((known.future, IdempotencyInFlight()))
        elif known is not None:
            self._answers.append((call.future, again(known) if isinstance(known, Kept) else known))
            return
        self._answer(call, call.run)

    def _known(self, keyed: Keyed) -> Call | Kept | Refused | None:
        """The same request that waits, or its reply. Raises IdempotencyMismatch, IdempotencyInFlight."""
        decided, first = self._decided.get(keyed.key), self._lot.find(keyed.key)
        if decided is not None:
            keyed.check(decided)
            raise IdempotencyInFlight
        if first is not None and first.keyed is not None:
            keyed.check(first.keyed.digest)
        return first or self._engine.replies.find(keyed)

    def _answer(self, call: Call, run: Callable[[Engine], object]) -> None:
        if call.future.cancelled():  # its client left before the decision
            self._lot.leave(call)
            return
        keyed = call.keyed
        render = call.render if keyed is None else partial(self._render, call.render, keyed, self._engine.revision)
        outcome = self._outcome(run, render)
        if isinstance(outcome, Parked):
            if not self._stopping:
                self._lot.park(call, outcome)
                return
            outcome = NotReady(STOPPING)
        self._lot.leave(call)
        self._answers.append((call.future, outcome))
        if keyed is not None:
            self._decided[keyed.key] = keyed.digest

    def _render(self, render: Callable[[Any], Keepable], keyed: Keyed, since: int, result: object) -> Keepable:
        reply = render(result)
        if reply.keep:
            self._engine.keep(kept(keyed, reply), since)
        return reply

    def _outcome(self, run: Callable[[Engine], object], render: Callable[[Any], object]) -> object:
        try:
            result = run(self._engine)
            return result if isinstance(result, Parked) else render(result)
        except Exception as error:  # the boundary: a bug reaches its caller alone, unless state was half changed
            if self._engine.applying:
                raise Broken("a change was applied in part: memory and journal may differ") from error
            if isinstance(error, Refused):
                return error
            _log.exception("a call broke before it changed anything")
            return Internal()

    def _wake(self) -> None:
        changed = self._engine.changed
        if self._engine.epoch != self._epoch:  # the state went back: who waited asked of another
            self._epoch = self._engine.epoch
            self._send_away(EpochMismatch)
        if not self._lot:
            changed.clear()
        while changed:
            for call, parked in self._lot.of(changed.pop()):
                if self._outcome(parked.test, _same):  # one that breaks is ripe: its caller is told
                    self._answer(call, partial(_retry, parked, False))

    def _commit(self) -> None:
        log = self._engine.log
        if not log:
            return
        payload = self._encoder.encode(log)
        appended = self._journal.append(self._last, payload)
        is_there = appended.outcome is Outcome.OK
        if appended.outcome is Outcome.UNKNOWN:
            appended, is_there = self._read_back(appended, payload)
        if not is_there:
            why = "fenced, another server owns its folder" if appended.outcome is Outcome.FENCED else appended.outcome
            raise Broken(f"the journal did not take a change: {why}, its last entry is {appended.last}")
        self._last = appended.last
        log.clear()
        self._look_for_closed()

    def _read_back(self, appended: Appended, payload: bytes) -> tuple[Appended, bool]:
        """Whether the entry that may be there or not is: whoever reads the journal next must see what we answer."""
        for entry in self._journal.read(self._last):
            return Appended(appended.outcome, entry.id), entry.payload == payload
        return appended, False

    def _cut(self) -> None:
        if self._cuts:
            self._closed = self._journal.cut()
            self._answers += [(future, self._closed) for future in self._cuts]
            self._cuts.clear()

    def _look_for_closed(self) -> None:
        closed = self._journal.closed()
        if closed != self._closed:
            self._closed = closed
            self._tell(partial(self._on_closed, closed))

    def tidy(self) -> None:
        """A snapshot was added, or may have been just before a kill: let the journal go of what two of them hold."""
        self._inbox.put(self._journal.tidy)

    def _look_for_room(self) -> None:
        has_room = self._journal.has_room()
        if has_room is not self._engine.has_room:
            _log.warning("the journal has room again" if has_room else "low on disk space: changes are refused")
            self._engine.has_room = has_room

    def _deliver(self) -> None:
        self._read("stopping" if self._stopping else None)
        if self._answers:
            self._tell(partial(_resolve, self._answers))
            self._answers = []
            self._decided.clear()

    def _tell(self, callback: Callable[[], None]) -> None:
        assert self._loop is not None  # noqa: S101  (for the type checker: start() has set it)
        self._loop.call_soon_threadsafe(callback)

    def _withdraw(self, call: Call, reason: Refused) -> None:
        if self._lot.leave(call):
            self._answers.append((call.future, reason))

    def _turn_away(self) -> None:
        self._stopping = True
        self._send_away(partial(NotReady, STOPPING))

    def _send_away(self, reason: Callable[[], Refused]) -> None:
        for call in self._lot.all():
            self._lot.leave(call)
            self._answers.append((call.future, reason()))

    def _end(self) -> None:
        self._running = False

    def _fail(self, reason: str) -> None:
        _log.critical("stopping: %s", reason)
        self._read(f"it failed: {reason}")
        self._tell(partial(self._abandon, reason))

    def _read(self, reason: str | None) -> None:
        engine = self._engine
        self.reading = Reading(reason, engine.revision, engine.epoch, len(engine.partitions), len(self._lot))


_NO_TERMS: Terms[Any] = Terms(None, None, lambda kept: kept)


def _same(result: object) -> object:
    return result


def _nothing() -> None:
    pass


def _earliest(*deadlines: float | None) -> float | None:
    return min((deadline for deadline in deadlines if deadline is not None), default=None)


def _retry(parked: Parked[object], is_last: bool, _: Engine) -> object:
    return parked.retry(is_last)


def _resolve(answers: list[Answer]) -> None:
    for future, outcome in answers:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
