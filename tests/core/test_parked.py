"""Calls that wait: woken by a change of their partition and by nothing else, oldest first, none behind one that needs
more; ended by their deadline, their client's leave, the end of their partition, or the service's.
"""

import asyncio
from typing import Any

import pytest

from core.engine import Engine
from core.errors import NotReady, PartitionCleared
from core.operations.claim import NotClaimed
from core.operations.consumption import counts_of
from core.operations.parked import Parked
from core.operations.partitions import delete_partition, put_partition
from core.samplers import GrpoGroup
from tests.core.running import grow, running
from tests.core.world import add, write

pytestmark = pytest.mark.asyncio


def done(*calls: "asyncio.Future[Any]") -> list[bool]:
    return [call.done() for call in calls]


def consumed(engine: Engine) -> int:
    return counts_of(engine.partitions["p"], "t").consumed


async def test_a_claim_is_woken_by_the_write_that_completes_it() -> None:
    async with running() as service:
        claim = service.claim(2)
        await service.do(grow, "p")
        await service.settle()
        assert not claim.done()
        assert service.executor.reading.waiting == 1
        await service.do(grow, "p")
        assert await claim == [0, 1]
        await service.settle()
        assert service.executor.reading.waiting == 0


class Watcher:
    """An operation that waits for ever and counts how often it is looked at."""

    def __init__(self, partition: str, *, ripe: bool = False) -> None:
        self.partition, self.ripe, self.looks = partition, ripe, 0
        self.log: list[Watcher] = []

    def __call__(self, _: Engine) -> Parked[None]:
        return Parked(self.partition, 60.0, self._look, self._retry)

    def _look(self) -> bool:
        self.looks += 1
        return self.ripe

    def _retry(self, is_last: bool) -> Parked[None] | None:
        self.log.append(self)
        return None if is_last else Parked(self.partition, 60.0, self._look, self._retry)


async def test_only_a_change_of_its_own_partition_looks_at_a_waiting_call() -> None:
    async with running() as service:
        watcher = Watcher("p")
        service.put(watcher)
        await service.do(add, "other")
        await service.do(add, "p2")
        await service.settle()
        assert watcher.looks == 0
        await service.do(add, "p")
        assert (watcher.looks, watcher.log) == (1, [])


async def test_1000_writes_look_at_none_of_200_that_wait_elsewhere() -> None:
    async with running() as service:
        watchers = [Watcher("p") for _ in range(200)]
        for watcher in watchers:
            service.put(watcher)
        for _ in range(1000):
            await service.do(add, "other")
        assert service.executor.reading.waiting == len(watchers)
        assert not any(watcher.looks for watcher in watchers)


async def test_the_oldest_is_served_first() -> None:
    async with running() as service:
        claims = [service.claim() for _ in range(4)]
        await service.do(grow, "p", 2)
        assert [await claims[0], await claims[1]] == [[0], [1]]
        await service.settle()
        assert done(*claims) == [True, True, False, False]
        await service.do(grow, "p", 2)
        assert [await claims[2], await claims[3]] == [[2], [3]]


async def test_one_that_needs_more_does_not_hold_up_a_later_one_that_needs_less() -> None:
    async with running() as service:
        large, small = service.claim(3), service.claim(1)
        await service.do(grow, "p", 2)
        assert await small == [0]
        await service.settle()
        assert not large.done()
        await service.do(grow, "p", 2)
        assert await large == [1, 2, 3]


async def test_a_call_that_waits_on_after_a_retry_keeps_its_place() -> None:
    async with running() as service:
        first, second = Watcher("p", ripe=True), Watcher("p")
        second.log = first.log
        service.put(first)
        service.put(second)
        await service.do(add, "p")
        second.ripe = True
        await service.do(add, "p")
        assert first.log == [first, first, second]


async def test_a_claim_of_whole_groups_is_woken_by_whole_groups_alone() -> None:
    async with running() as service:
        claim = service.claim(2, sampler=GrpoGroup(2))
        await service.do(lambda engine: add(engine, "p", 3, group_ids=["a", "b", "a"]))
        await service.do(write, "p", [0, 1], ["x"])
        await service.settle()
        assert not claim.done()
        await service.do(write, "p", [2], ["x"])
        assert await claim == [0, 2]


async def test_at_its_deadline_a_claim_takes_fewer_if_they_are_enough() -> None:
    async with running() as service:
        enough, more = service.claim(5, least=2), service.claim(5, least=4)
        await service.do(grow, "p", 3)
        await service.advance(59.75)
        assert done(enough, more) == [False, False]
        await service.advance(0.25)
        assert await enough == [0, 1, 2]
        refused = await more
        assert isinstance(refused, NotClaimed)
        assert (refused.ready, refused.wanted, refused.done) == (0, 5, False)
        assert await service.do(consumed) == 3


async def test_each_call_has_a_deadline_of_its_own() -> None:
    async with running() as service:
        early = service.claim()
        await service.advance(30)
        late = service.claim()
        await service.advance(30)
        assert isinstance(await early, NotClaimed)
        await service.settle()
        assert not late.done()
        await service.advance(30)
        assert isinstance(await late, NotClaimed)


async def test_a_deadline_that_passes_while_nothing_happens_is_met() -> None:
    """The thread's own time-out: the clock stands still, so the wait it asks for is what is left."""
    async with running() as service:

        def wait_no_longer(engine: Engine) -> Parked[str]:
            return Parked("p", engine.clock(), lambda: False, lambda _: "over")

        assert await service.do(wait_no_longer) == "over"


async def test_a_client_that_left_takes_nothing() -> None:
    async with running() as service:
        left, stays = service.claim(2), service.claim(2)
        await service.settle()
        left.cancel()
        await service.do(grow, "p", 2)
        assert await stays == [0, 1]
        assert await service.do(consumed) == 2
        await service.settle()
        assert service.executor.reading.waiting == 0


async def test_a_client_that_left_before_its_call_was_looked_at_changes_nothing() -> None:
    async with running() as service:
        await service.do(grow, "p")
        gate = await service.hold()
        claim, insert = service.claim(), service.put(add, "p")
        claim.cancel()
        insert.cancel()
        gate.open()
        assert await service.do(consumed) == 0
        assert await service.do(add, "p") == [1]


async def test_a_client_that_left_at_its_deadline_takes_nothing() -> None:
    async with running() as service:
        await service.do(grow, "p")
        claim = service.claim(2, least=1)
        await service.settle()
        gate = await service.hold()
        later = asyncio.ensure_future(service.advance(60))
        await asyncio.sleep(0)
        claim.cancel()
        gate.open()
        await later
        assert await service.do(consumed) == 0


def delete_all(engine: Engine) -> None:
    delete_partition(engine, "p", None)


async def test_the_deletion_of_its_partition_ends_a_wait() -> None:
    async with running() as service:
        await service.do(add, "p")
        claims = [service.claim(), service.claim(2)]
        await service.settle()
        await service.do(delete_all)
        for outcome in await asyncio.gather(*claims, return_exceptions=True):
            assert type(outcome) is PartitionCleared
        assert service.fatal == []


async def test_done_ends_every_wait_of_the_task() -> None:
    async with running() as service:
        await service.do(put_partition, "p", 1, None, None, {})
        first, second = service.claim(), service.claim()
        await service.do(grow, "p")
        assert await first == [0]
        over = await second
        assert isinstance(over, NotClaimed)
        assert over.done
        assert (await service.claim()).done


async def test_when_the_service_stops_those_who_wait_are_turned_away_at_once() -> None:
    async with running() as service:
        await service.do(grow, "p")
        claim = service.claim(2, least=1)
        await service.settle()
        gate = await service.hold()
        service.executor.stop_waiting()
        new, answered = service.claim(2), service.claim(1)
        gate.open()
        for waiting in (claim, new):
            with pytest.raises(NotReady, match="stopping"):
                await waiting
        assert await answered == [0]
        assert service.executor.reading.reason == "stopping"
        with pytest.raises(NotReady, match="stopping"):
            service.claim()


async def test_close_turns_away_those_who_wait_and_takes_nothing_for_them() -> None:
    async with running() as service:
        await service.do(grow, "p")
        claim = service.claim(2, least=1)
        await service.settle()
        await service.executor.close()
        with pytest.raises(NotReady, match="stopping"):
            await claim
        assert consumed(service.engine) == 0
