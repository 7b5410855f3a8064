"""`python -m app.compact FOLDER TERM-SEQ`: add a snapshot of the state after that closed entry to a journal's folder.

Runs beside the service, which goes on meanwhile: segments that are closed never change, and what they say of the state
is the same whoever reads it. So neither the engine's thread nor its memory has a part in it.
"""

import os
import sys
import time
from pathlib import Path

from core.engine import Engine
from core.image import image
from core.journal import EntryId, FileJournal
from core.journal.errors import JournalError
from core.replay import replay

LEAST_URGENT = 19


def compact(folder: Path, until: EntryId) -> None:
    """Raises JournalError."""
    journal = FileJournal(folder)
    journal.look_beside(until)
    engine = Engine(time.monotonic, time.time)
    _, last = replay(engine, journal)
    journal.save(last, image(engine))


def main(arguments: list[str]) -> int:
    """0, or 1 with one line of what went wrong."""
    os.nice(LEAST_URGENT)
    folder, until = arguments
    term, seq = map(int, until.split("-"))
    try:
        compact(Path(folder), EntryId(term, seq))
    except JournalError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
