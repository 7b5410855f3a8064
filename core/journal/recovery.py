"""Checks a journal's folder at a start: is it one whole history, where does it end, is its last write torn?
Changes nothing; file.py acts on the result. Damage is refused with file, offset and what to do.
"""

from dataclasses import dataclass
from pathlib import Path

from core.compression import HEAD_BYTES, unpacked_length

from .contract import BEFORE_FIRST, EntryId
from .errors import JournalDamaged
from .folder import HEAD_NAME, Folder
from .segment import (
    ENTRY_HEADER_BYTES,
    RESTORE,
    SEGMENT_HEADER_BYTES,
    Damage,
    Head,
    decode_head,
    decode_segment_header,
    scan,
)


@dataclass(frozen=True, slots=True)
class Found:
    """A sound history: its segments by first seq, its last entry, and where in the newest segment that one lies.

    `closed`: the last entry before the newest segment; `plain_end`: where that would end if nothing were compressed.
    """

    journal: int
    term: int
    segments: tuple[int, ...]
    last: EntryId
    last_start: int
    end: int
    torn: str | None
    closed: EntryId
    plain_end: int


def fresh(journal: int) -> Found:
    """The result for a journal that was just created."""
    start = SEGMENT_HEADER_BYTES
    return Found(journal, 0, (1,), BEFORE_FIRST, start, start, None, BEFORE_FIRST, start)


def recover(folder: Folder) -> Found | None:
    """The history in the folder; None where no journal was ever opened. Raises `JournalDamaged`, or `OSError`."""
    segments = folder.segments()
    head_path = folder.path / HEAD_NAME
    if not head_path.exists():
        _check_never_opened(folder, segments)
        return None
    head = read_head(folder)
    _check_listing(folder, head, segments)
    found = _follow(folder, head, [first for first in segments if first >= head.oldest])
    # At most one entry that the head names may be missing, and only where the remains of its torn write are there.
    if head.last.seq - found.last.seq > (1 if found.torn else 0):
        what = f"the history ends after entry {found.last}, but entry {head.last} was on disk"
        raise JournalDamaged(folder.segment(found.segments[-1]), found.end, what, RESTORE)
    return found


def read_head(folder: Folder) -> Head:
    """The folder's head file. Raises JournalDamaged, OSError."""
    path = folder.path / HEAD_NAME
    try:
        return decode_head(path.read_bytes())
    except Damage as damage:
        raise _refused(path, damage) from None


def _check_never_opened(folder: Folder, segments: list[int]) -> None:
    """A first start that was interrupted leaves at most an empty first segment: the head is written after it."""
    empty = segments == [1] and _is_empty(folder.segment(1).read_bytes())
    snapshots = folder.snapshots()
    if snapshots or (segments and not empty):
        what = f"this file is missing, though there are {'snapshots' if snapshots else 'segments'}"
        raise JournalDamaged(folder.path / HEAD_NAME, 0, what, RESTORE)


def _is_empty(data: bytes) -> bool:
    try:
        return decode_segment_header(data, None) == BEFORE_FIRST and len(data) == SEGMENT_HEADER_BYTES
    except Damage:
        return False


def _check_listing(folder: Folder, head: Head, segments: list[int]) -> None:
    """A segment newer than the head names is of an interrupted rotation; the chain of ids proves that it belongs here.
    An older one is of an interrupted trim.
    """
    for needed in (head.oldest, head.newest):
        if needed not in segments:
            raise JournalDamaged(folder.segment(needed), 0, "this segment is missing", f"put it back, or {RESTORE}")


def _follow(folder: Folder, head: Head, segments: list[int]) -> Found:
    *closed, newest = segments
    before: EntryId | None = None
    for first in closed:
        walked = _walk(folder.segment(first), head.journal, first, before)
        if walked.damage:
            raise _refused(folder.segment(first), walked.damage)
        before = walked.last
    path = folder.segment(newest)
    tail = _walk(path, head.journal, newest, before)
    if tail.damage and not tail.damage.torn:
        raise _refused(path, tail.damage)
    torn = f"{path}, byte {tail.damage.offset}: {tail.damage.what}" if tail.damage else None
    term = max(head.term, tail.last.term)
    return Found(
        head.journal, term, tuple(segments), tail.last, tail.last_start, tail.end, torn, before or BEFORE_FIRST,
        tail.end + tail.saved,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Walked:
    last: EntryId
    last_start: int
    end: int
    saved: int  # bytes, by compression
    damage: Damage | None


def _walk(path: Path, journal: int, first: int, before: EntryId | None) -> _Walked:
    """Reads one segment to its end or its first damage; only one segment is in memory at a time."""
    data = path.read_bytes()
    try:
        last = _start(data, journal, first, before)
    except Damage as damage:
        raise _refused(path, damage) from None
    term, seq, start, end = last.term, last.seq, SEGMENT_HEADER_BYTES + ENTRY_HEADER_BYTES, SEGMENT_HEADER_BYTES
    saved, damaged = 0, None
    try:
        for term, seq, start, end, is_packed in scan(data, last):  # noqa: B007 - the last values are the result
            if is_packed:
                saved += unpacked_length(data[start : start + HEAD_BYTES]) - (end - start)
    except Damage as damage:
        damaged = damage
    return _Walked(EntryId(term, seq), start - ENTRY_HEADER_BYTES, end, saved, damaged)


def _start(data: bytes, journal: int, first: int, before: EntryId | None) -> EntryId:
    previous = decode_segment_header(data, journal)
    if previous.seq + 1 != first:
        raise Damage(0, f"the file is named for entry {first}, but its header says it starts with {previous.seq + 1}")
    if before is not None and previous != before:
        what = f"this segment goes on after entry {previous}, but the one before it ends with {before}"
        raise Damage(0, f"{what}: a segment is missing, was cut, or is of another journal")
    return previous


def _refused(path: Path, damage: Damage) -> JournalDamaged:
    return JournalDamaged(path, damage.offset, damage.what, damage.advice)
