"""The contract of a journal: entries in one order, and what each outcome of an append means.
Types only, no access to a disk. tests/contracts/journal_suite.py tests every implementation.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, Protocol

Durability = Literal["memory", "wal"]


@dataclass(frozen=True, slots=True, order=True)
class EntryId:
    """Place of an entry: the term of its writer, and its number, which rises by one from 1 across all terms."""

    term: int
    seq: int

    def __str__(self) -> str:
        return f"{self.term}-{self.seq}"


BEFORE_FIRST: Final = EntryId(0, 0)
"""The id before the first entry: what the first append expects as the last entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One append: its payload, chained to the entry before it."""

    id: EntryId
    previous: EntryId
    payload: bytes


class Outcome(StrEnum):
    """How an append ended. Only OK allows an acknowledgement."""

    OK = "ok"
    FENCED = "fenced"
    GAP = "gap"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Appended:
    """The outcome, and the last entry of this journal: with OK, the one just appended."""

    outcome: Outcome
    last: EntryId


class Journal(Protocol):
    """An append-only chain of entries with one writer at a time. Used from one thread.

    1. `open` takes exclusive ownership. Each open gives a higher term than any before it, on disk before it returns.
       A journal that another writer owns raises `JournalLocked`; one whose bytes are damaged, `JournalDamaged`.
    2. An entry follows exactly one other: its `previous` is the id before it, its seq is one more, its term no lower.
    3. `append` is durable before it returns OK. No other outcome changes what `read` gives:
       FENCED, a writer with a higher term owns the journal: stop, never try again;
       GAP, `expected_last` is not the last entry: the caller's view of history is wrong;
       UNKNOWN, the entry may have been stored or not: read back before anything else, never send the next one.
    4. After `JournalUnavailable` from `append` the outcome is unknown too, and every later append raises: a failed
       write is never repeated on the same opening. The next opening reads what was stored.
    5. `read` gives every entry after `after` (None: from the very first), in order, each whole and checked, up to the
       last one at the time of its first step; or it raises `EntryUnknown`, no later than at that step. It never skips
       an entry.
    6. Every later opening gives each acknowledged entry back byte for byte, or is refused. The one exception: damage to
       the very last entry looks like a write that was never acknowledged.
    7. `trim(floor)` may drop entries up to `floor`, and none after it; the last entry's id stays known. A dropped entry
       may stay readable for a while; a later opening gives it or raises `EntryUnknown`.
    8. `closed` is the last entry of the closed part, which never changes again, so that another process can read it
       beside the writer to make a snapshot. `cut` closes everything up to the last entry and gives that entry's id.
       `snapshot` is the newest saved state, and the last entry it includes. `tidy` drops entries that two snapshots
       include. A journal that only its writer can read has no closed part: BEFORE_FIRST.
    9. `has_room` is a cheap check that there is space for appends for some time.
    """

    durability: Durability

    def open(self) -> int: ...

    def read(self, after: EntryId | None) -> Iterator[Entry]: ...

    def append(self, expected_last: EntryId, payload: bytes) -> Appended: ...

    def trim(self, floor: EntryId) -> None: ...

    def closed(self) -> EntryId: ...

    def cut(self) -> EntryId: ...

    def snapshot(self) -> tuple[EntryId, bytes] | None: ...

    def tidy(self) -> None: ...

    def has_room(self) -> bool: ...

    def close(self) -> None: ...
