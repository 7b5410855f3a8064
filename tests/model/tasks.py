"""One task's state of a partition's rows, on plain values: which lease holds a row, its outcome, rows set aside."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.model.memory import Allotment

if TYPE_CHECKING:
    from tests.model.plain import Partition


@dataclass
class Task:
    """`leased`: who holds a row, by number; `dead`: why; `attempts`: how often a row went out with a lease; `memory`:
    what samplers remember, by key."""

    consumed: set[int] = field(default_factory=set)
    cleared: int = 0
    leased: dict[int, int] = field(default_factory=dict)
    dead: dict[int, str] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    memory: dict[str, Allotment] = field(default_factory=dict)

    @property
    def settled(self) -> set[int]:
        """Rows of which something became, or that somebody has."""
        return {*self.consumed, *self.leased, *self.dead}

    @property
    def held(self) -> set[int]:
        """Rows that nobody has and that are set aside for a key (some are not there any more)."""
        shares = [share for kept in self.memory.values() for share in kept.shares if not share.is_broken]
        return {index for share in shares for index in share.indexes} - self.settled

    @property
    def taken(self) -> set[int]:
        """Rows that are not to be had."""
        return self.settled | self.held

    def consumed_gone(self, partition: "Partition") -> int:
        """Consumed rows that are no longer there, or clearing."""
        return self.cleared + len(self.consumed & partition.clearing.keys())

    def take_back(self, index: int) -> None:
        """The last time the row went out was no attempt."""
        self.attempts[index] -= 1
        if not self.attempts[index]:
            del self.attempts[index]

    def release_all(self, there: set[int]) -> None:
        """Of a key that has a row of which nothing has become, nothing is known any more."""
        free = {*self.leased, *self.held} & there
        for key, kept in list(self.memory.items()):
            if any(not share.is_broken and free & set(share.indexes) for share in kept.shares):
                del self.memory[key]
        self.leased.clear()

    def forget(self, index: int) -> None:
        """The row is gone; that it was consumed still counts; its share is broken if nothing had become of it."""
        if index not in self.consumed and index not in self.dead:
            for share in [share for kept in self.memory.values() for share in kept.shares]:
                share.is_broken |= index in share.indexes
        self.cleared += index in self.consumed
        self.consumed.discard(index)
        for kept in (self.leased, self.dead, self.attempts):
            kept.pop(index, None)
