"""What one task can take for one list of fields: a set of rows, so that a claim costs its batch.

Theory of operation. Which rows are ready is kept once for a list of fields, and which fulfil a `where` once for each
predicate (`shared.py`). A task's own part is what it has not taken. A supply is what all three have in common: rows as
small ints in an `IndexSet`, which counts its members by blocks of 1,024, so that the lowest k are found without a look
at the others. A change only marks blocks of the rows it touched (`marks.py`), whoever waits; a supply looks at marked
blocks when it is asked for, and compares. Whole groups (`group_index.py`) follow the supply in the same way, and what
samplers keep of it, rows in an order or with weights (`sampler_index.py`), looks at the rows that came and went.

All of it is derived: it is in no journal, may be dropped at any time, and is built anew from the partition when asked
for. A supply holds row numbers, so it goes when gaps are closed, and when a field of it goes.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import WeakSet, WeakValueDictionary

import numpy as np

from core.arrays import Bits, Flags, Ints
from core.state import bounded_dict
from core.state.transitions import FREE
from core.state.where import Where

from .group_index import GroupBy, GroupIndex
from .index_set import BLOCK, IndexSet
from .marks import NEVER, Marks, in_blocks, together
from .sampler_index import SamplerIndex
from .shared import Passing, Ready, Table, Told

MAX_SAMPLER_INDEXES = 8
IndexT = TypeVar("IndexT", bound=SamplerIndex)


@dataclass(slots=True)
class Changes:
    """What changes of a partition have marked. `touched`: rows in being live or ready; `told`: in custom meta;
    `grouped`: in their group; `sized`: groups, in their size; `taken`: by task, rows that it took or gave back.
    `indexes`: all that samplers keep.
    """

    touched: Marks = field(default_factory=Marks)
    told: Marks = field(default_factory=Marks)
    grouped: Marks = field(default_factory=Marks)
    sized: Marks = field(default_factory=Marks)
    taken: WeakValueDictionary[str, Marks] = field(default_factory=WeakValueDictionary)
    indexes: WeakSet[SamplerIndex] = field(default_factory=WeakSet)


class Supply:
    """`ready` are the rows that `task` can take: every field of `fields` produced, not taken, and passing `where`."""

    __slots__ = (
        "__weakref__", "_changes", "_groups", "_marks", "_passing", "_sampler_indexes", "_seen", "_shared", "_taken",
        "_told", "fields", "ready", "task",
    )  # fmt: skip

    def __init__(
        self, task: str, fields: tuple[str, ...], changes: Changes, shared: Ready, passing: Passing | None
    ) -> None:
        self.task, self.fields = task, fields
        self.ready = IndexSet()
        self._changes, self._shared, self._passing = changes, shared, passing
        self._taken = changes.taken.setdefault(task, Marks())
        self._seen: tuple[int, ...] = (NEVER, NEVER, NEVER)
        self._marks = Marks()
        self._told = Told()
        self._groups: dict[tuple[GroupBy, int], GroupIndex] = {}
        self._sampler_indexes: dict[tuple[type[SamplerIndex], Hashable], SamplerIndex] = {}

    @property
    def mask(self) -> Ints:
        """The bit words of the fields."""
        return self._shared.mask

    @property
    def where(self) -> Where | None:
        """What the rows fulfil."""
        return self._passing.where if self._passing else None

    def passes(self, rows: Ints) -> Flags:
        """bool [rows]: which fulfil `where`."""
        return np.ones(len(rows), np.bool_) if self._passing is None else self._passing.rows.flags(rows)

    def refresh(self, table: Table) -> None:
        """Look at the blocks where something changed that decides what can be taken."""
        self._shared.refresh(table, self._changes.touched)
        if self._passing is not None:
            self._passing.refresh(table, self._changes.told)
        blocks = self._changed(table.rows.n)
        if len(blocks):
            for rows in self.ready.replace(blocks, self._bits(table, blocks)):
                self._marks.touch(rows)
                self._reorder(rows)
        if self._sampler_indexes:
            self._reorder(self._told.rows(table, self._changes.told))
        else:
            self._told.skip(table, self._changes.told)

    def _changed(self, count: int) -> Ints:
        parts = [self._shared.marks, self._taken, *([self._passing.marks] if self._passing else [])]
        now = tuple(marks.now for marks in parts)
        if now == self._seen:
            return np.empty(0, np.int64)
        blocks = together(*(marks.since(seen, count) for marks, seen in zip(parts, self._seen, strict=False)))
        self._seen = now
        return blocks

    def _bits(self, table: Table, blocks: Ints) -> Bits:
        bits = in_blocks(self._shared.rows.bits, blocks)
        states = table.states_for(self.task)
        if states is not None:
            bits &= in_blocks(states, blocks) == FREE
        if self._passing is not None:
            bits &= in_blocks(self._passing.rows.bits, blocks)
        return bits

    # What samplers keep of it

    def by_group(self, by: GroupBy, n: int, table: Table) -> GroupIndex:
        """The index of whole groups of n, made at its first use."""
        index = self._groups.get((by, n))
        if index is None:
            index = self._groups[by, n] = GroupIndex(by, n, table)
        index.refresh(table, self.ready, self._marks, self._changes.grouped, self._changes.sized)
        return index

    def sampler_index(self, kind: type[IndexT], key: Hashable) -> IndexT:
        """The index of that kind and key, made at first use; of too many the least recently asked for goes."""
        name: tuple[type[SamplerIndex], Hashable] = (kind, key)
        found = self._sampler_indexes.pop(name, None)
        if not isinstance(found, kind):
            found = kind()
            found.note(self.ready.all())
            self._changes.indexes.add(found)
        index: SamplerIndex = found
        bounded_dict.put(self._sampler_indexes, name, index, MAX_SAMPLER_INDEXES)
        return found

    def _reorder(self, rows: Ints) -> None:
        """These rows came, went, or have other custom meta. An index with more to look at than there is, is dropped."""
        most = 2 * self.ready.count + BLOCK
        for key in [key for key, index in self._sampler_indexes.items() if index.note(rows) > most]:
            del self._sampler_indexes[key]
