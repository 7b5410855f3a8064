"""What samplers with memory keep of one task: which rows were set aside for whom. Only events change it.

A key is what a request names of a sampler; its rows are in shares, one per rank that may ask. Until a claim takes them,
and again when its lease ended, the rows of a share are HELD for the task (core/state/transitions.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import Columns, Flags, Ints
from core.events import ShareTerms

from .leases import Lease


@dataclass(slots=True, eq=False)
class Share:
    """`indexes` int64 in the order they go out. `claim`: the number of the last claim that had rows of it, 0: none yet.

    `lease`: that claim's, where it had one. Broken: a row was cleared before it was settled, nothing is held any more.
    """

    indexes: Ints
    claim: int = 0
    lease: Lease | None = None
    is_broken: bool = False


@dataclass(slots=True, eq=False)
class Allotment:
    """What a key stands for: the terms it was made under, and the number of its first share."""

    terms: ShareTerms
    first: int


class Memory(Columns):
    """Allotments by key, shares by number (from 1), and per row the number of its share, 0: none."""

    __slots__ = ("allotments", "share_of", "shares")

    columns: ClassVar[Mapping[str, object]] = {"share_of": 0}

    def __init__(self, rows: int) -> None:
        self.allotments: dict[str, Allotment] = {}
        self.shares: dict[int, Share] = {}
        self.share_of: Ints = np.zeros(rows, np.int64)

    def allot(self, key: str, terms: ShareTerms, shares: Sequence[Ints], rows: Ints) -> None:
        """`rows` are those of all shares, one after the other."""
        first = len(self.shares) + 1
        numbers = range(first, first + len(shares))
        self.allotments[key] = Allotment(terms, first)
        self.shares.update(zip(numbers, map(Share, shares), strict=True))
        self.share_of[rows] = np.repeat(np.array(numbers, np.int64), [len(indexes) for indexes in shares])

    def keeps(self, rows: Ints) -> Flags:
        """bool [rows]: which of them, free again, are held for their share."""
        numbers = self.share_of[rows]
        whole = [number for number in np.unique(numbers).tolist() if number and not self.shares[number].is_broken]
        return np.isin(numbers, whole)

    def break_up(self, rows: Ints) -> Ints:
        """These rows will not come back: their shares are broken. All rows of those that broke now."""
        broken = [number for number in np.unique(self.share_of[rows]).tolist() if number]
        broken = [number for number in broken if not self.shares[number].is_broken]
        for number in broken:
            self.shares[number].is_broken = True
        return np.flatnonzero(np.isin(self.share_of, broken)) if broken else rows[:0]

    def forget(self, rows: Ints) -> None:
        """Keys that have one of these rows are new again; their shares are broken, for nobody to ask of."""
        touched = set(self.share_of[rows].tolist())
        end = len(self.shares) + 1
        for key, kept in sorted(self.allotments.items(), key=_first, reverse=True):
            numbers, end = range(kept.first, end), kept.first
            if touched.isdisjoint(number for number in numbers if not self.shares[number].is_broken):
                continue
            del self.allotments[key]
            self.shares.update({number: Share(rows[:0], is_broken=True) for number in numbers})
            self.share_of[np.isin(self.share_of, numbers)] = 0


def _first(item: tuple[str, Allotment]) -> int:
    return item[1].first
