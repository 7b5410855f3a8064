"""The engine's thread: it owns the engine, every tensor and the journal, and runs one call after the other.

Theory of operation. The thread takes jobs from its inbox. One *drain* takes all jobs that are there: each call is
checked, decided, applied and rendered, and after each the parked calls of the partitions it changed are tried again,
oldest first, so that a new call never overtakes a waiting one. Then leases, time limits and waits that are due end, and
one step is done of the work that is in slices (`core.slices`), so that no call holds the thread for long. At the end of
the drain one journal append makes all its changes durable, and one wake-up of the loop delivers all its outcomes. No
outcome leaves before the append. A refusal or a bug in a call reaches its caller alone; after a change that was applied
in part, or an append that failed, memory and journal may differ, and the process must end and replay.
"""

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from types import GeneratorType
from typing import Any

from core.engine import Engine
from core.errors import EpochMismatch, IdempotencyInFlight, NotReady, Refused
from core.events import Kept
from core.journal.contract import EntryId, Journal
from core.journal.errors import JournalError
from core.operations import expiry
from core.operations.parked import Parked
from core.slices import Sliced
from core.state.freeing import free_all
from core.state.kept_replies import Keepable, Keyed, kept
from core.state.supply.news import Lack

from .calls import Answer, Call, Reading, resolve
from .journal_writer import Broken, JournalWriter
from .outcomes import MORE, all_steps, outcome_of, same, step
from .parking_lot import ParkingLot
from .slices import Slices

MAX_DRAIN = 1024
LOOK_AGAIN_S = 1.0
STOPPING = "the service is stopping: send the call again"
_log = logging.getLogger("batchmeta")


class EngineThread:
    """The loop calls `start` and `join`, and puts the methods of the section *Jobs* into `inbox`."""

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        on_closed: Callable[[EntryId], None],
        on_failed: Callable[[str], None],
    ) -> None:
        self._engine, self._on_failed = engine, on_failed
        self._journal = JournalWriter(engine, journal, lambda closed: self._tell(partial(on_closed, closed)))
        self.inbox: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self.reading = Reading("starting", 0, engine.epoch, 0, 0)
        self.longest_hold_s = 0.0  # of one call, one step, or all that was due in one drain
        self._lot: ParkingLot[Call] = ParkingLot()
        self._slices: Slices[Call] = Slices()
        self._freeing: Sliced[None] = free_all(engine)
        self._decided: dict[str, bytes] = {}  # digests of the calls that this drain has answered, by key
        self._answers: list[Answer] = []  # of this drain
        self._cuts: list[asyncio.Future[EntryId]] = []  # resolved once this drain closes the journal's newest part
        self._epoch = engine.epoch  # when parked calls were last tried
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._running = True
        self._stopping = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Replay the journal, then take jobs. `on_closed` and `on_failed` are called on this loop."""
        self._loop = loop
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread's end, and close the journal."""
        self._thread.join()
        self._journal.close()

    # Jobs

    def begin(self, call: Call, again: Callable[[Kept], object]) -> None:
        """A new call: refuse it, answer it with a kept reply, put it in the place of a waiting one, or run it."""
        if call.epoch is not None and call.epoch != self._engine.epoch:
            self._answers.append((call.future, EpochMismatch()))
        elif call.keyed is None:
            self._answer(call, call.run)
        elif not call.future.cancelled():
            self._begin_keyed(call, call.keyed, again)

    def leave(self, call: Call) -> None:
        """The caller has gone: if its call waits, it takes nothing."""
        self._slices.drop(call)
        self._lot.caller_left(call)

    def withdraw(self, call: Call, reason: Refused) -> None:
        """The caller does not wait any more: answer its call with `reason` if it is parked."""
        self._slices.withdraw(call, reason)
        if self._lot.leave(call):
            self._slices.drop(call)
            self._answers.append((call.future, reason))

    def cut(self, future: "asyncio.Future[EntryId]") -> None:
        """Close the journal's newest part at the end of this drain; the future gets its last entry."""
        self._cuts.append(future)

    def tidy(self) -> None:
        """Drop the journal's entries that two snapshots include."""
        self._journal.tidy()

    def turn_away(self) -> None:
        """The service is stopping: answer parked calls, and from now on those that would park, with NotReady."""
        self._stopping = True
        self._send_away(partial(NotReady, STOPPING))

    def end(self) -> None:
        """End the thread after this drain."""
        self._running = False

    # The thread

    def _run(self) -> None:
        failure: str | None = "the engine's thread broke; see the log"
        try:
            self._replay()
            while self._running or self._slices:
                self._drain()
            failure = None
        except (JournalError, Broken) as error:
            failure = str(error)
        finally:
            if failure is not None:
                self._fail(failure)

    def _replay(self) -> None:
        self._journal.replay()
        self._engine.gone = []
        expiry.begin_anew(self._engine)
        self._epoch = self._engine.epoch
        self._read(None)

    def _drain(self) -> None:
        job = self._first_job()
        self._journal.look_for_room()
        self._hold(job)
        with contextlib.suppress(queue.Empty):
            for _ in range(MAX_DRAIN):
                self._hold(self.inbox.get_nowait())
        self._hold(self._engine.settle)
        self._hold(self._end_what_is_due)
        self._make_known()
        if self._slices or self._engine.gone:
            self._go_on()
            self._make_known()

    def _make_known(self) -> None:
        """Append what was changed, then deliver what was decided."""
        self._journal.commit()
        self._tell_of_cut()
        self._deliver()

    def _go_on(self) -> None:
        """One step of each kind of work that is done in slices. Nobody whose call is decided waits for it."""
        if self._slices:
            self._hold(self._take_a_step)
        if self._engine.gone:
            self._hold(partial(next, self._freeing))

    def _hold(self, job: Callable[[], object]) -> None:
        """Do one thing during which nothing else is done, and try the parked calls that it concerns."""
        began = perf_counter()
        job()
        self._wake()
        took = perf_counter() - began
        if took > self.longest_hold_s:
            self.longest_hold_s = took

    def _end_what_is_due(self) -> None:
        """End leases and rows whose time is up, then the waits of parked calls."""
        if self._engine.has_room:
            expiry.expire(self._engine, self._engine.clock())
        self._wake()
        for call, parked in self._lot.expired(self._engine.clock()):
            if call not in self._slices:
                self._answer(call, partial(_retry, parked, True))
                self._wake()

    def _take_a_step(self) -> None:
        """One step of the work whose turn it is. A call with a key ends in the step that commits its change."""
        call, steps = self._slices.turn()
        if call.future.cancelled():
            self.leave(call)
            return
        since = self._engine.revision
        outcome = self._outcome(partial(step, steps))
        if outcome is MORE and call.keyed is not None and self._engine.revision != since:
            outcome = self._outcome(partial(all_steps, steps))
        if outcome is not MORE:
            self._end_slices(call, outcome, since)

    def _end_slices(self, call: Call, outcome: object, since: int) -> None:
        """One that is to wait now looks first whether what it waits for came meanwhile, or its time is up."""
        reason = self._slices.end(call)
        if isinstance(outcome, Parked):
            if outcome.deadline <= self._engine.clock():
                self._answer(call, partial(_retry, outcome, True))
                return
            self._engine.changed.add(outcome.partition)
            outcome = reason or outcome
        self._end(call, outcome, since, is_late=True)

    def _first_job(self) -> Callable[[], object]:
        """Wait for a job or the next deadline. Without room in the journal nothing due can end: look again later."""
        now, ends = self._engine.clock(), expiry.next_due(self._engine)
        if ends is not None and not self._engine.has_room:
            ends = now + LOOK_AGAIN_S
        deadline = now if self._slices or self._engine.gone else _earliest(self._lot.next_deadline(), ends)
        try:
            return self.inbox.get(timeout=None if deadline is None else max(0.0, deadline - now))
        except queue.Empty:
            return _nothing

    def _begin_keyed(self, call: Call, keyed: Keyed, again: Callable[[Kept], object]) -> None:
        try:
            known = self._known(keyed)
        except Refused as error:
            known = error
        if isinstance(known, Call):
            self._slices.drop(known)
            self._lot.replace(known, call)
            self._answers.append((known.future, IdempotencyInFlight()))
        elif known is not None:
            self._answers.append((call.future, again(known) if isinstance(known, Kept) else known))
            return
        self._answer(call, call.run)

    def _known(self, keyed: Keyed) -> Call | Kept | Refused | None:
        """The parked call of the same request, or its kept reply. Raises IdempotencyMismatch, IdempotencyInFlight."""
        decided, first = self._decided.get(keyed.key), self._lot.find(keyed.key)
        if decided is None and first is None:
            decided = self._slices.digest_of(keyed.key)
        if decided is not None:
            keyed.check(decided)
            raise IdempotencyInFlight
        if first is not None and first.keyed is not None:
            if self._lot.is_absent(first) and first.keyed != keyed:  # it handed out nothing, so its key is free
                self._lot.leave(first)
                return None
            keyed.check(first.keyed.digest)
        return first or self._engine.replies.find(keyed)

    def _answer(self, call: Call, run: Callable[[Engine], object]) -> None:
        if call.future.cancelled():  # its client left before the decision
            self._lot.caller_left(call)
            return
        since = self._engine.revision
        outcome = self._outcome(run, call.render)
        if isinstance(outcome, GeneratorType):
            if call.keyed is None or self._engine.revision == since:
                self._slices.add(call, outcome)
                return
            outcome = self._outcome(partial(all_steps, outcome))
        self._end(call, outcome, since)

    def _end(self, call: Call, outcome: object, since: int, *, is_late: bool = False) -> None:
        """Its outcome is a reply, an error, or that it waits. `since`: the revision before it changed anything.

        One that is late to wait may have missed something: it is looked at with the next change, whatever it lacks.
        """
        keyed = call.keyed
        if isinstance(outcome, Parked):
            if not self._stopping:
                self._lot.park(call, outcome, None if is_late else self._lack(outcome))
                return
            outcome = NotReady(STOPPING)
        self._lot.leave(call)
        if keyed is not None:
            outcome = self._keep(keyed, outcome, since)
            self._decided[keyed.key] = keyed.digest
        self._answers.append((call.future, outcome))

    def _keep(self, keyed: Keyed, outcome: object, since: int) -> object:
        if isinstance(outcome, Exception):
            return outcome
        return self._outcome(lambda _: outcome, partial(self._kept, keyed, since))

    def _kept(self, keyed: Keyed, since: int, reply: Keepable) -> Keepable:
        if reply.is_kept:
            self._engine.keep_reply(kept(keyed, reply), since)
        return reply

    def _outcome(self, run: Callable[[Engine], object], render: Callable[[Any], object] = same) -> object:
        return outcome_of(self._engine, run, render)

    def _wake(self) -> None:
        changed = self._engine.changed
        if self._engine.epoch != self._epoch:  # a restore: parked calls were made for another state
            self._epoch = self._engine.epoch
            self._send_away(EpochMismatch)
            self._drop_slices()
        while changed:
            name = changed.pop()
            if not self._lot.has(name):  # so what was put off stays so
                self._lot.tell_no_more(self._engine.applied(name))
                continue
            for call, parked in self._lot.due(name, self._engine.partitions.get(name)):
                if call not in self._slices:  # else it looks again once its steps are done
                    self._look(call, parked)

    def _look(self, call: Call, parked: Parked[object]) -> None:
        if self._outcome(lambda _: parked.is_ripe()):  # one that raises is ripe: the retry tells the caller
            self._answer(call, partial(_retry, parked, False))
        else:
            self._lot.put(call, self._lack(parked))

    def _lack(self, parked: Parked[object]) -> Lack | None:
        lack = self._outcome(lambda _: parked.lacks())
        return lack if isinstance(lack, Lack) else None

    def _tell_of_cut(self) -> None:
        if self._cuts:
            closed = self._journal.cut()
            self._answers += [(future, closed) for future in self._cuts]
            self._cuts.clear()

    def _deliver(self) -> None:
        self._read("stopping" if self._stopping else None)
        if self._answers:
            self._tell(partial(resolve, self._answers))
            self._answers = []
            self._decided.clear()

    def _tell(self, callback: Callable[[], None]) -> None:
        assert self._loop is not None  # noqa: S101  (for the type checker: start() has set it)
        self._loop.call_soon_threadsafe(callback)

    def _send_away(self, reason: Callable[[], Refused]) -> None:
        for call in self._lot.all():
            self._slices.drop(call)
            self._lot.leave(call)
            self._answers.append((call.future, reason()))

    def _drop_slices(self) -> None:
        for call in self._slices.all():
            self._slices.drop(call)
            self._answers.append((call.future, EpochMismatch()))

    def _fail(self, reason: str) -> None:
        _log.critical("stopping: %s", reason)
        self._read(f"it failed: {reason}")
        self._tell(partial(self._on_failed, reason))

    def _read(self, reason: str | None) -> None:
        engine = self._engine
        self.reading = Reading(reason, engine.revision, engine.epoch, len(engine.partitions), len(self._lot))


def _nothing() -> None:
    pass


def _earliest(*deadlines: float | None) -> float | None:
    return min((deadline for deadline in deadlines if deadline is not None), default=None)


def _retry(parked: Parked[object], is_last: bool, _: Engine) -> object:
    return parked.retry(is_last)
