"""Bugs that the crash tests must catch, each planted in the product where it might be made. No test lives here.

`patch` is `setattr`, or a test's that takes it back.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.events import Change, Kept
from core.journal import FileJournal, snapshots
from core.journal.folder import Folder
from core.runtime.engine_thread import EngineThread
from core.runtime.journal_writer import JournalWriter

TURNS = 8  # of the loop, within which an answer is on its way
Patch = Callable[[Any, str, Any], object]


def told_before_append(patch: Patch) -> None:
    end_what_is_due = EngineThread._end_what_is_due

    def told(self: EngineThread) -> None:
        end_what_is_due(self)
        self._deliver()
        for _ in range(TURNS):
            turn = threading.Event()
            self._tell(turn.set)
            turn.wait(1)

    patch(EngineThread, "_end_what_is_due", told)


def told_before_fsync(patch: Patch) -> None:
    write = FileJournal._write

    def unsynced(self: FileJournal, record: bytes) -> None:
        disk = self._disk
        self._disk = replace(disk, fdatasync=lambda fd: None)
        write(self, record)
        self._disk = disk

    patch(FileJournal, "_write", unsynced)


def names_unsynced(patch: Patch) -> None:
    """A rename, and no sync of the folder after it."""
    patch(Folder, "_sync", lambda self, path: None)


def snapshot_unsynced(patch: Patch) -> None:
    """A snapshot gets its name before its bytes are safe."""
    write = Folder.write

    def unsynced(self: Folder, path: Path, data: bytes) -> None:
        disk = replace(self.disk, fsync=lambda fd: None) if ".snapshot" in path.name else self.disk
        write(Folder(self.path, disk), path, data)

    patch(Folder, "write", unsynced)


def trimmed_before_snapshot(patch: Patch) -> None:
    """What is closed goes at once, and not when two snapshots hold it."""
    look_for_closed = JournalWriter._look_for_closed

    def all_that_is_closed(folder: Folder) -> tuple[int, list[Path]]:
        return folder.segments()[-1] - 1, []

    def trimming(self: JournalWriter) -> None:
        look_for_closed(self)
        self._journal.tidy()

    patch(snapshots, "floor", all_that_is_closed)
    patch(JournalWriter, "_look_for_closed", trimming)


def reply_apart(patch: Patch) -> None:
    """A reply is kept in an entry that follows its change's."""
    _in_entries(
        patch, lambda change: [Change(change.revision, change.events), Change(change.revision, [], change.kept)]
    )


def change_in_parts(patch: Patch) -> None:
    """An entry for each event of a change, the reply with the last one."""

    def parts(change: Change) -> Sequence[Change]:
        kept: list[Kept | None] = [None] * (len(change.events) - 1) + [change.kept]
        return [Change(change.revision, [event], reply) for event, reply in zip(change.events, kept, strict=True)]

    _in_entries(patch, lambda change: parts(change) if change.events else [change])


def _in_entries(patch: Patch, split: Callable[[Change], Sequence[Change]]) -> None:
    commit = JournalWriter.commit

    def each_apart(self: JournalWriter) -> None:
        log = self._engine.log
        for part in [part for change in log for part in split(change)]:
            log[:] = [part]
            commit(self)

    patch(JournalWriter, "commit", each_apart)


PLANTED: Final[dict[str, Callable[[Patch], None]]] = {
    "told-before-append": told_before_append,
    "told-before-fsync": told_before_fsync,
    "names-unsynced": names_unsynced,
    "snapshot-unsynced": snapshot_unsynced,
    "trimmed-before-snapshot": trimmed_before_snapshot,
    "reply-apart": reply_apart,
    "change-in-parts": change_in_parts,
}
