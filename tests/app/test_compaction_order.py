"""In what order snapshots and checkpoints are made where several wait; the process that makes them is a stand-in."""

import asyncio
from pathlib import Path

import pytest

from app.checkpoints import CheckpointRequest, Checkpoints
from app.compaction import Compaction
from core.errors import JournalUnavailable
from core.journal import EntryId

pytestmark = pytest.mark.asyncio


class Watched(Compaction):
    """`made`: up to which entry, and whether it was a checkpoint; the first waits until `go` is set."""

    def __init__(self) -> None:
        super().__init__(Path(), lambda: None)
        self.made: list[tuple[int, bool]] = []
        self.go = asyncio.Event()
        self.failure: str | None = None

    async def _make(self, until: EntryId, *checkpoint: str) -> str | None:
        await self.go.wait()
        self.made.append((until.seq, bool(checkpoint)))
        if self.failure is None:
            self._done = max(self._done, until)
        return self.failure

    async def settle(self) -> None:
        await asyncio.gather(*self._tasks)


def at(seq: int) -> EntryId:
    return EntryId(1, seq)


def asked(compaction: Compaction, seq: int) -> "asyncio.Task[None]":
    order = CheckpointRequest("c", "2026-01-01T00:00:00Z", None)
    return asyncio.ensure_future(compaction.checkpoint(at(seq), Checkpoints(Path("nowhere"), 0), order))


async def test_a_snapshot_never_overtakes_a_checkpoint_that_was_cut_before() -> None:
    compaction = Watched()
    compaction.begin(at(10))
    await asyncio.sleep(0)
    compaction.begin(at(20))
    await asyncio.sleep(0)
    checkpoint = asked(compaction, 25)
    await asyncio.sleep(0)
    compaction.begin(at(30))
    await asyncio.sleep(0)
    compaction.go.set()
    await checkpoint
    await compaction.settle()
    assert compaction.made == [(10, False), (25, True), (30, False)]


async def test_of_snapshots_that_wait_only_the_newest_is_made() -> None:
    compaction = Watched()
    for seq in (10, 20, 30, 40):
        compaction.begin(at(seq))
        await asyncio.sleep(0)
    compaction.go.set()
    await compaction.settle()
    assert compaction.made == [(10, False), (40, False)]


async def test_what_a_checkpoint_holds_needs_no_snapshot() -> None:
    compaction = Watched()
    compaction.go.set()
    await asked(compaction, 25)
    compaction.begin(at(25))
    await compaction.settle()
    assert compaction.made == [(25, True)]


async def test_one_that_fails_leaves_the_others_their_turn() -> None:
    compaction = Watched()
    compaction.failure = "the disk is full"
    compaction.go.set()
    with pytest.raises(JournalUnavailable, match="the disk is full"):
        await asked(compaction, 25)
    compaction.failure = None
    compaction.begin(at(25))
    await compaction.settle()
    assert compaction.made == [(25, True), (25, False)]
