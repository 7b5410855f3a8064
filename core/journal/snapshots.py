"""Snapshots in a journal's folder: the state after an entry, so that the entries up to it can be dropped.
A snapshot is one file. It is written under another name, read back, and only then renamed; it never changes.
"""

import os
from pathlib import Path
from typing import Final

from core.compression import packer

from .contract import EntryId
from .errors import JournalDamaged
from .folder import Folder
from .segment import STEP_BACK, Damage, decode_snapshot, encode_snapshot_header

KEPT: Final = 2
LEAVE_OUT: Final = "move this file away: the newest snapshot and the journal hold the same"


def newest(folder: Folder, journal: int) -> tuple[EntryId, bytes] | None:
    """(last entry that the newest snapshot includes, its image); None without snapshots. Raises JournalDamaged."""
    names = folder.snapshots()
    return _read(folder.snapshot(names[-1]), journal, names[-1]) if names else None


def check(folder: Folder, journal: int) -> None:
    """Check every snapshot: an operator can fall back on those before the newest. Raises JournalDamaged."""
    newest_first = folder.snapshots()[::-1]
    for seq in newest_first:
        _read(folder.snapshot(seq), journal, seq, STEP_BACK if seq == newest_first[0] else LEAVE_OUT)


def _read(path: Path, journal: int, seq: int, advice: str = STEP_BACK) -> tuple[EntryId, bytes]:
    try:
        last, image = decode_snapshot(path.read_bytes(), journal)
        if last.seq != seq:
            raise Damage(0, f"the file is named for entry {seq}, but its header says {last.seq}")
    except Damage as damage:
        action = advice if damage.advice == STEP_BACK else damage.advice
        raise JournalDamaged(path, damage.offset, damage.what, action) from None
    return last, image


def save(folder: Folder, journal: int, last: EntryId, image: bytes) -> None:
    """Add the snapshot of the state after entry `last`. Raises JournalDamaged where the disk kept something else."""
    path = folder.snapshot(last.seq)
    # The name holds the process id: a maker of snapshots that outlived its server may be writing the same one.
    aside = path.with_name(f"{path.name}.{os.getpid()}.new")
    with folder.making(aside, path):
        stored = packer()(image)
        folder.write(aside, encode_snapshot_header(journal, last, stored) + stored)
        if _read(aside, journal, last.seq) != (last, image):
            raise JournalDamaged(aside, 0, "the disk did not keep what was written to it", "look at the disk")


def floor(folder: Folder) -> tuple[int, list[Path]]:
    """(seq up to which entries can be dropped, since KEPT snapshots include them; older snapshots to delete)."""
    names = folder.snapshots()
    if len(names) < KEPT:
        return 0, []
    return names[-KEPT], [folder.snapshot(seq) for seq in names[:-KEPT]]
