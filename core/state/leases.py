"""Leases: rows that a task holds for a time, what became of each row, and which leases are open, closed or overdue.

A lease is derived from events, but for its deadline: that is the engine's clock at hand-out (or at replay) plus its
length, so a restart gives each live lease its full length again.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from core.arrays import Bits, Ints, joined

from .deadlines import Deadlines
from .transitions import LOST, OPEN

REMEMBERED = 10_000
FEW = 8  # rows of a lease below which their columns are small beside the lease itself
_NAME = re.compile(r"c[1-9a-f][0-9a-f]{0,15}")


@dataclass(slots=True, eq=False)
class Lease:
    """`indexes` int64 and `fate` uint8 (the states of `states.LEASE`), one per row in the order handed out.

    Times are the engine clock's seconds. `group_size`: rows that settle together, side by side in that order; 1: each
    for itself.
    """

    number: int
    token: str
    partition_id: str
    task: str
    worker: str | None
    length_s: float
    group_size: int
    indexes: Ints
    attempts: Ints
    fate: Bits
    began: float = 0.0
    deadline: float = 0.0
    is_closed: bool = False

    @property
    def claim_id(self) -> str:
        """Never used again: it is the revision of the change that handed the rows out."""
        return claim_id(self.number)

    def open_rows(self) -> Ints:
        """Global indexes of the rows that are still held."""
        return np.asarray(self.indexes[self.fate == OPEN])

    def left_s(self, now: float) -> float:
        """Seconds until it ends; 0 once it is closed."""
        return 0.0 if self.is_closed else max(0.0, self.deadline - now)

    def close(self) -> None:
        """No row is held any more. Many such are remembered: what is the same for all rows is one array for them."""
        self.is_closed = True
        if len(self.fate) >= FEW:
            self.attempts, self.fate = _shared(self.attempts), _shared(self.fate)

    def settle(self, indexes: Ints, fate: int) -> None:
        """Rows of these indexes are no longer held."""
        self.fate[np.isin(self.indexes, indexes) & (self.fate == OPEN)] = fate


class Leases:
    """All leases of the service by number: the open ones, and the last closed."""

    def __init__(self) -> None:
        self.open: dict[int, Lease] = {}
        self.closed: dict[int, Lease] = {}
        self.over_until = float("-inf")  # when deadlines were last looked at, in the engine clock's seconds
        self._deadlines: Deadlines[int] = Deadlines()

    def find(self, name: str) -> Lease | None:
        """The lease of a claim id, open or lately closed."""
        number = number_of(name)
        return None if number is None else self.of(number)

    def of(self, number: int) -> Lease | None:
        """The lease of a claim's number, open or lately closed."""
        return self.open.get(number) or self.closed.get(number)

    def begin(self, lease: Lease, now: float) -> None:
        """A lease starts now."""
        lease.began = now
        self.open[lease.number] = lease
        self.extend(lease, lease.length_s, now)
        if not len(lease.indexes):  # an empty share
            self.settle([lease])

    def extend(self, lease: Lease, length_s: float, now: float) -> None:
        """It ends `length_s` from now."""
        lease.length_s, lease.deadline = length_s, now + length_s
        self._deadlines.put(lease.number, lease.deadline)

    def settle(self, touched: Iterable[Lease]) -> None:
        """Of these leases rows have been settled: those without an open row are closed."""
        self.close(lease for lease in touched if not lease.is_closed and not np.count_nonzero(lease.fate == OPEN))

    def close(self, leases: Iterable[Lease]) -> list[Lease]:
        """These open leases have no open row left. Returns those that are forgotten for them, the oldest."""
        numbers = []
        for lease in leases:
            lease.close()
            numbers.append(lease.number)
        self._deadlines.discard(numbers)
        self.closed.update(zip(numbers, map(self.open.pop, numbers), strict=True))
        return self._forget_oldest()

    def _forget_oldest(self) -> list[Lease]:
        """One look for all: the first key of a dict is slow to find once many before it were deleted."""
        oldest = list(islice(self.closed, max(0, len(self.closed) - REMEMBERED)))
        return list(map(self.closed.pop, oldest))

    def due(self) -> float | None:
        """When the next lease ends."""
        return self._deadlines.next()

    def overdue(self, now: float, most: int) -> list[Lease]:
        """Leases whose time is up, in the order of their deadlines; at most so many, and each is told of once."""
        self.over_until = now
        taken = takewhile(lambda number: number is not None, (self._deadlines.take(now) for _ in range(most)))
        return [self.open[number] for number in taken if number is not None]

    def is_over(self, lease: Lease) -> bool:
        """Its time was up when that was last looked at, though it may be still open: others end before it."""
        return not lease.is_closed and lease.deadline <= self.over_until


def fates_of(leases: Sequence[Lease]) -> Bits:
    """The fates of all rows of these leases, one lease after the other; a copy, read-only."""
    return joined([lease.fate for lease in leases], np.uint8)


def end(leases: Sequence[Lease]) -> None:
    """All rows of these open leases that are open are lost. Most leases of many have one row: those share one array."""
    several = []
    for lease in leases:
        if len(lease.fate) == 1:
            lease.fate = _ONE_LOST
        else:
            several.append(lease)
    lose(several)


def lose(leases: Sequence[Lease], indexes: Ints | None = None) -> list[Lease]:
    """The open rows of these leases are lost, or only those of `indexes`. Returns the leases without an open row left.

    All of them at once: each has a row at least, and gets its part of one array.
    """
    if not leases:
        return []
    fates = fates_of(leases).copy()
    is_lost = fates == OPEN
    if indexes is not None:
        is_lost &= np.isin(np.concatenate([lease.indexes for lease in leases]), indexes)
    fates[is_lost] = LOST
    starts = np.concatenate([[0], np.cumsum([len(lease.fate) for lease in leases])])
    left = np.add.reduceat(fates == OPEN, starts[:-1], dtype=np.int64).tolist()
    places = starts.tolist()
    for lease, first, end in zip(leases, places, places[1:], strict=False):
        lease.fate = fates[first:end]
    return [lease for lease, count in zip(leases, left, strict=True) if not count]


def _shared(column: "npt.NDArray[Any]") -> "npt.NDArray[Any]":
    values = column.tobytes()  # compared as bytes: for some rows that is a tenth of what numpy's own functions cost
    if values != values[: column.itemsize] * len(column):
        return column
    return _same(column.dtype.str, int(column[0]), len(column))


@lru_cache(maxsize=256)
def _same(dtype: str, value: int, count: int) -> "npt.NDArray[Any]":
    """Nobody may write to it."""
    made = np.full(count, value, dtype)
    made.flags.writeable = False
    return made


_ONE_LOST: Bits = _same("|u1", LOST, 1)


def claim_id(number: int) -> str:
    """As callers see it."""
    return f"c{number:x}"


def number_of(name: str) -> int | None:
    """The number of a claim id, None for what is none."""
    return int(name[1:], 16) if _NAME.fullmatch(name) else None
