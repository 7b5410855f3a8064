"""What one task has of each row: a small vector over rows, and the counts that outlive cleared rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from core.arrays import Bits, Columns, Flags, Ints, filled
from core.events import ShareTerms

from .sampler_memory import Memory
from .transitions import CONSUMED, DEAD, FREE, HELD, LEASED


class Task(Columns):
    """A named consumer of one partition. Rows that are clearing keep their state, but count as cleared ones."""

    __slots__ = ("attempts", "consumed", "consumed_cleared", "dead", "holder", "leased", "memory", "reasons", "state")

    columns: ClassVar[Mapping[str, object]] = {"state": FREE, "attempts": 0, "holder": 0}

    def __init__(self, rows: int) -> None:
        self.state: Bits = filled(rows, FREE, np.uint8)  # of each row: a state of `transitions.TASK`
        self.attempts: Ints | None = None  # hand-outs of each row under a lease; None before the first lease
        self.holder: Ints | None = None  # the number of the lease that has each row, 0 for none
        self.reasons: dict[int, str] = {}  # why rows are dead, by global index
        self.memory: Memory | None = None  # what samplers remember; None until one does
        self.consumed = 0  # rows consumed since the last reset, cleared ones included
        self.consumed_cleared = 0  # of those, the ones that are cleared or clearing
        self.leased = 0  # live rows that are LEASED or HELD
        self.dead = 0  # live rows that are DEAD

    @property
    def consumed_live(self) -> int:
        """Rows that are there and consumed."""
        return self.consumed - self.consumed_cleared

    @property
    def settled(self) -> int:
        """Live rows that are not to be handed out any more: consumed or dead."""
        return self.consumed_live + self.dead

    @property
    def has_history(self) -> bool:
        """There is something to forget: a live row was handed out with a lease, or a sampler remembers some."""
        remembers = self.memory is not None and bool(self.memory.allotments)
        return remembers or (self.attempts is not None and bool(self.attempts.any()))

    def attempts_of(self, rows: Ints) -> Ints:
        """How often each row was handed out with a lease."""
        return np.zeros(len(rows), np.int64) if self.attempts is None else self.attempts[rows]

    def consume(self, rows: Ints) -> None:
        self.state[rows] = CONSUMED
        self.consumed += len(rows)

    def lease(self, rows: Ints, number: int) -> Ints:
        """Hand the rows out under this lease; their attempts so far, this one included."""
        if self.attempts is None or self.holder is None:
            self.attempts, self.holder = np.zeros((2, len(self.state)), np.int64)
        self.state[rows] = LEASED
        self.holder[rows] = number
        self.attempts[rows] += 1
        self.leased += len(rows)
        return self.attempts[rows]

    def take_back(self, rows: Ints) -> None:
        """The last time these rows were handed out was no attempt."""
        if self.attempts is not None:
            self.attempts[rows] -= 1

    def settle(self, rows: Ints, state: int, live: Flags) -> None:
        """Leased rows are consumed, free again, or dead; `live` bool [rows]: those that are not clearing."""
        count = int(np.count_nonzero(live))
        self.leased -= count
        self.state[rows] = state
        if self.holder is not None:
            self.holder[rows] = 0
        if state == CONSUMED:
            self.consumed += len(rows)
            self.consumed_cleared += len(rows) - count
        self.dead += count if state == DEAD else 0

    # Rows that are set aside for a share of sampler memory

    def is_held(self, rows: Ints) -> Flags:
        """bool [rows]."""
        return np.asarray(self.state[rows] == HELD)

    def allot(self, key: str, terms: ShareTerms, shares: Sequence[Ints], rows: Ints) -> None:
        """Free rows are held from now on; `shares` are their indexes, `rows` those of all shares in turn."""
        self.memory = self.memory or Memory(len(self.state))
        self.memory.allot(key, terms, shares, rows)
        self._hold(rows, len(rows))

    def fetch(self, share: int, rows: Ints, claim: int) -> None:
        """This claim is about to take rows that are held for a share. 0 is no share."""
        if self.memory is None or not share:
            return
        self.memory.shares[share].claim = claim
        self.leased -= len(rows)

    def give_back(self, rows: Ints, live: Flags) -> Ints:
        """Free rows that belong to a share are held for it again; returns the others, of those that are live."""
        if self.memory is None:
            return np.asarray(rows[live])
        kept = self.memory.keeps(rows)
        self._hold(rows[kept], int(np.count_nonzero(live[kept])))
        return np.asarray(rows[~kept & live])

    def break_up(self, rows: Ints, is_live: Callable[[Ints], Flags]) -> Ints:
        """These rows are going: what was held together with them is free again. Returns what is live of it."""
        if self.memory is None:
            return rows[:0]
        together = self.memory.break_up(rows[_is_out(self.state[rows])])
        freed = np.setdiff1d(together[self.is_held(together)], rows)
        self.state[freed] = FREE
        offered = np.asarray(freed[is_live(freed)])
        self.leased -= len(offered)
        return offered

    def _hold(self, rows: Ints, live: int) -> None:
        self.state[rows] = HELD
        self.leased += live

    def hide(self, rows: Ints, step: int = 1) -> None:
        """These rows are clearing (step -1: live again): they count no more, but for what was consumed of them."""
        state = self.state[rows]
        self.consumed_cleared += step * int(np.count_nonzero(state == CONSUMED))
        self.leased -= step * int(np.count_nonzero(_is_out(state)))
        self.dead -= step * int(np.count_nonzero(state == DEAD))

    def drop(self, rows: Ints, indexes: Ints) -> Ints:
        """These hidden rows are gone. Returns the numbers of leases that had some."""
        for index in indexes.tolist() if self.reasons else ():
            self.reasons.pop(index, None)
        self.state[rows] = FREE
        if self.attempts is None or self.holder is None:
            return rows[:0]
        holders = np.unique(self.holder[rows])
        self.attempts[rows] = self.holder[rows] = 0
        return holders[holders > 0]

    def release_all(self) -> None:
        """Leased and held rows are free, and that they were handed out was no attempt."""
        rows = np.flatnonzero(_is_out(self.state))
        if self.attempts is not None and self.holder is not None:
            self.attempts[self.holder > 0] -= 1
            self.holder[:] = 0
        if self.memory is not None:
            self.memory.forget(rows)
        self.state[rows] = FREE
        self.leased = 0

    def reset(self) -> None:
        self.state[:] = FREE
        self.attempts = self.holder = None
        self.reasons = {}
        self.memory = None
        self.consumed = self.consumed_cleared = self.leased = self.dead = 0

    def resize(self, rows: int) -> None:
        super().resize(rows)
        if self.memory is not None:
            self.memory.resize(rows)

    def compact(self, rows: Ints, capacity: int) -> None:
        super().compact(rows, capacity)
        if self.memory is not None:
            self.memory.compact(rows, capacity)


def _is_out(state: Bits) -> Flags:
    """bool [rows]: what callers see as leased."""
    return np.asarray((state == HELD) | (state == LEASED))
