"""The work of the maker: it adds a snapshot to a journal's folder and, if told so, saves it as a checkpoint too.

Arguments: `FOLDER TERM-SEQ KEPT [CHECKPOINTS FLOOR NAME TIME [KEY]]`. The snapshot is of the state after that closed
entry, and KEPT how many bytes of replies the service keeps; the checkpoint NAME goes into the folder CHECKPOINTS, whose
disk keeps FLOOR bytes free.
"""

import os
import sys
from pathlib import Path

from core.errors import Refused
from core.journal import EntryId
from core.journal.errors import JournalError
from core.runtime.compact import compact
from core.snapshot.checkpoint_folder import CheckpointFolder, CheckpointRequest

URGENT, LEAST_URGENT = 5, 19  # somebody waits for a checkpoint


def main(arguments: list[str]) -> int:
    """0, or 1 with one line of what went wrong."""
    folder, until, kept_bytes, *checkpoint = arguments
    os.nice(URGENT if checkpoint else LEAST_URGENT)
    term, seq = map(int, until.split("-"))
    try:
        last, revision, saved = compact(Path(folder), EntryId(term, seq), int(kept_bytes))
        if checkpoint:
            path, floor_bytes, name, created_at, *key = checkpoint
            order = CheckpointRequest(name, key[0] if key else None, created_at)
            CheckpointFolder(Path(path), int(floor_bytes)).save(order, last, revision, saved)
    except (JournalError, Refused) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
