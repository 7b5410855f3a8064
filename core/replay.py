"""From a journal to a state: what a start, a check of a data folder and the maker of snapshots share."""

import msgspec

from .engine import Engine
from .events import Change
from .image import restore
from .journal.contract import BEFORE_FIRST, EntryId, Journal


def replay(engine: Engine, journal: Journal) -> tuple[EntryId, EntryId]:
    """A new engine's state from the newest snapshot and every change since; nobody waits for anything yet.

    The last entry that the snapshot knows of, and the last one of all. Raises JournalError.
    """
    saved = journal.snapshot()
    since = last = BEFORE_FIRST
    if saved is not None:
        since = last = saved[0]
        restore(engine, saved[1])
    decoder = msgspec.msgpack.Decoder(list[Change])
    for entry in journal.read(since):
        for change in decoder.decode(entry.payload):
            engine.apply(change)
        last = entry.id
    engine.changed.clear()
    return since, last
