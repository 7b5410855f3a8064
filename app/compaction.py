"""Has snapshots made by a process of its own (app/compact.py) whenever a part of the journal is closed."""

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen

from core.journal import EntryId

ROOT = Path(__file__).resolve().parent.parent
_log = logging.getLogger("batchmeta")


class Compaction:
    """On the loop, one at a time; `on_done` is called after each. What fails is tried again at the next close."""

    def __init__(self, folder: Path, on_done: Callable[[], None]) -> None:
        self._folder, self._on_done = folder, on_done
        self._until: EntryId | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, until: EntryId) -> None:
        """A part of the journal that ends with this entry is closed."""
        self._until = until
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def end(self) -> None:
        """The service stops: a snapshot on its way is given up."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._until is not None:
            until, self._until = self._until, None
            command = (sys.executable, "-m", "app.compact", str(self._folder), str(until))
            try:
                failure = await _ended(await asyncio.to_thread(_started, command))
            except OSError as error:
                failure = str(error)
            if failure is None:
                self._on_done()
            else:
                _log.warning("no snapshot was made: %s", failure)
        self._task = None


def _started(command: tuple[str, ...]) -> "Popen[bytes]":
    # Not by the loop: uvloop forks, which copies the tables of all our memory while nothing else runs.
    return Popen(command, cwd=ROOT, stderr=PIPE)  # noqa: S603  (our own module)


async def _ended(process: "Popen[bytes]") -> str | None:
    """None, or what went wrong."""
    try:
        _, said = await asyncio.to_thread(process.communicate)
        return None if process.returncode == 0 else said.decode(errors="replace").strip()[-500:]
    except asyncio.CancelledError:
        process.kill()
        raise
