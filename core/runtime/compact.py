"""Adds a snapshot to a journal's folder, so that the entries before it may go.

It reads closed segments alone. Those never change, and what they say of the state is the same whoever reads it: it may
run in another process while the service goes on.
"""

import time
from pathlib import Path

from core.engine import Engine
from core.journal import EntryId, FileJournal
from core.runtime.replay import replay
from core.snapshot.image import image
from core.state.kept_replies import MAX_KEPT_BYTES, KeptReplies


def compact(folder: Path, until: EntryId, kept_bytes: int = MAX_KEPT_BYTES) -> tuple[EntryId, int, bytes]:
    """Replays up to this closed entry. `kept_bytes`: for how many the service keeps replies. Returns the entry, the
    revision and the image after it. Raises JournalError.
    """
    journal = FileJournal(folder)
    journal.look_beside(until)
    engine = Engine(time.monotonic, time.time, replies=KeptReplies(most_bytes=kept_bytes))
    since, last = replay(engine, journal)
    saved = image(engine)
    if last != since:
        journal.save(last, saved)
    return last, engine.revision, saved
