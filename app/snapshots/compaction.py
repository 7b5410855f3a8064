"""Starts the process that makes snapshots and checkpoints (maker.py) for closed parts of the journal, and awaits it."""

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen

from core.errors import JournalUnavailable
from core.journal import BEFORE_FIRST, EntryId
from core.snapshot.checkpoint_folder import CheckpointFolder, CheckpointRequest
from core.state.kept_replies import MAX_KEPT_BYTES

ROOT = Path(__file__).resolve().parents[2]
_log = logging.getLogger("batchmeta")


class Compaction:
    """On the loop, one at a time; `on_done` is called after each. What fails is tried again at the next close."""

    def __init__(self, folder: Path, on_done: Callable[[], None], kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self.folder, self._on_done, self._kept_bytes = folder, on_done, kept_bytes
        self._until = self._done = BEFORE_FIRST
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._starts: set[asyncio.Future[Popen[bytes]]] = set()
        self._is_over = False

    def begin(self, until: EntryId) -> None:
        """A part of the journal that ends with this entry is closed."""
        if self._is_over:
            return
        self._until = until
        task = asyncio.get_running_loop().create_task(self._run(until))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def checkpoint(self, until: EntryId, into: CheckpointFolder, order: CheckpointRequest) -> None:
        """Make a checkpoint of the state after this closed entry. Raises JournalUnavailable."""
        key = () if order.key is None else (order.key,)
        async with self._turn:
            failure = await self._make(until, str(into.path), str(into.floor_bytes), order.name, order.created_at, *key)
        if failure is not None:
            raise JournalUnavailable(f"no checkpoint was made: {failure}")

    async def end(self) -> None:
        """The service stops: what is on its way is given up, and no process is left that has only half begun: until its
        program runs it has all our files open, the lock of the journal among them.
        """
        self._is_over = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._starts, return_exceptions=True)

    async def _run(self, until: EntryId) -> None:
        """None where a newer one waits, behind the checkpoints that were asked for before: they need their entries."""
        async with self._turn:
            failure = await self._make(until) if self._done < until == self._until else None
        if failure is not None:
            _log.warning("no snapshot was made: %s", failure)

    async def _make(self, until: EntryId, *checkpoint: str) -> str | None:
        """None, or what went wrong."""
        given = (str(self.folder), str(until), str(self._kept_bytes), *checkpoint)
        command = (sys.executable, "-m", "app.snapshots.maker", *given)
        try:
            failure = await _ended(await self._start(command))
        except OSError as error:
            failure = str(error)
        if failure is None:
            self._done = max(self._done, until)
            self._on_done()
        return failure

    async def _start(self, command: tuple[str, ...]) -> "Popen[bytes]":
        """The process. A start goes on also where nobody waits for it any more; the process is then ended."""
        start = asyncio.get_running_loop().run_in_executor(None, _started, command)
        self._starts.add(start)
        start.add_done_callback(self._starts.discard)
        try:
            return await asyncio.shield(start)
        except asyncio.CancelledError:
            start.add_done_callback(_give_up)
            raise


def _give_up(start: "asyncio.Future[Popen[bytes]]") -> None:
    if start.exception() is None:
        with start.result() as process:
            process.kill()


def _started(command: tuple[str, ...]) -> "Popen[bytes]":
    # Not by the loop: uvloop forks, which copies the tables of all our memory while nothing else runs.
    # Its input is never written to: it is how the process sees that this one is gone, killed or not.
    return Popen(command, cwd=ROOT, stdin=PIPE, stderr=PIPE)  # noqa: S603  (our own module)


async def _ended(process: "Popen[bytes]") -> str | None:
    """None, or what went wrong."""
    try:
        return await asyncio.to_thread(_said, process)
    except asyncio.CancelledError:
        process.kill()
        raise


def _said(process: "Popen[bytes]") -> str | None:
    with process:
        said = process.stderr.read() if process.stderr else b""
    return None if process.returncode == 0 else said.decode(errors="replace").strip()[-500:]
