"""`FOLDER TERM-SEQ [CHECKPOINTS FLOOR NAME TIME [KEY]]`: add a snapshot of the state after that closed entry to a
journal's folder; and make the checkpoint NAME of it in another, whose disk keeps FLOOR bytes free.

Runs beside the service (app/maker.py), which goes on meanwhile: segments that are closed never change, and what they
say of the state is the same whoever reads it. So neither the engine's thread nor its memory has a part in it.
"""

import os
import sys
import time
from pathlib import Path

from core.engine import Engine
from core.errors import Refused
from core.journal import EntryId, FileJournal
from core.journal.errors import JournalError
from core.runtime.replay import replay
from core.snapshot.image import image

from .checkpoints import CheckpointRequest, Checkpoints

URGENT, LEAST_URGENT = 5, 19  # somebody waits for a checkpoint


def compact(folder: Path, until: EntryId) -> tuple[EntryId, int, bytes]:
    """The entry, the revision and the image. Raises JournalError."""
    journal = FileJournal(folder)
    journal.look_beside(until)
    engine = Engine(time.monotonic, time.time)
    since, last = replay(engine, journal)
    saved = image(engine)
    if last != since:
        journal.save(last, saved)
    return last, engine.revision, saved


def main(arguments: list[str]) -> int:
    """0, or 1 with one line of what went wrong."""
    folder, until, *checkpoint = arguments
    os.nice(URGENT if checkpoint else LEAST_URGENT)
    term, seq = map(int, until.split("-"))
    try:
        last, revision, saved = compact(Path(folder), EntryId(term, seq))
        if checkpoint:
            path, floor_bytes, name, created_at, *key = checkpoint
            order = CheckpointRequest(name, key[0] if key else None, created_at)
            Checkpoints(Path(path), int(floor_bytes)).save(order, last, revision, saved)
    except (JournalError, Refused) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
