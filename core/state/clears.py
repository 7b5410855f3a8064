"""Clears in two steps: rows that are hidden while their bytes are deleted. The pending clears, and the last closed.

A pending clear holds its rows' indexes; the rows themselves are in their partition (core/apply/clear.py).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge

import numpy as np

from core.arrays import Ints

from . import bounded_dict
from .transitions import PENDING, ClearState

REMEMBERED = 10_000
_NAME = re.compile(r"x[1-9a-f][0-9a-f]{0,15}")
_NOTHING: Ints = np.empty(0, np.int64)


@dataclass(slots=True, eq=False)
class Clear:
    """`indexes` int64, ascending, while it is pending; `count` rows in all; `planned_at` Unix seconds."""

    number: int
    partition_id: str
    indexes: Ints
    with_tombstones: bool
    planned_at: float
    count: int
    state: ClearState = PENDING

    @property
    def clear_id(self) -> str:
        """Never used again: it is the revision of the change that planned it."""
        return f"x{self.number:x}"


class Clears:
    """All clears of the service by number: the pending ones, and the last closed."""

    def __init__(self) -> None:
        self.pending: dict[int, Clear] = {}
        self.closed: dict[int, Clear] = {}

    def find(self, name: str) -> Clear | None:
        """The clear of an id, pending or lately closed."""
        if not _NAME.fullmatch(name):
            return None
        number = int(name[1:], 16)
        return self.pending.get(number) or self.closed.get(number)

    def begin(self, clear: Clear) -> None:
        """A clear is planned."""
        self.pending[clear.number] = clear

    def close(self, number: int, state: ClearState) -> None:
        """It is committed or aborted."""
        clear = self.pending.pop(number)
        clear.state, clear.indexes = state, _NOTHING
        bounded_dict.put(self.closed, number, clear, REMEMBERED)

    def after(self, number: int) -> Iterator[Clear]:
        """Those beyond `number`, in the order they were planned."""
        closed = sorted(each for each in self.closed if each > number)
        pending = (each for each in self.pending if each > number)
        return (self.pending.get(each) or self.closed[each] for each in merge(pending, closed))
