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
from .marks import ALL, NEVER, Look, Marks, in_blocks
from .sampler_index import WEIGHED, SamplerIndex
from .shared import Passing, Ready, Table, Told

MAX_SAMPLER_INDEXES = 8
IndexT = TypeVar("IndexT", bound=SamplerIndex)


@dataclass(slots=True)
class PartitionMarks:
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
        "__weakref__", "_changes", "_groups", "_look", "_marks", "_now", "_passing", "_sampler_indexes", "_shared",
        "_taken", "_told", "fields", "ready", "task",
    )  # fmt: skip

    def __init__(
        self, task: str, fields: tuple[str, ...], changes: PartitionMarks, shared: Ready, passing: Passing | None
    ) -> None:
        self.task, self.fields = task, fields
        self.ready = IndexSet()
        self._changes, self._shared, self._passing = changes, shared, passing
        self._taken = changes.taken.setdefault(task, Marks())
        self._look = Look()
        self._now = (NEVER, NEVER, NEVER)  # the last marks of which all is looked at
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

    def fails(self, among: Flags) -> Flags:
        """bool [rows], as `among`: which of these do not fulfil `where`."""
        if self._passing is None:
            return np.zeros(len(among), np.bool_)
        passes = self._passing.rows.bits[: len(among)]
        found = among.copy()
        found[: len(passes)] &= passes == 0
        return found

    def refresh(self, table: Table, most: int = ALL) -> bool:
        """Look at the blocks where something changed that decides what can be taken, at most so many (for a `where`, at
        a quarter of their rows). False while some are left: it is not to be used before.
        """
        passing, changes = self._passing, self._changes
        now = (changes.touched.now, changes.told.now, self._taken.now)
        if now == self._now:
            return True
        if not self._shared.refresh(table, changes.touched, most):
            return False
        if passing is not None and not passing.refresh(table, changes.told, most * WEIGHED):
            return False
        marks = (
            (self._shared.marks, self._taken) if passing is None else (self._shared.marks, self._taken, passing.marks)
        )
        few = self._look.rows(*marks)
        if few is not None:
            if len(few):
                self._change(self.ready.set(few, self._flags(table, few)))
        else:
            blocks = self._look.take(table.rows.n, most, *marks)
            if len(blocks):
                self._change(self.ready.replace(blocks, self._bits(table, blocks)))
        self._follow(table)
        if self._look.is_over:
            self._now = now
        return self._look.is_over

    def _change(self, changed: tuple[Ints, Ints]) -> None:
        for rows in changed:
            if len(rows):
                self._marks.touch(rows)
                self._reorder(rows)

    def _flags(self, table: Table, rows: Ints) -> Flags:
        flags = self._shared.rows.flags(rows)
        states = table.states_for(self.task)
        if states is not None:
            flags = flags & (states[rows] == FREE)
        return flags if self._passing is None else flags & self._passing.rows.flags(rows)

    def _follow(self, table: Table) -> None:
        """Sampler indexes look at rows with other custom meta too."""
        if self._sampler_indexes:
            self._reorder(self._told.rows(table, self._changes.told))
        else:
            self._told.skip(table, self._changes.told)

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
        self.look_at_groups(by, n, table, ALL)
        return self._groups[by, n]

    def look_at_groups(self, by: GroupBy, n: int, table: Table, most: int) -> bool:
        """Bring that index up to date, looking at most at so many blocks of rows. False while some are left."""
        index = self._groups.get((by, n))
        if index is None:
            index = self._groups[by, n] = GroupIndex(by, n, table)
        changes = self._changes
        rows = (self._marks, changes.grouped) if by == "group_id" else (self._marks,)
        return index.refresh(table, self.ready, rows, changes.sized, most)

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
