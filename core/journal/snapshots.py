"""Snapshots in a journal's folder: the state as it was after an entry, so that what came before it may go.
A snapshot is a file of its own, written aside, read back, and only then given its name; it never changes.
"""

import os
from pathlib import Path
from typing import Final

from .contract import EntryId
from .errors import JournalDamaged
from .folder import Folder
from .segment import STEP_BACK, Damage, decode_snapshot, encode_snapshot_header

KEPT: Final = 2
LEAVE_OUT: Final = "move this file away: the newest snapshot and the journal hold the same"


def newest(folder: Folder, journal: int) -> tuple[EntryId, bytes] | None:
    """The last entry that the newest snapshot knows of, and its image. Raises JournalDamaged."""
    names = folder.snapshots()
    return _read(folder.snapshot(names[-1]), journal, names[-1]) if names else None


def check(folder: Folder, journal: int) -> None:
    """Look at every snapshot: those before the newest are what a start falls back on. Raises JournalDamaged."""
    newest_first = folder.snapshots()[::-1]
    for seq in newest_first:
        _read(folder.snapshot(seq), journal, seq, STEP_BACK if seq == newest_first[0] else LEAVE_OUT)


def _read(path: Path, journal: int, seq: int, advice: str = STEP_BACK) -> tuple[EntryId, bytes]:
    try:
        last, image = decode_snapshot(path.read_bytes(), journal)
        if last.seq != seq:
            raise Damage(0, f"the file is named for entry {seq}, but its header says {last.seq}")
    except Damage as damage:
        told = advice if damage.advice == STEP_BACK else damage.advice
        raise JournalDamaged(path, damage.offset, damage.what, told) from None
    return last, image


def save(folder: Folder, journal: int, last: EntryId, image: bytes) -> None:
    """Add the snapshot of the state after entry `last`. Raises JournalDamaged where the disk kept something else."""
    path = folder.snapshot(last.seq)
    # Of this process alone: the maker that a killed server left may be writing the same one.
    aside = path.with_name(f"{path.name}.{os.getpid()}.new")
    with folder.making(aside, path):
        folder.write(aside, encode_snapshot_header(journal, last, image) + image)
        if _read(aside, journal, last.seq) != (last, image):
            raise JournalDamaged(aside, 0, "the disk did not keep what was written to it", "look at the disk")


def floor(folder: Folder) -> tuple[int, list[Path]]:
    """Up to which seq entries may go, now that KEPT snapshots hold what they said; and snapshots that may go too."""
    names = folder.snapshots()
    if len(names) < KEPT:
        return 0, []
    return names[-KEPT], [folder.snapshot(seq) for seq in names[:-KEPT]]
