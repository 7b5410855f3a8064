"""In what order snapshots and checkpoints are made where several wait, and what a stop waits for.

The process that makes them is a stand-in.
"""

import asyncio
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

import app.snapshots.compaction
from app.snapshots.compaction import Compaction
from core.errors import JournalUnavailable
from core.journal import EntryId
from core.snapshot.checkpoint_folder import CheckpointFolder, CheckpointRequest

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
    return asyncio.ensure_future(compaction.checkpoint(at(seq), CheckpointFolder(Path("nowhere"), 0), order))


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


class SlowStart:
    """A process that has half begun until `go` is set. `ends`: what became of those that began."""

    begun, go = threading.Event(), threading.Event()
    ends: ClassVar[list[str]] = []

    def __init__(self, *_: Any, **__: Any) -> None:
        self.begun.set()
        assert self.go.wait(30)

    def kill(self) -> None:
        self.ends.append("killed")

    def __enter__(self) -> "SlowStart":
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.append("waited for")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> type[SlowStart]:
    class OfOneTest(SlowStart):
        begun, go, ends = threading.Event(), threading.Event(), []

    monkeypatch.setattr(app.snapshots.compaction, "Popen", OfOneTest)
    return OfOneTest


async def turns() -> None:
    """Whatever can go on has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("what", ["a snapshot", "a checkpoint whose caller has gone"])
async def test_a_stop_waits_for_a_process_that_has_half_begun(slow: type[SlowStart], what: str) -> None:
    compaction = Compaction(Path(), lambda: None)
    if what == "a snapshot":
        compaction.begin(at(10))
        await asyncio.to_thread(slow.begun.wait, 30)
    else:
        caller = asked(compaction, 10)
        await asyncio.to_thread(slow.begun.wait, 30)
        caller.cancel()
    stop = asyncio.ensure_future(compaction.end())
    await turns()
    was_over = stop.done()
    slow.go.set()
    await stop
    await turns()
    assert (was_over, slow.ends) == (False, ["killed", "waited for"])


async def test_nothing_begins_after_the_stop(slow: type[SlowStart]) -> None:
    compaction = Compaction(Path(), lambda: None)
    await compaction.end()
    slow.go.set()
    compaction.begin(at(10))
    await turns()
    assert not compaction._tasks
    assert not slow.begun.is_set()
