"""The journal in a folder: one write and one fdatasync for each append, segments that never change once closed.
Rules: nothing is acknowledged before it is on disk; a failed write or sync is never repeated; only the newest segment
is written to more than once. segment.py has the formats, recovery.py the checks at a start.
"""

import logging
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import Final

from core.compression import packer, unpack

from . import snapshots
from .contract import BEFORE_FIRST, Appended, Durability, Entry, EntryId, Outcome
from .errors import EntryUnknown, JournalDamaged, JournalUnavailable
from .folder import HEAD_NAME, REAL_DISK, Disk, Folder
from .recovery import Found, fresh, read_head, recover
from .segment import (
    ENTRY_HEADER_BYTES,
    SEGMENT_HEADER_BYTES,
    Damage,
    Head,
    decode_segment_header,
    encode_entry,
    encode_head,
    encode_segment_header,
    scan,
)

LEAST_SEGMENT_BYTES: Final = 32 * 2**20
SEGMENT_BYTES: Final = 64 * 2**20
FLOOR_BYTES: Final = 256 * 1024 * 1024

Log = Callable[[str], None]


def warn(message: str) -> None:
    logging.getLogger(__name__).warning(message)


class FileJournal:
    """A segment ends at `segment_bytes`, unless one entry is longer, and sooner while snapshots are smaller than that:
    a snapshot is made of each, and a start replays what is written since. These bytes are counted as if nothing were
    compressed. The journal has room while its disk has `floor_bytes` free. `log` gets a line when a torn last write is
    cut.
    """

    durability: Durability = "wal"

    def __init__(
        self,
        folder: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        floor_bytes: int = FLOOR_BYTES,
        disk: Disk = REAL_DISK,
        log: Log = warn,
    ) -> None:
        self.path = folder
        self._folder = Folder(folder, disk)
        self._disk = disk
        self._segment_bytes = self._full = segment_bytes  # at most, and now
        self._floor_bytes = floor_bytes
        self._log = log
        self._pack = packer()
        self._owned = ExitStack()
        self._trouble: str | None = f"the journal in {folder} is not open"
        self._lock_fd = self._fd = -1
        self._term = self._journal = 0
        self._segments: list[int] = []
        self._last = self._closed = BEFORE_FIRST
        self._end = self._plain_end = 0  # of the newest segment, and as if nothing were compressed

    def open(self) -> int:
        with self._folder.guarded(), ExitStack() as owned:
            self._folder.make()
            self._folder.segments()  # refuses a folder with foreign files before a lock file is made in it
            lock_fd = self._folder.lock(owned)
            self._folder.sweep()
            found = recover(self._folder) or self._begin()
            stale = [first for first in self._folder.segments() if first < found.segments[0]]
            self._folder.drop([self._folder.segment(first) for first in stale])
            fd = self._settle(found, owned)
            self._full = self._segment_length()
            self._owned, self._lock_fd, self._fd = owned.pop_all(), lock_fd, fd
        self._term, self._journal, self._segments = found.term + 1, found.journal, list(found.segments)
        self._last, self._closed = found.last, found.closed
        self._end, self._plain_end = found.end, found.plain_end
        self._trouble = None
        return self._term

    def look(self) -> str | None:
        """Open for reading only; changes nothing in the folder. Returns what the next `open` will cut, if anything.

        Raises as `open` does, and for a damaged snapshot.
        """
        with self._folder.guarded(), ExitStack() as owned:
            self._folder.hold(owned)
            found = recover(self._folder)
            if found is None:
                raise JournalUnavailable(f"there is no journal in {self._folder.path}")
            snapshots.check(self._folder, found.journal)
            self._owned = owned.pop_all()
        self._journal, self._segments, self._last = found.journal, list(found.segments), found.last
        return found.torn

    def look_beside(self, until: EntryId) -> None:
        """Open for reading up to `until`, a closed entry, while another process writes on. Nothing is locked."""
        with self._folder.guarded():
            self._journal = read_head(self._folder).journal
            self._segments = [first for first in self._folder.segments() if first <= until.seq]
        self._last = until

    def read(self, after: EntryId | None) -> Iterator[Entry]:
        if not self._segments:
            raise JournalUnavailable(self._trouble)
        start, until = after or BEFORE_FIRST, self._last
        index = bisect_right(self._segments, start.seq + 1) - 1
        if index < 0:
            missing = f"the journal in {self._folder.path} starts with entry {self._segments[0]}, and no snapshot"
            raise EntryUnknown(f"{missing} of what came before is there: put the snapshots back")
        if start.seq >= until.seq and start != until:
            raise EntryUnknown(f"the journal in {self._folder.path} does not hold what comes after entry {start}")
        rest = tuple(self._segments[index:])
        entries = chain.from_iterable(self._entries(first, start.seq, until.seq) for first in rest)
        for entry in islice(entries, 1):
            if entry.previous != start:
                raise EntryUnknown(f"the journal in {self._folder.path} has no entry {start}")
            yield entry
        yield from entries

    def append(self, expected_last: EntryId, payload: bytes) -> Appended:
        if self._trouble:
            raise JournalUnavailable(self._trouble)
        if self._overtaken():
            return Appended(Outcome.FENCED, self._last)
        if expected_last != self._last:
            return Appended(Outcome.GAP, self._last)
        entry = Entry(EntryId(self._term, self._last.seq + 1), self._last, payload)
        record = encode_entry(entry, self._pack)
        # Cleared only after the write: however the write fails, nothing is appended after half a record.
        self._trouble = f"the journal in {self._folder.path} is broken: an append did not end; start again"
        with self._folder.guarded():
            if self._is_full(len(payload)):
                self._rotate()
            self._write(record)
        self._trouble = None
        self._last = entry.id
        self._end += len(record)
        self._plain_end += ENTRY_HEADER_BYTES + len(payload)
        return Appended(Outcome.OK, entry.id)

    def trim(self, floor: EntryId) -> None:
        """Drops whole segments. The head is written first; segments older than it names are leftovers from then on."""
        if self._trouble:
            raise JournalUnavailable(self._trouble)
        if self._overtaken():  # another writer may own the head and the segments now
            raise JournalUnavailable(f"the journal in {self._folder.path} is fenced: another writer may own it")
        kept = self._segments[max(0, bisect_right(self._segments, floor.seq + 1) - 1) :]
        if kept == self._segments:
            return
        self._trouble = f"the journal in {self._folder.path} is broken: a trim did not end; start again"
        with self._folder.guarded():
            self._put_head(self._journal, self._term, kept, self._last)
            self._folder.drop([self._folder.segment(first) for first in self._segments[: -len(kept)]])
        self._trouble, self._segments = None, kept

    def closed(self) -> EntryId:
        return self._closed

    def cut(self) -> EntryId:
        if self._trouble:
            raise JournalUnavailable(self._trouble)
        if self._end > SEGMENT_HEADER_BYTES:
            self._trouble = f"the journal in {self._folder.path} is broken: a cut did not end; start again"
            with self._folder.guarded():
                self._rotate()
            self._trouble = None
        return self._closed

    def snapshot(self) -> tuple[EntryId, bytes] | None:
        with self._folder.guarded():
            return snapshots.newest(self._folder, self._journal)

    def save(self, last: EntryId, image: bytes) -> None:
        """Add a snapshot of the state after entry `last`; any process may. Raises JournalUnavailable where it would
        take the space that appends need.
        """
        with self._folder.guarded():
            if self._folder.free() < len(image) + self._floor_bytes:
                raise JournalUnavailable(f"the disk of {self._folder.path} has no room for a snapshot")
            snapshots.save(self._folder, self._journal, last, image)

    def tidy(self) -> None:
        with self._folder.guarded():
            seq, stale = snapshots.floor(self._folder)
            self.trim(EntryId(self._term, seq))
            self._folder.drop(stale)
            self._full = self._segment_length()

    def has_room(self) -> bool:
        if self._trouble:
            raise JournalUnavailable(self._trouble)
        try:  # looked at in every drain: `guarded` would cost as much again
            return self._disk.free(self._lock_fd) >= self._floor_bytes
        except OSError as error:
            raise self._folder.unavailable(error) from error

    def close(self) -> None:
        self._trouble = f"the journal in {self._folder.path} is not open"
        self._segments = []
        self._owned.close()

    def _overtaken(self) -> bool:
        """Whether the lock file was removed, with or without its folder: a second writer may have started since."""
        with self._folder.guarded():
            return os.fstat(self._lock_fd).st_nlink == 0

    def _is_full(self, length: int) -> bool:
        """Whether a payload of this length goes into the next segment."""
        is_too_much = self._plain_end + ENTRY_HEADER_BYTES + length > self._full
        return is_too_much and self._end > SEGMENT_HEADER_BYTES

    def _write(self, record: bytes) -> None:
        self._disk.write_all(self._fd, record, self._end)
        self._disk.fdatasync(self._fd)

    def _segment_length(self) -> int:
        newest = self._folder.snapshots()[-1:]
        size = self._folder.snapshot(newest[0]).stat().st_size if newest else 0
        return min(self._segment_bytes, max(LEAST_SEGMENT_BYTES, size))

    def _rotate(self) -> None:
        first = self._last.seq + 1
        self._folder.put(self._folder.segment(first), encode_segment_header(self._journal, self._last))
        self._put_head(self._journal, self._term, [*self._segments, first], self._last)
        fd = os.open(self._folder.segment(first), os.O_RDWR)
        # The new file takes the old one's number, so that one entry in `_owned` closes whichever is the newest.
        os.dup2(fd, self._fd, inheritable=False)
        os.close(fd)
        self._segments.append(first)
        self._closed = self._last
        self._end = self._plain_end = SEGMENT_HEADER_BYTES

    def _begin(self) -> Found:
        """Create a journal: its first segment. `_settle` writes the head afterwards."""
        journal = int.from_bytes(os.urandom(8))
        self._folder.put(self._folder.segment(1), encode_segment_header(journal, BEFORE_FIRST))
        return fresh(journal)

    def _settle(self, found: Found, owned: ExitStack) -> int:
        """Sync the last entry, write the new term into the head, then cut a torn write. A crash may follow any step: in
        this order the head never names an entry that may still be lost, and the remains of a torn write stay in the
        file until the head no longer names their entry.
        """
        fd = os.open(self._folder.segment(found.segments[-1]), os.O_RDWR)
        owned.callback(os.close, fd)
        # The last entry may never have been synced; after a failed sync it is in the page cache but not on disk.
        self._disk.write_all(fd, os.pread(fd, found.end - found.last_start, found.last_start), found.last_start)
        self._disk.fdatasync(fd)
        self._put_head(found.journal, found.term + 1, list(found.segments), found.last)
        if found.torn:
            lost = os.fstat(fd).st_size - found.end
            self._log(f"{found.torn}; its {lost} bytes are cut, the journal ends with entry {found.last}")
            os.ftruncate(fd, found.end)
            self._disk.fsync(fd)
        return fd

    def _put_head(self, journal: int, term: int, segments: list[int], last: EntryId) -> None:
        head = Head(journal, term, segments[0], segments[-1], last)
        self._folder.put(self._folder.path / HEAD_NAME, encode_head(head))

    def _entries(self, first: int, after: int, until: int) -> Iterator[Entry]:
        """The entries of one segment with `after` < seq <= `until`; bytes beyond them may be half a record."""
        path = self._folder.segment(first)
        with self._folder.guarded():
            data = path.read_bytes()
        try:
            previous = decode_segment_header(data, self._journal)
            for term, seq, start, end, is_packed in scan(data, previous):
                entry_id = EntryId(term, seq)
                if seq > after:
                    stored = data[start:end]
                    yield Entry(entry_id, previous, unpack(stored) if is_packed else stored)
                if seq == until:
                    return
                previous = entry_id
        except Damage as damage:
            raise JournalDamaged(path, damage.offset, damage.what, damage.advice) from None
