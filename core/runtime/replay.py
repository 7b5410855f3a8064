"""Rebuilds the state from a journal: for a start, for a check of a data folder and for the maker of snapshots."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from core.apply import apply
from core.engine import Engine
from core.events import Change, Restored
from core.journal.contract import BEFORE_FIRST, Entry, EntryId, Journal
from core.journal.errors import JournalError
from core.journal.segment import UPGRADE
from core.operations.checkpoints import restore as restore_checkpoint
from core.snapshot.checkpoint_file import Saved
from core.snapshot.image import restore

MANY: Final = 100_000  # objects
_STRANGE = (ValueError, TypeError, LookupError, AttributeError, msgspec.DecodeError)
_decoder = msgspec.msgpack.Decoder(list[Change])


def begin_with(journal: Journal, saved: Saved) -> None:
    """Make the state of a checkpoint the first entry of an empty journal. Raises ValueError for any other journal."""
    if journal.durability == "memory":
        raise ValueError("a checkpoint needs a journal in a folder to begin with; this one is in memory")
    if journal.snapshot() is not None or next(journal.read(None), None) is not None:
        raise ValueError("there is a history already: give an empty folder, or start without and restore by name")
    scratch = Engine(time.monotonic, time.time)
    restore_checkpoint(scratch, saved, unproduced=False)
    journal.append(BEFORE_FIRST, msgspec.msgpack.encode(scratch.log))


def replay(engine: Engine, journal: Journal) -> tuple[EntryId, EntryId]:
    """Bring a new engine to the state of the newest snapshot and every change since.

    Returns the last entry that the snapshot includes, and the last one of all. Raises JournalError.
    """
    with _uncollected():
        saved = journal.snapshot()
        since = last = BEFORE_FIRST
        if saved is not None:
            since = last = saved[0]
            _restore(engine, *saved)
        for entry in journal.read(since):
            for change in _changes(entry):
                _apply(engine, change, entry.id)
            last = entry.id
    engine.changed.clear()
    return since, last


@contextmanager
def _uncollected() -> Iterator[None]:
    """The cyclic collector does not look through a state again and again while it is made, and a large one never."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        if gc.get_count()[0] > MANY:
            gc.freeze()
    finally:
        if was_enabled:
            gc.enable()


def _restore(engine: Engine, last: EntryId, saved: bytes) -> None:
    """The snapshot's checksum is right, so an image that cannot be read is of another version."""
    try:
        restore(engine, saved)
    except _STRANGE as error:
        raise JournalError(f"the snapshot after entry {last} is not of this version ({error}); {UPGRADE}") from error


def _apply(engine: Engine, change: Change, at: EntryId) -> None:
    """A restore carries an image, which may be of another version too; any other failure is a bug."""
    if not any(isinstance(event, Restored) for event in change.events):
        apply(engine, change)
        return
    try:
        apply(engine, change)
    except _STRANGE as error:
        raise JournalError(f"the restore in entry {at} is not of this version ({error}); {UPGRADE}") from error


def _changes(entry: Entry) -> list[Change]:
    try:
        return _decoder.decode(entry.payload)
    except msgspec.DecodeError as error:
        raise JournalError(f"entry {entry.id} is not of this version ({error}); {UPGRADE}") from error
