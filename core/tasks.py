"""What one task has of each row: a small vector over rows, and the counts that outlive cleared rows."""

import numpy as np

from .arrays import Bits, Ints, filled, grown

FREE, CONSUMED, LEASED, DEAD = range(4)


class Task:
    """`state` uint8 [rows]; `consumed` counts rows consumed since the last reset, cleared ones included.

    Rows that are clearing keep their state, but count as cleared ones: `leased` and `dead` are of live rows.
    `attempts` and `holder` (the number of the lease that has the row) int64 [rows], once there was a lease; `reasons`
    why rows are dead, by index.
    """

    __slots__ = ("attempts", "consumed", "consumed_cleared", "dead", "holder", "leased", "reasons", "state")

    def __init__(self, rows: int) -> None:
        self.state: Bits = filled(rows, FREE, np.uint8)
        self.attempts: Ints | None = None
        self.holder: Ints | None = None
        self.reasons: dict[int, str] = {}
        self.consumed = self.consumed_cleared = 0
        self.leased = self.dead = 0

    @property
    def consumed_live(self) -> int:
        """Rows that are there and consumed."""
        return self.consumed - self.consumed_cleared

    @property
    def settled(self) -> int:
        """Live rows that are not to be handed out any more: consumed or dead."""
        return self.consumed_live + self.dead

    @property
    def has_attempts(self) -> bool:
        """A live row was handed out with a lease."""
        return self.attempts is not None and bool(self.attempts.any())

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

    def settle(self, rows: Ints, state: int, live: Bits) -> None:
        """Leased rows are consumed, free again, or dead; `live` uint8 [rows]: those that are not clearing."""
        count = int(np.count_nonzero(live))
        self.leased -= count
        self.state[rows] = state
        if self.holder is not None:
            self.holder[rows] = 0
        if state == CONSUMED:
            self.consumed += len(rows)
            self.consumed_cleared += len(rows) - count
        self.dead += count if state == DEAD else 0

    def hide(self, rows: Ints, step: int = 1) -> None:
        """These rows are clearing (step -1: live again): they count no more, but for what was consumed of them."""
        state = self.state[rows]
        self.consumed_cleared += step * int(np.count_nonzero(state == CONSUMED))
        self.leased -= step * int(np.count_nonzero(state == LEASED))
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

    def reset(self) -> None:
        self.state[:] = FREE
        self.attempts = self.holder = None
        self.reasons = {}
        self.consumed = self.consumed_cleared = self.leased = self.dead = 0

    def resize(self, rows: int) -> None:
        self.state = grown(self.state, rows, FREE)
        if self.attempts is not None and self.holder is not None:
            self.attempts, self.holder = grown(self.attempts, rows, 0), grown(self.holder, rows, 0)

    def keep(self, rows: Ints, capacity: int) -> None:
        self.state = grown(self.state[rows], capacity, FREE)
        if self.attempts is not None and self.holder is not None:
            self.attempts = grown(self.attempts[rows], capacity, 0)
            self.holder = grown(self.holder[rows], capacity, 0)
