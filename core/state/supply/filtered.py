"""Supplies of claims with a `where`. A change only notes the rows it touched; whoever asks next looks at those alone.

So such claims cost the calls of others nothing but the note, and a supply that nobody asks for any more ends by itself.
Derived, like every supply.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from core.arrays import Flags, Ints, grown
from core.state import bounded_dict
from core.state.cells.readiness import StatusWords
from core.state.rows import Rows
from core.state.where import Where

from .index_set import BLOCK, IndexSet
from .supply import Sieve, Supply

MAX_FILTERED = 64
Key = tuple[str, tuple[str, ...], Where]


class Table(Protocol):
    """What a partition tells of its rows."""

    rows: Rows

    @property
    def status(self) -> StatusWords: ...
    def free(self, task: str, rows: Ints) -> Flags: ...
    def empty_supply(self, fields: tuple[str, ...]) -> Supply: ...
    def custom_meta_of(self, rows: Ints) -> list[bytes]: ...


class Filtered:
    """One supply, the `where` its rows fulfil, and the rows to look at again; `told`: their custom meta is new."""

    __slots__ = ("_told", "_touched", "_waiting", "sieve", "supply", "task", "where")

    def __init__(self, task: str, where: Where, supply: Supply, rows: int) -> None:
        self.task, self.where, self.supply = task, where, supply
        self.sieve = supply.sieve = Sieve(np.empty(0, np.uint8), IndexSet())
        self._touched: list[Ints] = []
        self._told: list[Ints] = []
        self._waiting = 0
        self.note(np.arange(1, rows), is_told=True)

    def note(self, rows: Ints, *, is_told: bool) -> int:
        """Look at these rows again. Returns how many wait for that."""
        (self._told if is_told else self._touched).append(rows)
        self._waiting += len(rows)
        return self._waiting

    def refresh(self, table: Table) -> None:
        """Look at the rows that were touched: each is offered as it now is."""
        if not self._waiting:
            return
        told = _once(self._told)
        rows = _once([told, *self._touched])
        self._touched, self._told, self._waiting = [], [], 0
        sieve = self.sieve
        if len(sieve.passes) < table.rows.capacity:
            sieve.passes = grown(sieve.passes, table.rows.capacity, 0)
        sieve.passes[told] = self.where.matches(table.custom_meta_of(told))
        is_open = table.free(self.task, rows) & sieve.passes[rows].astype(np.bool_)
        sieve.open.add(rows[is_open])
        sieve.open.discard(rows[~is_open])
        is_open &= table.status.complete(rows, self.supply.mask).astype(np.bool_)
        self.supply.add(rows[is_open])
        self.supply.discard(rows[~is_open])
        self.supply.reordered(told)


class FilteredSupplies:
    """The filtered supplies of one partition, the least recently asked for first."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Key, Filtered] = {}

    def __iter__(self) -> Iterator[Supply]:
        return (one.supply for one in self._kept.values())

    def supply(self, table: Table, key: Key) -> Supply:
        """The one for task, fields and where, up to date, and now the last to go."""
        one = self._kept.pop(key, None)
        if one is None:
            one = Filtered(key[0], key[2], table.empty_supply(key[1]), table.rows.n)
        bounded_dict.put(self._kept, key, one, MAX_FILTERED)
        one.refresh(table)
        return one.supply

    def note(self, rows: Ints, table: Table, *, is_told: bool = False) -> None:
        """A change touched these rows, `is_told`: their custom meta too. Who has too many to look at is dropped."""
        if not self._kept:
            return
        most = table.rows.n + BLOCK
        for key in [key for key, one in self._kept.items() if one.note(rows, is_told=is_told) > most]:
            del self._kept[key]

    def drop(self, task: str | None = None, field: str | None = None) -> None:
        """Those of a task, or of a field; without either, all: row numbers or words have changed."""
        for key in list(self._kept):
            if task in (None, key[0]) and (field is None or field in key[1]):
                del self._kept[key]


def _once(parts: list[Ints]) -> Ints:
    """The rows of all parts, ascending, each once."""
    return np.unique(np.concatenate([np.empty(0, np.int64), *parts]))
