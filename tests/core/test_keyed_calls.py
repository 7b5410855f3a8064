"""Calls with a key in the engine's thread: run once, their reply kept in the entry of their change, over a restart too;
sent again while the first waits, they wait in its place; while it is decided, they are refused.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from core.errors import IdempotencyInFlight, IdempotencyMismatch, NotReady, PartitionCleared, PartitionNotFound
from core.events import Change, Kept
from core.operations.claim import Claimed, ClaimRequest, claim
from core.operations.partitions import delete_partition
from core.reading.batch import View
from core.runtime import parking_lot
from core.runtime.calls import Preconditions
from core.samplers import Sequential
from core.state.kept_replies import Keyed
from tests.core.running import Gate, Running, WatchedJournal, grow, handed, running
from tests.core.world import add, add_keys, look, write
from tests.model.compare import dump

pytestmark = pytest.mark.asyncio
KEY = Keyed("k", b"d" * 32)
OTHER = Keyed("k", b"e" * 32)


@dataclass(frozen=True)
class Answered:
    """A rendered reply, as the edge makes them."""

    status: int
    body: bytes
    etag: str | None = None
    is_kept: bool = True
    replayed: bool = False


def rendered(result: Any) -> Answered:
    return Answered(201, repr(result).encode(), '"tag"')


def claimed(result: Any) -> Answered:
    return Answered(201, repr(handed(result)).encode(), None, isinstance(result, Claimed))


def again(reply: Kept) -> Answered:
    return Answered(reply.status, reply.body, reply.etag, replayed=True)


def send(service: Running, keyed: Keyed, operation: Any = add, *args: Any) -> "asyncio.Future[Answered]":
    """Queue a call with a key; by default the insert of one row."""
    return service.executor.submit_on(Preconditions(None, keyed, again), operation, rendered, *(args or ("p",)))


def send_claim(service: Running, keyed: Keyed, size: int = 1, wait_s: float = 60.0) -> "asyncio.Future[Answered]":
    """Queue a claim that waits."""
    wanted = ClaimRequest("t", ("x",), size, size, wait_s, Sequential(), View())
    return service.executor.submit_on(Preconditions(None, keyed, again), claim, claimed, "p", wanted)


def said(reply: Answered) -> tuple[int, bytes, str | None]:
    return reply.status, reply.body, reply.etag


def changes(journal: WatchedJournal) -> list[Change]:
    return [change for payload in journal.payloads for change in msgspec.msgpack.decode(payload, type=list[Change])]


async def test_sent_again_it_gets_the_first_reply_and_changes_nothing() -> None:
    async with running() as service:
        first = await send(service, KEY)
        assert not first.replayed
        for _ in range(3):
            reply = await send(service, KEY)
            assert reply.replayed
            assert said(reply) == said(first) == (201, b"[0]", '"tag"')
        assert service.engine.revision == 1
        assert await send(service, Keyed("k2", KEY.digest)) == rendered([1])


async def test_another_request_under_the_key_is_refused_and_the_first_reply_stays() -> None:
    async with running() as service:
        first = await send(service, KEY)
        with pytest.raises(IdempotencyMismatch):
            await send(service, OTHER)
        assert said(await send(service, KEY)) == said(first)
        assert service.engine.revision == 1


async def test_key_and_reply_are_in_the_change_of_the_call() -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        gate = await service.hold()
        calls = [service.put(add, "q"), send(service, KEY), service.put(add, "q")]
        gate.open()
        await asyncio.gather(*calls)
        before, with_key, after = changes(journal)
        assert (before.kept, after.kept) == (None, None)
        assert [event.partition for event in with_key.events] == ["p", "p"]
        assert with_key.kept == Kept("k", KEY.digest, 201, b"[1]", '"tag"')
        assert [before.revision, with_key.revision, after.revision] == [1, 2, 3]


async def test_a_reply_to_a_call_that_changed_nothing_is_kept_too_and_the_revision_stays() -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        await service.do(add_keys, "p", ["a"])
        first = await send(service, KEY, add_keys, "p", ["a"])
        await service.do(add_keys, "p", ["b"])
        assert [(change.revision, len(change.events)) for change in changes(journal)] == [(1, 2), (1, 0), (2, 1)]
        assert said(await send(service, KEY, add_keys, "p", ["a"])) == said(first)
    async with running(journal) as anew:
        assert anew.engine.revision == 2
        assert said(await send(anew, KEY, add_keys, "p", ["a"])) == said(first)


async def test_a_refusal_is_forgotten_at_once() -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        with pytest.raises(PartitionNotFound):
            await send(service, KEY, write, "p", [0], ["x"])
        assert (len(service.engine.replies), journal.payloads) == (0, [])
        assert await send(service, OTHER) == rendered([0])


async def test_a_claim_that_handed_out_nothing_is_forgotten_at_once() -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        await send_claim(service, KEY, wait_s=0.0)
        assert (len(service.engine.replies), journal.payloads) == (0, [])
        await service.do(grow, "p")
        first = await send_claim(service, KEY, wait_s=0.0)
        assert first == Answered(201, b"[0]")
        await service.do(grow, "p")
        assert said(await send_claim(service, KEY, wait_s=0.0)) == said(first)


async def test_a_restart_keeps_replies_and_everything_else() -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        firsts = [await send(service, Keyed(f"k{i}", KEY.digest)) for i in range(5)]
        await service.do(grow, "p")
        taken = await send_claim(service, Keyed("c", KEY.digest))
        state = await service.do(dump)
        assert len(service.engine.replies) == 6
    async with running(journal) as anew:
        assert await anew.do(dump) == state
        for i, first in enumerate(firsts):
            assert said(await send(anew, Keyed(f"k{i}", KEY.digest))) == said(first)
        assert said(await send_claim(anew, Keyed("c", KEY.digest))) == said(taken)
        with pytest.raises(IdempotencyMismatch):
            await send(anew, Keyed("k0", OTHER.digest))
        assert await anew.do(dump) == state


async def test_a_reply_kept_leaves_only_after_the_append_and_meanwhile_the_same_call_is_refused() -> None:
    gate = Gate()
    async with running(WatchedJournal(gate)) as service:
        holding = await service.hold()
        first, second, other = send(service, KEY), send(service, KEY), send(service, OTHER)
        holding.open()
        await gate.entered()
        assert not any(call.done() for call in (first, second, other))
        gate.open()
        assert await first == rendered([0])
        with pytest.raises(IdempotencyInFlight):
            await second
        with pytest.raises(IdempotencyMismatch):
            await other
        assert said(await send(service, KEY)) == said(await first)
        assert service.engine.revision == 1


async def test_sent_again_while_the_first_waits_it_takes_its_place_in_the_order() -> None:
    async with running() as service:
        first, next_one = send_claim(service, KEY), service.claim()
        await service.settle()
        second = send_claim(service, KEY)
        with pytest.raises(IdempotencyInFlight):
            await first
        await service.settle()
        assert (second.done(), service.executor.reading.waiting) == (False, 2)
        await service.do(grow, "p")
        assert await second == Answered(201, b"[0]")
        await service.settle()
        assert not next_one.done()
        await service.do(grow, "p")
        assert await next_one == [1]
        assert said(await send_claim(service, KEY)) == (201, b"[0]", None)


async def test_one_that_took_a_place_has_its_own_deadline() -> None:
    async with running() as service:
        first = send_claim(service, KEY)
        await service.advance(40)
        second = send_claim(service, KEY)
        with pytest.raises(IdempotencyInFlight):
            await first
        await service.advance(20)
        await service.settle()
        assert not second.done()
        await service.advance(40)
        assert (await second).status == 201
        await service.settle()
        assert service.executor.reading.waiting == 0
        assert len(service.engine.replies) == 0


async def test_at_the_same_moment_with_the_same_deadline_one_takes_the_place_of_the_other() -> None:
    async with running() as service:
        calls = [send_claim(service, KEY) for _ in range(4)]
        await service.settle()
        await service.do(grow, "p")
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [IdempotencyInFlight] * 3 + [Answered]


async def test_another_request_leaves_the_one_that_waits_alone() -> None:
    async with running() as service:
        first = send_claim(service, KEY)
        with pytest.raises(IdempotencyMismatch):
            await send_claim(service, OTHER, 2)
        await service.do(grow, "p")
        assert await first == Answered(201, b"[0]")


async def test_when_the_first_leaves_after_it_was_replaced_the_second_waits_on() -> None:
    async with running() as service:
        first = send_claim(service, KEY)
        await service.settle()
        gate = await service.hold()
        second = send_claim(service, KEY)
        first.cancel()
        gate.open()
        await service.settle()
        assert service.executor.reading.waiting == 1
        await service.do(grow, "p")
        assert await second == Answered(201, b"[0]")


async def test_when_the_second_leaves_nobody_waits_and_the_key_is_free() -> None:
    async with running() as service:
        first = send_claim(service, KEY)
        await service.settle()
        second = send_claim(service, KEY)
        await service.settle()
        assert isinstance(first.exception(), IdempotencyInFlight)
        second.cancel()
        await service.settle()
        await service.do(grow, "p")
        assert await send_claim(service, OTHER) == Answered(201, b"[0]")


async def test_sent_again_after_its_caller_left_it_has_its_place_among_those_who_wait() -> None:
    async with running() as service:
        first = send_claim(service, KEY)
        await service.settle()
        other = service.claim()
        first.cancel()
        await service.settle()
        second = send_claim(service, KEY)
        await service.settle()
        await service.do(grow, "p")
        assert await second == Answered(201, b"[0]")
        assert not other.done()


async def test_while_its_caller_is_away_it_takes_nothing() -> None:
    async with running() as service:
        first = send_claim(service, KEY)
        await service.settle()
        other = service.claim()
        first.cancel()
        await service.do(grow, "p")
        assert await other == [0]
        second = send_claim(service, KEY)
        await service.do(grow, "p")
        assert await second == Answered(201, b"[1]")


async def test_only_so_many_places_are_kept_for_callers_who_are_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking_lot, "MAX_ABSENT", 2)
    async with running() as service:
        for i in range(5):
            send_claim(service, Keyed(f"k{i}", KEY.digest)).add_done_callback(lambda _: None)
        await service.settle()
        for future in list(service.executor._inflight):
            future.cancel()
            await service.settle()
        assert [call.keyed.key for call in service.executor._thread._lot._absent if call.keyed] == ["k3", "k4"]
        assert service.executor.reading.waiting == 2


async def test_a_second_that_left_before_it_was_looked_at_replaces_nobody() -> None:
    async with running() as service:
        first = send_claim(service, KEY)
        await service.settle()
        gate = await service.hold()
        send_claim(service, KEY).cancel()
        gate.open()
        await service.do(grow, "p")
        assert await first == Answered(201, b"[0]")


async def test_the_end_of_its_partition_ends_a_wait_in_a_taken_place() -> None:
    async with running() as service:
        await service.do(add, "p")
        first = send_claim(service, KEY)
        await service.settle()
        second = send_claim(service, KEY)
        await service.settle()
        await service.do(lambda engine: delete_partition(engine, "p", None))
        for call, kind in ((first, IdempotencyInFlight), (second, PartitionCleared)):
            with pytest.raises(kind):
                await call
        assert len(service.engine.replies) == 0


async def test_a_claim_that_waited_and_whose_answer_was_lost_is_answered_again() -> None:
    async with running() as service:
        lost = send_claim(service, KEY, 2)
        await service.do(grow, "p", 2)
        assert await lost == Answered(201, b"[0, 1]")
        await service.do(grow, "p", 2)
        assert said(await send_claim(service, KEY, 2)) == (201, b"[0, 1]", None)


async def test_when_the_service_stops_who_waits_under_a_key_is_turned_away_and_may_come_again() -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        call = send_claim(service, KEY)
        await service.settle()
        await service.executor.close()
        with pytest.raises(NotReady):
            await call
    async with running(journal) as anew:
        await anew.do(grow, "p")
        assert await send_claim(anew, KEY) == Answered(201, b"[0]")


async def test_what_a_key_costs_in_the_thread_is_forgotten_with_its_answer() -> None:
    async with running() as service:
        for i in range(20):
            await send(service, Keyed(f"k{i}", KEY.digest))
            with pytest.raises(PartitionNotFound):
                await send(service, Keyed(f"r{i}", KEY.digest), look, "absent")
            waits = send_claim(service, Keyed(f"w{i}", KEY.digest))
            await service.settle()
            waits.cancel()
        await service.advance(60)
        assert service.executor._thread._lot._absent == {}
        assert service.executor._thread._decided == {}
        assert service.executor._thread._lot._by_key == {}
        assert service.executor._thread._lot._by_partition == {}
