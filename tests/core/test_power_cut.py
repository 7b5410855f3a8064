"""The power goes at any call to the disk, again and again on one folder, under an application whose callers go on to
the end: rotations, snapshots and trims are among what is cut. What was acknowledged is there afterwards, the rest
whole or not at all. TEST_LONG=1: more histories of forty lives; TEST_SEED: others.
"""

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from app.snapshots import compaction
from core.engine import Engine
from core.journal import EntryId, FileJournal, JournalError, JournalUnavailable
from core.journal.folder import REAL_DISK, Disk, Folder
from core.runtime.compact import compact
from core.runtime.executor import Executor
from tests.contracts.power import UncertainDisk
from tests.core.running import TIMEOUT_S
from tests.crash.account import Account
from tests.crash.calls import Door, Lost, Unanswered
from tests.crash.planted import PLANTED
from tests.model.asgi import Application

LONG = os.environ.get("TEST_LONG") == "1"
SEED = int(os.environ.get("TEST_SEED", "7"))
HISTORIES, LIVES = 25 if LONG else 1, 40
LATEST_CUT = 120
SEGMENT_BYTES = 6000
MOST = 10_000


def door(application: Application) -> Door:
    async def request(method: str, target: str, body: Any, headers: dict[str, str]) -> tuple[int, Any, bytes]:
        status, names, raw = await application.request(method, target, body, headers)
        if status == 503:
            raise Unanswered
        return status, names, raw

    return request


async def started(executor: Executor, broken: asyncio.Event, power: UncertainDisk) -> None:
    """The journal is replayed. Raises Lost; Unanswered where the power goes meanwhile."""
    replayed = threading.Event()
    executor._thread.inbox.put(replayed.set)
    executor.start()
    while not await asyncio.to_thread(replayed.wait, 0.01):
        if broken.is_set():
            raise Unanswered if power.is_off else Lost(executor.reading.reason)


async def made_here(command: tuple[str, ...]) -> str | None:
    """The snapshot, in this process: what went wrong."""
    *_, folder, until, _ = command
    term, seq = map(int, until.split("-"))
    try:
        await asyncio.to_thread(compact, Path(folder), EntryId(term, seq))
    except JournalError as error:
        return str(error)
    return None


class Lives:
    """One folder after the other, each what a power cut left of the one before."""

    def __init__(self, root: Path, seed: int, patch: Callable[[str, Disk], None]) -> None:
        self.root, self.chance, self._patch = root, random.Random(seed), patch
        self.account = Account()
        self.folder = root / "0"
        self.folder.mkdir()
        self.application: Application | None = None

    async def live(self, number: int, is_last: bool) -> None:
        """Start, hold what is there against the account, and go on until the power goes. Raises Lost."""
        cut_at = None if is_last else self.chance.randint(1, LATEST_CUT)
        image = self.root / str(number)
        power = UncertainDisk(self.folder, image, self.chance, cut_at)
        self._patch("disk", power.disk())
        journal = FileJournal(self.folder, segment_bytes=SEGMENT_BYTES, log=lambda message: None)
        try:
            journal.open()
            await self._serve(journal, power, is_last)
        except JournalUnavailable:  # it went while the journal was opened
            assert power.is_off
        except JournalError as error:
            raise Lost(str(error)) from error
        finally:
            journal.close()
        power.close()
        self.folder = self.folder if is_last else image

    async def _serve(self, journal: FileJournal, power: UncertainDisk, is_last: bool) -> None:
        broken = asyncio.Event()
        executor = Executor(
            Engine(time.monotonic, time.time), journal, lambda reason: broken.set(), lambda until: maker.begin(until)
        )
        maker = compaction.Compaction(journal.path, executor.tidy)
        self.application = self.application or Application(executor)
        self.application.serve(executor)
        try:
            with suppress(Unanswered):
                await started(executor, broken, power)
                await self.account.settle(door(self.application))
                await self.account.call_together(door(self.application), 10 if is_last else MOST)
        finally:
            await maker.end()
            await executor.close()


async def live_on(root: Path, lives: int, patch: pytest.MonkeyPatch, seed: int) -> Lives:
    """That many lives; the last one is not cut. Raises Lost."""
    patch.setattr(compaction, "_started", lambda command: command)
    patch.setattr(compaction, "_ended", made_here)
    defaults = FileJournal.__init__.__kwdefaults__
    history = Lives(root, seed, lambda name, disk: patch.setitem(defaults, name, disk))
    for number in range(1, lives + 1):
        async with asyncio.timeout(TIMEOUT_S):
            await history.live(number, number == lives)
    return history


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(SEED, SEED + HISTORIES))
async def test_power_cuts_lose_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    history = await live_on(tmp_path, LIVES, monkeypatch, seed)
    assert len(history.account.told) > 5 * LIVES
    assert not history.account.pending
    folder = Folder(history.folder, REAL_DISK)
    assert folder.segments()[0] > 1, "it was trimmed"
    assert folder.snapshots()


CAUGHT_AS = {
    "told-before-append": "is below|is gone",
    "told-before-fsync": "is damaged|is cut short|was on disk|is missing|is below|is gone",
    "names-unsynced": "is missing|is below|is gone",
    "snapshot-unsynced": "snapshot, byte",
    "trimmed-before-snapshot": "no snapshot of what came before",
    "reply-apart": "yet replayed|should be",
    "change-in-parts": "without what came with it|by half",
}


@pytest.mark.asyncio
@pytest.mark.parametrize("bug", PLANTED)
async def test_a_planted_bug_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    PLANTED[bug](monkeypatch.setattr)
    with pytest.raises(Lost, match=CAUGHT_AS[bug]):
        await live_on(tmp_path, LIVES, monkeypatch, SEED)
