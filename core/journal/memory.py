"""A journal in memory. It keeps no entry unless asked to.
It fulfils the whole contract, except that its history ends with the process.
"""

from collections.abc import Iterator

from .contract import BEFORE_FIRST, Appended, Durability, Entry, EntryId, Outcome
from .errors import EntryUnknown, JournalLocked, JournalUnavailable


class MemoryJournal:
    """`retain=False` keeps only the last id, so that a server may run for weeks; `retain=True` keeps every entry."""

    durability: Durability = "memory"

    def __init__(self, *, retain: bool = False) -> None:
        self._retain = retain
        self._trimmed = 0
        self._entries: list[Entry] = []
        self._last = BEFORE_FIRST
        self._term = 0
        self._owned = False

    def open(self) -> int:
        if self._owned:
            raise JournalLocked("the memory journal is already open")
        self._owned = True
        self._term += 1
        return self._term

    def read(self, after: EntryId | None) -> Iterator[Entry]:
        self._check_open()
        start, until = after or BEFORE_FIRST, self._last
        if not self._trimmed <= start.seq < until.seq or not self._retain:
            if start != until:
                raise EntryUnknown(f"the memory journal does not hold what comes after entry {start}")
            return
        # The entry after `start` is at position start.seq of all entries, and `_trimmed` of them were dropped.
        first = start.seq - self._trimmed
        if self._entries[first].previous != start:
            raise EntryUnknown(f"the memory journal has no entry {start}")
        yield from self._entries[first : until.seq - self._trimmed]

    def append(self, expected_last: EntryId, payload: bytes) -> Appended:
        self._check_open()
        if expected_last != self._last:
            return Appended(Outcome.GAP, self._last)
        entry = Entry(EntryId(self._term, self._last.seq + 1), self._last, payload)
        if self._retain:
            self._entries.append(entry)
        self._last = entry.id
        return Appended(Outcome.OK, self._last)

    def trim(self, floor: EntryId) -> None:
        self._check_open()
        if self._retain:
            gone = max(0, min(floor.seq, self._last.seq) - self._trimmed)
            del self._entries[:gone]
            self._trimmed += gone

    def closed(self) -> EntryId:
        return BEFORE_FIRST

    def cut(self) -> EntryId:
        return BEFORE_FIRST

    def snapshot(self) -> None:
        return None

    def tidy(self) -> None:
        pass

    def has_room(self) -> bool:
        return True

    def close(self) -> None:
        self._owned = False

    def _check_open(self) -> None:
        if not self._owned:
            raise JournalUnavailable("the memory journal is not open")
