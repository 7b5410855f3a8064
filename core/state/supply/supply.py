"""What one task can take for one list of fields, kept up to date as rows become ready: a claim costs its batch.

Theory of operation. A partition has a supply for each (task, fields) that a claim named, built at first use by one look
at all rows. From then on whatever changes rows says so: a write adds rows that became ready, a claim or delete discards
rows, a release adds them again. Rows are small ints in an `IndexSet`, which counts its members by blocks of 1,024, so
the lowest k are found without a look at the others. Whole groups are ints in another, by the ready rows of each.

What only some claims ask for is not paid for by every write: a write notes the rows it touched, and the next claim that
asks looks at those alone. Two things are kept so: filtered supplies, of claims with a `where` (`filtered.py`), and
sampler indexes, rows in a sampler's order or with its weights (`sampler_index.py`). One with more noted rows than a new
look at all would cost is dropped, and so is the least recently used of too many.

All of it is derived: it is in no journal, may be dropped at any time, and is built anew from the partition when asked
for. A supply holds row numbers, so it goes when gaps are closed, and when a field of it goes.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy as np

from core.arrays import Bits, Ints, grown
from core.state import bounded_dict
from core.state.groups import Groups
from core.state.rows import Rows

from .index_set import BLOCK, IndexSet
from .sampler_index import SamplerIndex

MAX_SAMPLER_INDEXES = 8
IndexT = TypeVar("IndexT", bound=SamplerIndex)
GroupBy = Literal["group_id", "position"]


class GroupIndex:
    """Whole groups of exactly n ready rows. `by` group id, or by position: rows k*n … k*n+n-1 ever inserted."""

    def __init__(self, by: GroupBy, n: int, rows: Rows, groups: Groups) -> None:
        self.by, self.n = by, n
        self._rows, self._groups = rows, groups
        self._base = int(rows.position[1]) // n if rows.n > 1 else rows.positions // n  # no row comes before row 1
        self._ready = np.zeros(BLOCK, np.int64)
        self.whole = IndexSet()

    def _numbers(self, rows: Ints) -> Ints:
        if self.by == "group_id":
            return self._groups.number[rows].astype(np.int64)
        return self._rows.position[rows] // self.n - self._base

    def add(self, rows: Ints, step: int = 1) -> None:
        """These rows became ready for the task (step -1: no longer are)."""
        numbers = self._numbers(rows)
        if len(numbers) and int(numbers.max()) >= len(self._ready):
            self._ready = grown(self._ready, int(numbers.max()) * 5 // 4 + 1, 0)
        np.add.at(self._ready, numbers, step)
        self.refresh(np.unique(numbers))

    def refresh(self, numbers: Ints) -> None:
        """These groups changed in size or in ready rows."""
        if self.by == "group_id":
            numbers = numbers[(numbers > 0) & (numbers < len(self._ready))]
        whole = self._ready[numbers] == self.n
        if self.by == "group_id":
            whole &= self._groups.size[numbers] == self.n
        self.whole.add(numbers[whole])
        self.whole.discard(numbers[~whole])

    def take(self, groups: int) -> Ints:
        """Rows of up to `groups` whole groups, oldest group first: int64 [groups * n]."""
        while True:
            chosen = self.whole.lowest(groups)
            members = self._members(chosen)
            mixed = self._mixed(members)
            if not mixed.any():
                return members.reshape(-1)
            self.whole.discard(chosen[mixed])

    def _members(self, numbers: Ints) -> Ints:
        if self.by == "group_id":
            return self._groups.members(numbers, self._rows.is_live, self.n)
        known = self._rows.position[: self._rows.n]
        heads = np.searchsorted(known, (numbers + self._base) * self.n)
        return heads[:, None] + np.arange(self.n)

    def _mixed(self, members: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """A window of two group ids is never whole: a row's group is set once."""
        numbers = self._groups.number[members]
        highest = numbers.max(axis=1, initial=0)
        return np.asarray(((numbers != highest[:, None]) & (numbers > 0)).any(axis=1))


@dataclass(slots=True)
class Sieve:
    """What a `where` leaves. `passes` uint8 [rows]: who fulfils it; `open`: of those, who is free, ready or not."""

    passes: Bits
    open: IndexSet


@dataclass(slots=True)
class Supply:
    """The rows a task can take: every field of `fields` produced, not consumed by it, and through the sieve if any."""

    fields: tuple[str, ...]
    mask: Ints
    bit_set: int
    ready: IndexSet
    groups: dict[tuple[GroupBy, int], GroupIndex]
    sieve: Sieve | None = None
    sampler_indexes: dict[tuple[type[SamplerIndex], Hashable], SamplerIndex] = field(default_factory=dict)

    def add(self, rows: Ints) -> None:
        """These rows can be taken now."""
        fresh = self.ready.add(rows)
        for index in self.groups.values():
            index.add(fresh)
        self.reordered(fresh)

    def discard(self, rows: Ints) -> None:
        """These rows cannot be taken any more."""
        gone = self.ready.discard(rows)
        for index in self.groups.values():
            index.add(gone, -1)
        self.reordered(gone)

    def reordered(self, rows: Ints) -> None:
        """These rows came, went, or have other custom meta. An index with more to look at than there is, is dropped."""
        most = 2 * self.ready.count + BLOCK
        for key in [key for key, index in self.sampler_indexes.items() if index.note(rows) > most]:
            del self.sampler_indexes[key]

    def sampler_index(self, kind: type[IndexT], key: Hashable) -> IndexT:
        """The index of that kind and key, made at first use; of too many the least recently asked for goes."""
        name: tuple[type[SamplerIndex], Hashable] = (kind, key)
        found = self.sampler_indexes.pop(name, None)
        if not isinstance(found, kind):
            found = kind()
            found.note(self.ready.all())
        index: SamplerIndex = found
        bounded_dict.put(self.sampler_indexes, name, index, MAX_SAMPLER_INDEXES)
        return found

    def grouped(self, rows: Ints, numbers: Ints) -> None:
        """These rows got a group."""
        ready = self.ready.has(rows)
        for index in self.groups.values():
            if index.by == "group_id":
                index.add(ready)
                index.refresh(np.unique(numbers).astype(np.int64))

    def resized(self, numbers: Ints) -> None:
        """These groups lost rows, or have some back."""
        for index in self.groups.values():
            if index.by == "group_id":
                index.refresh(np.unique(numbers).astype(np.int64))

    def by_group(self, by: GroupBy, n: int, rows: Rows, groups: Groups) -> GroupIndex:
        """The index of whole groups of n, made at its first use."""
        index = self.groups.get((by, n))
        if index is None:
            index = self.groups[by, n] = GroupIndex(by, n, rows, groups)
            index.add(self.ready.all())
        return index
