"""Remembers which blocks of 1,024 rows changes touched, so that a supply is brought up to date from these alone.

A mark costs the rows of its change, however many look. Who looks keeps the number it has seen, so it is never too far
behind: it has all blocks to look at, at most. Of the last few marks the rows are known, so that who is nearly up to
date looks at these alone.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from core.arrays import Ints, grown

from .index_set import BLOCK

NEVER = -1  # has seen nothing yet
ALL = 2**62  # blocks, or rows, at once
RECENT = 8  # marks of which the rows are known
STEP = 32  # blocks that one step of sliced work looks at
_FEW = 32
_NONE = np.empty(0, np.int64)


class Marks:
    """`now` is the number of the last mark, from 1; `_at` int64 [blocks] the last of each block; `_last` the rows of
    the last marks.
    """

    __slots__ = ("__weakref__", "_at", "_last", "now")

    def __init__(self) -> None:
        self._at: Ints = np.zeros(1, np.int64)
        self._last: list[Ints] = []
        self.now = 0

    def touch(self, items: Ints) -> None:
        """Something changed of these rows (or of whatever else is numbered)."""
        if not len(items):
            return
        blocks = items // BLOCK if len(items) > 1 else int(items[0]) // BLOCK  # for one an int costs half of an array
        self.now += 1
        if len(items) > BLOCK:
            self._last.clear()
        else:
            self._last.append(items)
            del self._last[:-RECENT]
        try:
            self._at[blocks] = self.now
        except IndexError:
            self._at = grown(self._at, int(np.max(blocks)) * 5 // 4 + 1, 0)
            self._at[blocks] = self.now

    def last(self, seen: int) -> list[Ints] | None:
        """The rows of each mark after `seen`; None where there are too many."""
        behind = self.now - seen
        return self._last[len(self._last) - behind :] if behind <= len(self._last) else None

    def since(self, seen: int, count: int) -> Ints:
        """The blocks that were touched after mark `seen`, ascending; all blocks of `count` rows for NEVER."""
        if seen == self.now:
            return _NONE
        return np.arange(-(-count // BLOCK)) if seen == NEVER else np.flatnonzero(self._at > seen)


class Look:
    """How far somebody has looked at some marks, and the blocks that are left from the last time."""

    __slots__ = ("_left", "_seen")

    def __init__(self) -> None:
        self._left: Ints = _NONE
        self._seen: tuple[int, ...] = ()

    @property
    def is_over(self) -> bool:
        """Nothing is left."""
        return not len(self._left)

    def rows(self, *marks: Marks) -> Ints | None:
        """The rows that were touched since, each once, where they are known and few; else None: take blocks."""
        if len(self._left) or not self._seen:
            return None
        if all(one.now == seen for one, seen in zip(marks, self._seen, strict=True)):
            return _NONE
        parts: dict[int, Ints] = {}  # by identity: marks of one change mostly are of the same rows
        for one, seen in zip(marks, self._seen, strict=True):
            if one.now != seen:
                last = one.last(seen)
                if last is None:
                    return None
                parts.update((id(rows), rows) for rows in last)
        if sum(map(len, parts.values())) > BLOCK:
            return None
        self._seen = tuple(one.now for one in marks)
        return together(*parts.values())

    def take(self, count: int, most: int, *marks: Marks) -> Ints:
        """At most so many blocks to look at, of `count` rows: at first all, then those that were touched since."""
        now = tuple(one.now for one in marks)
        if now == self._seen and not len(self._left):
            return _NONE
        seen = self._seen or (NEVER,) * len(now)
        blocks = together(self._left, *(one.since(its, count) for one, its in zip(marks, seen, strict=True)))
        self._seen, self._left = now, blocks[most:]
        return blocks[:most]


def together(*parts: Ints) -> Ints:
    """The numbers of all parts, ascending, each once; each part has each once."""
    some = [part for part in parts if len(part)]
    if len(some) < 2:
        return some[0] if some else _NONE
    if sum(map(len, some)) <= _FEW:  # a set of so few costs a third of a sort by numpy
        return np.array(sorted({item for part in some for item in part.tolist()}))
    return np.unique(np.concatenate(some))


def rows_of(blocks: Ints, count: int) -> Ints:
    """The rows of these blocks, of `count` rows."""
    rows = (blocks[:, None] * BLOCK + np.arange(BLOCK)).reshape(-1)
    return rows[: np.searchsorted(rows, count)]


def in_blocks(column: npt.NDArray[Any], blocks: Ints) -> npt.NDArray[Any]:
    """[blocks, 1,024]: these blocks of a column, zero where it ends before."""
    out = np.zeros((len(blocks), BLOCK), column.dtype)
    whole = len(column) // BLOCK
    there = int(np.searchsorted(blocks, whole))
    out[:there] = column[: whole * BLOCK].reshape(-1, BLOCK)[blocks[:there]]
    if there < len(blocks) and blocks[there] == whole:
        rest = column[whole * BLOCK :]
        out[there, : len(rest)] = rest
    return out
