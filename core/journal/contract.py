"""The contract of a journal: the one order of entries, and what each outcome of an append means.
Types only: no journal is written here, and nothing here knows a disk. tests/contracts/journal_suite.py is its test.
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
"""The id before the first entry: what an empty journal is appended to."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit: what was decided, chained to the entry before it."""

    id: EntryId
    previous: EntryId
    payload: bytes


class Outcome(StrEnum):
    """How an append ended. Only OK may be told to anyone as done."""

    OK = "ok"
    FENCED = "fenced"
    GAP = "gap"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Appended:
    """The outcome, and the newest entry this journal knows of: with OK, the one just appended."""

    outcome: Outcome
    last: EntryId


class Journal(Protocol):
    """An append-only chain of entries with one writer at a time. Used from one thread.

    1. `open` takes exclusive ownership. Each open gives a higher term than any before it, on disk before it returns.
       A journal that is owned refuses with `JournalLocked`; one that cannot be trusted, with `JournalDamaged`.
    2. An entry follows exactly one other: its `previous` is the id before it, its seq is one more, its term no lower.
    3. `append` is durable before it returns OK. No other outcome changes what `read` gives:
       FENCED, a writer with a higher term owns the journal: stop, never try again;
       GAP, `expected_last` is not the last entry: the caller's view of history is wrong;
       UNKNOWN, the entry may be there or not: read back before anything else, never send the next one.
    4. After `JournalUnavailable` from `append` the entry is unknown too, and every later append raises: what failed
       once is never tried again on the same opening. Opening anew reads what is there.
    5. `read` gives every entry after `after` (None: from the very first), in order, each whole and checked, up to the
       last one at the time of its first step; or it raises `EntryUnknown`, no later than at that step. It never starts
       further on than it was asked to.
    6. What was acknowledged is given back, byte for byte, by every later opening, or the opening is refused.
       The one exception: damage to the very last entry cannot be told from a write that was never acknowledged.
    7. `trim(floor)` lets go of entries up to `floor`, as far as is convenient, and of none after it; the last entry's
       id stays known. What was let go may stay readable for a while; a later opening gives either it or EntryUnknown.
    8. `closed` is the last entry of the part that is only read from now on, also by who makes snapshots beside the
       writer; `cut` makes that the last entry there is, and gives it. `snapshot` is the newest state that was saved,
       and the last entry it knows of; `tidy` lets go of what two snapshots hold already. A journal that nobody reads
       beside its writer has no closed part: BEFORE_FIRST.
    9. `has_room` is a cheap look: whether appends are likely to go well for some time.
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
