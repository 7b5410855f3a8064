"""The state machine: each call goes to the service and to the model, which both refuse it or both answer the same.

What a change sets free is answered as the contract orders it: calls that wait in a partition, oldest first. Rules are
in the files beside this one; here is how a call is sent, what is held after each, time, restarts and repeated calls.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from core.operations.produce import RowWrite
from tests.histories.audit import Audit
from tests.model import calls, draws
from tests.model.compare import check, dump
from tests.model.production import Model
from tests.model.said import Refusal
from tests.model.service import KEPT, Answer, Service
from tests.model.supplies import check_supplies


class MayWait(Protocol):
    """A call as waiting.py has them."""

    name: str
    wait_s: float

    def call(self) -> calls.Call: ...
    def ready(self, plain: Model) -> bool: ...
    def meet(self, answer: Answer, plain: Model, is_last: bool) -> None: ...


@dataclass
class Parked:
    """A call that waits: its key, its place in the order, since when (sent again, it keeps the place alone
    and has a new deadline), and where its answer comes."""

    what: MayWait
    key: str | None
    deadline: float
    order: int
    since: int
    future: Any


class Machine(RuleBasedStateMachine):
    """Calls, time and restarts; `form` is how calls reach the service."""

    form: ClassVar[type[Service]]

    def __init__(self) -> None:
        super().__init__()
        self.service, self.plain, self.audit = self.form(), Model(), Audit()
        self.waiting: list[Parked] = []
        self.sent: dict[str, Callable[[], Any]] = {}
        self.kept: dict[str, tuple[calls.Call, bytes]] = {}
        self.key: str | None = None
        self._orders = count()

    def teardown(self) -> None:
        self.service.close()

    @rule(operation=draws.operations, name=draws.partitions, keyed=st.booleans(), data=st.data())
    def call(self, operation: str, name: str, keyed: bool, data: st.DataObject) -> None:
        """One rule for all: Hypothesis leaves some rules out of each run, and few claims would find anything."""
        self.key = f"key-{len(self.sent)}" if keyed else None
        getattr(self, operation)(name, data)
        self.key = None

    # Calls

    def state(self) -> Any:
        """Every byte but the replies that are kept."""
        return dump(self.service.engine, "replies")

    def both(self, call: calls.Call, meant: Callable[[], Any]) -> tuple[Any, Any] | None:
        """(the service's answer, the model's), or None where both refuse."""
        self._remember(lambda: self.both(call, meant))
        before, revision = self.state(), self.plain.revision
        try:
            expected = meant()
        except Refusal as refusal:
            self._refused(self.service.do(call, self.key), refusal, before)
            return None
        answer = self.service.do(call, self.key)
        assert answer.code is None, answer
        assert (self.state() == before) == (self.plain.revision == revision)
        self._keep(self.key, call, answer)
        self.wake()
        return answer.body, expected

    def _refused(self, answer: Answer, refusal: Refusal, before: Any) -> None:
        assert answer.code in refusal.codes, answer
        if refusal.rows is not None and answer.code == "lease-lost":
            assert sorted(answer.rows) == refusal.rows
        assert self.state() == before
        assert not self.service.engine.log

    def may_wait(self, what: MayWait) -> None:
        """Send a call that is answered now, or parked. Only one partition has calls that wait at a time: in what order
        those of two would be answered is nobody's business."""
        is_ready = not what.wait_s or what.ready(self.plain)
        if not is_ready and any(parked.what.name != what.name for parked in self.waiting):
            return
        self._remember(lambda: self.may_wait(what))
        if is_ready:
            before, revision = self.state(), self.plain.revision
            self._meet(what, self.key, self.service.do(what.call(), self.key), is_last=not what.wait_s)
            assert (self.state() == before) == (self.plain.revision == revision)
            self.wake()
        else:
            self._park(what, self.key, next(self._orders))

    def _park(self, what: MayWait, key: str | None, order: int) -> None:
        future = self.service.park(what.call(), key, len(self.waiting) + 1)
        self.waiting.append(Parked(what, key, self.plain.now + what.wait_s, order, next(self._orders), future))
        self.waiting.sort(key=lambda parked: parked.order)

    def _meet(self, what: MayWait, key: str | None, answer: Answer, *, is_last: bool) -> None:
        answer.splits = self.service.splits()
        what.meet(answer, self.plain, is_last)
        if answer.code is None and answer.body.get("claim", "none") is not None:
            self._keep(key, what.call(), answer)

    def wake(self) -> None:
        """Every waiting call that can be answered now is answered."""
        again = True
        while again:
            ready = [parked for parked in list(self.waiting) if self._wakes(parked)]
            again = bool(ready)

    def _wakes(self, parked: Parked) -> bool:
        is_ready = parked.what.ready(self.plain)
        if is_ready:
            self._settle(parked, is_last=False)
        return is_ready

    def _settle(self, parked: Parked, *, is_last: bool) -> None:
        self.waiting.remove(parked)
        self._meet(parked.what, parked.key, self.service.answered(parked.future), is_last=is_last)

    # Keys

    def _remember(self, again: Callable[[], Any]) -> None:
        if self.key is not None:
            self.sent[self.key] = again

    def _keep(self, key: str | None, call: calls.Call, answer: Answer) -> None:
        if key is not None and call.changes:
            self.kept[key] = (call, answer.raw)
            while len(self.kept) > KEPT:
                del self.kept[next(iter(self.kept))]

    def call_again(self, _: str, data: st.DataObject) -> None:
        """Under its key: the first reply, byte for byte; where none is kept, it is made like any other."""
        if not self.sent:
            return
        self.key = data.draw(st.sampled_from(list(self.sent)[-9:]))
        waits = [parked for parked in self.waiting if parked.key == self.key]
        if waits:
            self._take_the_place_of(waits[0])
        elif self.key in self.kept:
            self._repeated(self.key, *self.kept[self.key])
        else:
            self.sent[self.key]()

    def _repeated(self, key: str, call: calls.Call, raw: bytes) -> None:
        before = dump(self.service.engine)
        answer = self.service.do(call, key)
        assert (answer.code, answer.raw, answer.replayed) == (None, raw, True)
        other = self.service.do(calls.insert("another", 1, RowWrite()), key)
        assert other.code == "idempotency-mismatch"
        assert dump(self.service.engine) == before

    def _take_the_place_of(self, parked: Parked) -> None:
        if not parked.what.call().changes:  # a key means nothing to a read
            return
        self.waiting.remove(parked)
        self._park(parked.what, parked.key, parked.order)
        assert self.service.answered(parked.future).code == "idempotency-in-flight"

    # Time

    def pass_time(self, _: str, data: st.DataObject) -> None:
        """Leases end, then waits do, each at its own time's order."""
        seconds = data.draw(st.sampled_from([1.0, 3.0, 10.0]))
        self.plain.now += seconds
        self.service.advance(seconds)
        self.plain.expire()
        self.wake()
        while over := [parked for parked in self.waiting if parked.deadline <= self.plain.now]:
            self._settle(min(over, key=lambda parked: (parked.deadline, parked.since)), is_last=True)
            self.wake()

    def restart(self, _: str, __: st.DataObject) -> None:
        before = dump(self.service.engine)
        self.service.restart()
        self.plain.restart()
        self.waiting.clear()
        assert dump(self.service.engine) == before

    # What holds after each call

    @invariant()
    def all_that_can_be_seen_is_the_models(self) -> None:
        check(self.service, self.plain)

    @invariant()
    def nobody_else_was_answered(self) -> None:
        self.service.settle()
        assert not any(parked.future.done() for parked in self.waiting)

    @invariant()
    def supplies_equal_a_fresh_scan(self) -> None:
        check_supplies(self.service.engine, self.plain)

    @invariant()
    def the_journal_keeps_the_laws_of_delivery(self) -> None:
        for change in self.service.changes():
            self.audit.take(change)
        for name, partition in self.plain.state.partitions.items():
            for task, kept in partition.tasks.items():
                there, gone = partition.rows.keys(), partition.inserted - len(partition.held)
                leased = {*kept.leased, *kept.held}
                held = [len(there & set(indexes)) for indexes in (leased, kept.consumed, kept.dead)]
                account = (partition.inserted, len(there) - sum(held), *held, len(partition.clearing), gone)
                assert self.audit.account(name, task) == account
