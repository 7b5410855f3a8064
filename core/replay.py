"""From a journal's entries to a state: what a start and a check of a data folder share."""

from collections.abc import Iterable

import msgspec

from .engine import Engine
from .events import Change
from .journal.contract import BEFORE_FIRST, Entry, EntryId


def replay(engine: Engine, entries: Iterable[Entry]) -> EntryId:
    """Apply every change; the last entry's id. Nobody waits for anything yet."""
    decoder = msgspec.msgpack.Decoder(list[Change])
    last = BEFORE_FIRST
    for entry in entries:
        for change in decoder.decode(entry.payload):
            engine.apply(change)
        last = entry.id
    engine.changed.clear()
    return last
