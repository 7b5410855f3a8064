"""Looks through a data folder (`scripts/serve --verify`): reads and replays all of it, and changes nothing."""

import sys
import time
from contextlib import closing
from pathlib import Path

from core.engine import Engine
from core.journal import FileJournal, journal_from_url
from core.journal.errors import JournalError
from core.runtime.replay import replay

from .settings import Settings


def verify(settings: Settings) -> int:
    """0 and a line that says what is there, or 1 and what is wrong: any damage, also what a start would cut off."""
    try:
        journal = journal_from_url(settings.journal, Path.cwd())
        if not isinstance(journal, FileJournal):
            return _say(f"a journal of {settings.journal} leaves nothing to verify", 1)
        with closing(journal):
            torn = journal.look()
            engine = Engine(time.monotonic, time.time, max_cell_bytes=settings.max_cell_bytes)
            _, last = replay(engine, journal)
    except (JournalError, ValueError) as error:
        return _say(str(error), 1)
    samples = sum(partition.rows.live_count for partition in engine.partitions.values())
    there = f"{last.seq} entries, the last {last}: revision {engine.revision}, {len(engine.partitions)} partitions, "
    there += f"{samples} samples"
    if torn is not None:
        return _say(f"{torn}; the next start will cut it, and go on from {there}", 1)
    return _say(f"{settings.journal} is sound: {there}", 0)


def _say(line: str, status: int) -> int:
    (sys.stderr if status else sys.stdout).write(f"batchmeta: {line}\n")
    return status
