"""Makes checkpoints of the running service and takes those that callers send, one at a time of each name; holds the
folder they are in.
"""

import asyncio
import time
from dataclasses import dataclass, field

from core.errors import CheckpointExists, IdempotencyInFlight
from core.journal.contract import BEFORE_FIRST
from core.operations import checkpoints as operations
from core.runtime.executor import Executor
from core.snapshot.checkpoint_folder import CheckpointFolder, CheckpointRequest, Note
from core.snapshot.checkpoint_transfers import place
from core.snapshot.received_file import ReceivedFile

from ..reply import rfc3339
from . import copied_process
from .compaction import Compaction
from .inspection import inspected


@dataclass(slots=True)
class Checkpoints:
    """Lives on the event loop; files are touched in other threads, or by the maker.

    `compaction` is None where no other process can read the journal; a copy of this one makes the image then, or where
    that cannot be, the engine's thread.
    """

    folder: CheckpointFolder
    executor: Executor
    compaction: Compaction | None
    _ordered: dict[str, str | None] = field(default_factory=dict)
    _placing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def make(self, name: str, key: str | None) -> Note:
        """A checkpoint of the state at one revision, while the service goes on; `key`: of the call that asks.

        Raises CheckpointExists, IdempotencyInFlight, JournalUnavailable.
        """
        if name in self._ordered:
            raise IdempotencyInFlight if key is not None and self._ordered[name] == key else CheckpointExists
        self._ordered[name] = key
        try:
            made = await asyncio.to_thread(self.folder.made_by, name, key)
            return made or await self._make(CheckpointRequest(name, key, rfc3339(time.time())))
        finally:
            del self._ordered[name]

    async def take(self, name: str, key: str | None, received: ReceivedFile) -> tuple[Note, bool]:
        """Look a file through that was received, and give it its name: (its note, whether it is new).

        Raises CheckpointExists, CheckpointCorrupt, JournalUnavailable.
        """
        revision = await inspected(received.path)
        note = Note(
            name=name,
            revision=revision,
            bytes=received.bytes,
            sha256=received.sha256,
            created_at=rfc3339(time.time()),
            key=key,
        )
        async with self._placing:
            if name in self._ordered:
                raise CheckpointExists
            self._ordered[name] = key
            try:
                return await asyncio.to_thread(place, self.folder, received, note)
            finally:
                del self._ordered[name]

    async def _make(self, order: CheckpointRequest) -> Note:
        await self.executor.submit(operations.begin_history, lambda _: None)
        if self.compaction is None:
            await self._make_here(order)
        else:
            until = await self.executor.cut()
            await self.compaction.checkpoint(until, self.folder, order)
        return await asyncio.to_thread(self.folder.find, order.name)

    async def _make_here(self, order: CheckpointRequest) -> None:
        if await self.executor.submit(copied_process.can_copy, lambda found: found):
            copy = await self.executor.submit(copied_process.begin, lambda made: made, self.folder, order)
            await asyncio.to_thread(copied_process.wait_for, copy)
        else:
            revision, image = await self.executor.submit(operations.image_of, lambda found: found)
            await asyncio.to_thread(self.folder.save, order, BEFORE_FIRST, revision, image)
