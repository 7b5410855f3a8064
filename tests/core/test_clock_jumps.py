"""Clocks that jump by days: the wall clock changes only reported times; the engine's clock ends what is due, once.

The date may be set, the system suspended, or booted again, so that its monotonic clock starts at zero.
"""

import pytest

from core.engine import Engine
from core.journal import MemoryJournal
from core.operations import expiry
from core.operations.claim import ClaimRequest, NotClaimed, claim_now
from core.operations.clears import ClearRequest, get_clear, plan_clear
from core.operations.partitions import get_partition
from core.reading.batch import View
from core.reading.selectors import Selector
from core.runtime.replay import replay
from core.samplers import Sequential
from core.snapshot.image import image, restore
from tests.core.running import Running, WatchedJournal, grow, running
from tests.core.world import Clock, add_keys, new_engine

DAY_S = 86_400.0
JUMPS = [3 * DAY_S, -3 * DAY_S, 4000 * DAY_S]
LEASE_S = TTL_S = 10.0


def begin(engine: Engine) -> None:
    """A lease of one of two rows, and three rows that have some time to be produced."""
    grow(engine, "p", 2)
    claim_now(engine, "p", ClaimRequest("l", ("x",), 1, 1, 0.0, Sequential(), View(), LEASE_S))
    add_keys(engine, "u", ["a", "b", "c"], ttl_s=TTL_S)


def alive(engine: Engine) -> tuple[int, int]:
    """Rows that are leased, and rows that wait to be produced."""
    return engine.partitions["p"].tasks["l"].leased, engine.partitions["u"].rows.live_count


def wall_of(service: Running) -> Clock:
    """A wall clock that a test can set."""
    service.engine.wall = wall = Clock(1_000_000_000.0)
    return wall


async def a_jump_of_the_wall_moves_no_deadline(service: Running, wall: Clock, jump: float) -> None:
    await service.do(begin)
    waiting = service.claim(partition="nobody's yet")
    await service.settle()
    assert isinstance(service.journal, WatchedJournal)
    said = len(service.journal.payloads)
    wall.now += jump
    await service.advance(TTL_S - 0.1)
    assert await service.do(alive) == (1, 3)
    assert (len(service.journal.payloads), waiting.done()) == (said, False)
    await service.advance(0.2)
    assert await service.do(alive) == (0, 0)
    await service.advance(60.0)
    assert isinstance(await waiting, NotClaimed)


@pytest.mark.asyncio
@pytest.mark.parametrize("jump", JUMPS)
async def test_a_jump_of_the_wall_moves_no_deadline(jump: float) -> None:
    async with running() as service:
        await a_jump_of_the_wall_moves_no_deadline(service, wall_of(service), jump)
        assert service.fatal == []


@pytest.mark.asyncio
@pytest.mark.parametrize("jump", JUMPS)
async def test_deadlines_by_the_wall_would_be_seen(jump: float) -> None:
    """The planted bug: one clock for both."""
    async with running() as service:
        wall = wall_of(service)
        service.engine.clock = wall
        with pytest.raises(AssertionError):
            await a_jump_of_the_wall_moves_no_deadline(service, wall, jump)


@pytest.mark.parametrize("jump", JUMPS)
def test_what_is_told_of_the_wall_follows_it_and_no_age_is_below_nought(jump: float) -> None:
    engine = new_engine()
    engine.wall = wall = Clock(1_000_000_000.0)
    grow(engine, "p", 2)
    planned = plan_clear(engine, "p", ClearRequest(Selector(indexes=[0])))
    wall.now += jump
    grow(engine, "q")
    assert get_clear(engine, planned.clear.clear_id, False).age_s == max(0.0, jump)
    assert get_partition(engine, "p").created_at == 1_000_000_000.0
    assert get_partition(engine, "q").created_at == 1_000_000_000.0 + jump


@pytest.mark.asyncio
async def test_days_in_which_the_system_slept_end_what_is_due_and_no_more() -> None:
    async with running() as service:
        await service.do(begin)
        waiting = service.claim(partition="nobody's yet")
        await service.settle()
        await service.advance(30 * DAY_S)
        assert await service.do(alive) == (0, 0)
        assert isinstance(await waiting, NotClaimed)
        assert await service.claim(2) == [0, 1], "the rows of the lease that ended, and the other"
        assert await service.do(grow, "p") == [5]
        assert service.fatal == []


@pytest.mark.asyncio
@pytest.mark.parametrize("by_image", [False, True])
async def test_after_a_boot_the_clock_begins_lower_and_all_have_their_full_time(by_image: bool) -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        await service.advance(100 * DAY_S)
        await service.do(begin)
        before = image(service.engine)
    again = restarted(before if by_image else journal)
    assert image(again) == before
    assert expiry.next_due(again) == min(LEASE_S, TTL_S)
    for now, left in ((LEASE_S - 0.1, (1, 3)), (LEASE_S, (0, 0))):
        expiry.expire(again, now)
        assert alive(again) == left


def restarted(source: bytes | MemoryJournal) -> Engine:
    """An engine whose clocks say nought, with that state."""
    engine = new_engine()
    engine.wall = Clock(0.0)
    if isinstance(source, bytes):
        restore(engine, source)
    else:
        source.open()
        replay(engine, source)
    expiry.begin_anew(engine)
    return engine
