"""Groups of rows: a group number per row, and a linked list through the rows of each group, all in arrays.

Number 0 is *no group*. Groups are numbered in the order they were first named, so the lowest number is the oldest.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from core.arrays import START, Cells, Columns, Flags, Ints, filled, grown, next_capacity

from .rows import NULL


class Groups(Columns):
    """`number` int32 [rows]; per group: `ids` (JSON values), `size` (live rows), and the head of its list of rows."""

    __slots__ = ("_head", "_next", "count", "ids", "number", "numbers", "size")

    columns: ClassVar[Mapping[str, object]] = {"number": 0, "_next": 0}

    def __init__(self, rows: int) -> None:
        self.number = np.zeros(rows, np.int32)
        self._next = np.zeros(rows, np.int64)
        self.count = 1
        self.numbers: dict[bytes, int] = {}
        self.ids: Cells = filled(START, NULL, object)
        self.size = np.zeros(START, np.int64)
        self._head = np.zeros(START, np.int64)

    def add(self, rows: Ints, group_ids: Sequence[bytes]) -> Ints:
        """Put these rows, in no group so far, into these groups. Returns the group numbers."""
        for group_id in group_ids:
            if group_id not in self.numbers:
                self.numbers[group_id] = self.count
                self._append(group_id)
        numbers = [self.numbers[group_id] for group_id in group_ids]
        for row, number in zip(rows.tolist(), numbers, strict=True):
            self._next[row] = self._head[number]
            self._head[number] = row
        for number, count in Counter(numbers).items():
            self.size[number] += count
        self.number[rows] = numbers
        return np.array(numbers, np.int64)

    def _append(self, group_id: bytes) -> None:
        capacity = next_capacity(self.count + 1, len(self.ids))
        if capacity != len(self.ids):
            self.ids = grown(self.ids, capacity, NULL)
            self.size = grown(self.size, capacity, 0)
            self._head = grown(self._head, capacity, 0)
        self.ids[self.count] = group_id
        self.count += 1

    def remove(self, rows: Ints) -> Ints:
        """These rows are no longer live. Returns the numbers of their groups."""
        return self._resize_groups(rows, -1)

    def bring_back(self, rows: Ints) -> Ints:
        """These rows are live again. Returns the numbers of their groups."""
        return self._resize_groups(rows, 1)

    def _resize_groups(self, rows: Ints, step: int) -> Ints:
        numbers = self.number[rows].astype(np.int64)
        numbers = numbers[numbers > 0]
        np.add.at(self.size, numbers, step)
        return numbers

    def rows_of(self, group_ids: Sequence[bytes], rows: Ints) -> Ints:
        """Those of `rows` that belong to one of these groups, in the order of `rows`."""
        wanted = np.zeros(self.count, np.bool_)
        wanted[[self.numbers[group_id] for group_id in group_ids if group_id in self.numbers]] = True
        return np.asarray(rows[wanted[self.number[rows]]])

    def members(self, numbers: Ints, is_live: Callable[[Ints], Flags], each: int) -> Ints:
        """int64 [groups, each]: the live rows of groups that have exactly `each` of them, lowest first."""
        rows = self._head[numbers]
        steps = []
        while rows.any():
            steps.append(rows)
            rows = self._next[rows]
        found = np.stack(steps, axis=1) if steps else np.zeros((0, each), np.int64)
        found[~is_live(found)] = np.iinfo(np.int64).max
        found.sort(axis=1)
        return found[:, :each]

    def compact(self, rows: Ints, capacity: int) -> None:
        """Only these rows (row 0 first) remain; groups without rows are forgotten, the others keep their order."""
        old = self.number[rows]
        used = np.unique(old[old > 0])
        ids = self.ids[used].tolist()
        fresh = Groups(capacity)
        grouped = np.flatnonzero(old)
        by_number = dict(zip(used.tolist(), ids, strict=True))
        for group_id in ids:
            fresh.numbers[group_id] = fresh.count
            fresh._append(group_id)
        fresh.add(grouped, [by_number[number] for number in old[grouped].tolist()])
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))
