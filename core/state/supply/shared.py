"""Sets of rows that all tasks share: one for each list of fields (its ready rows), one for each `where`.

Kept as long as a supply uses it, and brought up to date only when one is asked for. Derived, like every supply.
"""

from typing import Protocol

import numpy as np

from core.arrays import Bits, Ints
from core.state.cells.readiness import StatusWords
from core.state.groups import Groups
from core.state.rows import Rows
from core.state.where import Where

from .index_set import BLOCK, IndexSet
from .marks import NEVER, Look, Marks, rows_of, together


class Table(Protocol):
    """What a partition tells of its rows."""

    revision: int
    rows: Rows
    groups: Groups

    @property
    def status(self) -> StatusWords: ...
    def mask_of(self, fields: tuple[str, ...]) -> Ints: ...
    def states_for(self, task: str) -> Bits | None: ...
    def custom_meta_of(self, rows: Ints) -> list[bytes]: ...


class Ready:
    """The live rows of which every field of `fields` is produced. `marks` tell where they changed."""

    __slots__ = ("__weakref__", "_look", "marks", "mask", "rows")

    def __init__(self, mask: Ints) -> None:
        self.mask = mask
        self.rows = IndexSet()
        self.marks = Marks()
        self._look = Look()

    def refresh(self, table: Table, touched: Marks, most: int) -> bool:
        """Look at the blocks that were touched, at most so many. False while some are left."""
        few = self._look.rows(touched)
        if few is not None:
            if len(few):
                ready = table.rows.is_live(few) & table.status.complete(few, self.mask).view(np.bool_)
                self._mark(self.rows.set(few, ready))
            return True
        blocks = self._look.take(table.rows.n, most, touched)
        if len(blocks):
            rows = rows_of(blocks, table.rows.n)
            bits = np.zeros((len(blocks), BLOCK), np.uint8)
            bits.reshape(-1)[: len(rows)] = table.rows.is_live(rows) & table.status.complete(rows, self.mask)
            self._mark(self.rows.replace(blocks, bits))
        return self._look.is_over

    def _mark(self, changed: tuple[Ints, Ints]) -> None:
        for rows in changed:
            self.marks.touch(rows)


class Told:
    """How far somebody has read the custom meta: up to a mark, and a revision, since rows have theirs."""

    __slots__ = ("_revision", "_seen")

    def __init__(self) -> None:
        self._seen = self._revision = NEVER

    def rows(self, table: Table, told: Marks) -> Ints:
        """Rows whose custom meta may be new since the last time, ascending; at first all."""
        if told.now == self._seen:
            return np.empty(0, np.int64)
        blocks = told.since(self._seen, table.rows.n)
        rows = rows_of(blocks, table.rows.n)[int(len(blocks) > 0 and blocks[0] == 0) :]  # without the absent row
        rows = rows[table.rows.revision[rows] > self._revision]
        self.skip(table, told)
        return rows

    def skip(self, table: Table, told: Marks) -> None:
        """What was told so far is of no interest."""
        self._seen, self._revision = told.now, table.revision


class Passing:
    """The rows whose custom meta fulfils `where`, live or not. `marks` tell where they changed."""

    __slots__ = ("__weakref__", "_left", "_told", "marks", "rows", "where")

    def __init__(self, where: Where) -> None:
        self.where = where
        self.rows = IndexSet()
        self.marks = Marks()
        self._told = Told()
        self._left: Ints = np.empty(0, np.int64)

    def refresh(self, table: Table, told: Marks, most: int) -> bool:
        """Look at the rows of which new custom meta was told, at most so many. False while some are left."""
        rows = together(self._left, self._told.rows(table, told))
        rows, self._left = rows[:most], rows[most:]
        if len(rows):
            passes = self.where.matches(table.custom_meta_of(rows))
            for changed in self.rows.set(rows, passes):
                self.marks.touch(changed)
        return not len(self._left)
