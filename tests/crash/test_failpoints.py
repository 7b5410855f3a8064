"""Real servers killed at each named point, and at any moment; each restart is held against all that was ever
acknowledged (account.py). TEST_LONG=1: 200 rounds of points and moments by chance; TEST_SEED: another chance.
"""

import asyncio
import os
import random
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.crash.calls import Lost
from tests.crash.failpoints import POINTS
from tests.crash.lives import ENDLESS, SEGMENT_BYTES, Lives

pytestmark = pytest.mark.asyncio
LONG = os.environ.get("TEST_LONG") == "1"
SEED = int(os.environ.get("TEST_SEED", "7"))

OF_CALLS = (
    "before-apply:31",
    "after-apply:27",
    "before-append:20",
    "mid-write:22",
    "before-fsync:21",
    "after-fsync:23",
    "after-append:19",
    "before-reply:24",
    "after-reply:40",
)
OF_SNAPSHOTS = (
    "mid-rotate:2",
    "mid-snapshot:1",
    "before-snapshot-rename:1:server",
    "after-snapshot-rename:1",
    "after-snapshot-rename:1:server",
    "before-trim:1",
    "mid-trim:1",
    "after-trim:1",
)
ROUNDS = 200
LONGEST_S = 0.6


async def side_by_side(*histories: Coroutine[Any, Any, None]) -> None:
    """Each to its end, which takes its server with it, whatever became of the others."""
    for outcome in await asyncio.gather(*histories, return_exceptions=True):
        if outcome is not None:
            raise outcome


async def at_each(lives: Lives, points: tuple[str, ...]) -> None:
    for point in points:
        await lives.at(point)
    await lives.settled()


async def test_killed_at_each_point_it_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    """Two folders side by side. One makes no snapshots; its unsynced writes are lost at each kill."""
    assert {point.split(":")[0] for point in (*OF_CALLS, *OF_SNAPSHOTS)} == set(POINTS)
    calls, snapshots = (
        Lives(tmp_path / "calls", segment_bytes=ENDLESS, disk="forgetful"),
        Lives(tmp_path / "snapshots"),
    )
    await side_by_side(at_each(calls, OF_CALLS), at_each(snapshots, OF_SNAPSHOTS))
    assert len(calls.account.told) > 20 * len(OF_CALLS)
    assert not calls.account.pending


@pytest.mark.skipif(not LONG, reason="the long form")
async def test_killed_at_points_and_moments_by_chance_it_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    print(f"seed {SEED}")  # noqa: T201  (the chance of this one again)
    await side_by_side(*(by_chance(tmp_path / disk, disk) for disk in ("real", "forgetful")))


async def by_chance(root: Path, disk: str) -> None:
    lives = Lives(root, random.Random(f"{SEED}-{disk}"), disk=disk)
    for _ in range(ROUNDS // 2):
        if lives.chance.random() < 0.5:
            await lives.at_random(LONGEST_S)
        else:
            await lives.at(lives.chance.choice(reachable(lives)))
    await lives.settled()


def reachable(lives: Lives) -> list[str]:
    """Points by chance; nothing is trimmed before there are two snapshots."""
    has_two = len(list(lives.root.glob("journal/*.snapshot"))) > 1
    points = [f"{point.split(':')[0]}:{lives.chance.randint(2, 15)}" for point in OF_CALLS]
    return [*points, *(OF_SNAPSHOTS if has_two else OF_SNAPSHOTS[:-3])]


PLANTED = {
    "told-before-append": ("before-append:20", "is below|is gone"),
    "told-before-fsync": ("before-reply:24", "does not start again|is below|is gone"),
    "reply-apart": ("after-append:21", "yet replayed|should be"),
    "change-in-parts": ("after-append:20", "without what came with it|by half"),
    "trimmed-before-snapshot": ("mid-rotate:3", "no snapshot of what came before"),
}


async def test_planted_bugs_are_caught(tmp_path: Path) -> None:
    """Each in servers of its own, two at a time."""
    two = asyncio.Semaphore(2)

    async def caught(bug: str, point: str, words: str) -> None:
        segment_bytes = SEGMENT_BYTES if "trimmed" in bug else ENDLESS
        lives = Lives(tmp_path / bug, segment_bytes=segment_bytes, disk="forgetful", planted=bug)
        async with two:
            with pytest.raises(Lost, match=words):
                await at_each(lives, (point,) * 24)

    await side_by_side(*(caught(bug, *how) for bug, how in PLANTED.items()))
